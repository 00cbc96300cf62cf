"""An OVA behind an address: by ranges, over a real TLS server that misbehaves on demand."""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from ova_packing import DISK, OVF, pack, parts

from bfinfra.backends.ova import Ova, RemoteSource, read_from, remote, verify
from bfinfra.backends.transport import Transport
from bfinfra.model.errors import Busy, Missing, Refusal, Unreachable, Untrusted
from bfinfra.model.trust import Trust

BIG = DISK + bytes(range(256)) * 8000


@pytest.fixture
def transport() -> Iterator[Transport]:
    made = Transport(read_only=True)
    yield made
    made.close()


def big(path: Path) -> bytes:
    text = OVF.replace(str(len(DISK)), str(len(BIG)))
    files = {"a.ovf": text.encode(), "a-disk1.vmdk": BIG}
    mf = "".join(
        f"SHA256({name})= {hashlib.sha256(data).hexdigest()}\n" for name, data in files.items()
    ).encode()
    return pack(path / "a.ova", {"a.ovf": files["a.ovf"], "a.mf": mf, "a-disk1.vmdk": BIG}).read_bytes()


@pytest.fixture
def ova(files, transport, tmp_path) -> Ova:
    files.data = big(tmp_path)
    return read_from(RemoteSource.of(files.url, Trust(ca_pem=files.pem), transport))


def test_looking_into_it_takes_little_of_it(ova, files):
    assert ova.product.full_version == "3.0.0-11"
    assert files.sent < 200_000 < len(files.data)
    assert len(files.asked) <= 5, "its end, its beginning, its descriptor, and the head of its disk"


def test_it_is_read_whole_once_to_be_verified_and_each_disk_once_to_be_sent(ova, files):
    files.asked.clear()
    verify(ova, lambda _: None, sha256=hashlib.sha256(files.data).hexdigest())
    assert files.sent == len(files.data)
    with ova.open("a-disk1.vmdk") as stream:
        assert stream.read() == BIG
    assert files.sent == len(files.data) + len(BIG)
    assert all(not {"Authorization", "Cookie"} & set(heard) for heard in files.heard)


def test_what_breaks_off_goes_on_where_it_broke(ova, files):
    files.asked.clear()
    files.cut, files.status = [300_000, 200_000], []
    with ova.open("a-disk1.vmdk") as stream:
        assert stream.read() == BIG
    begins = [int(re.findall(r"\d+", wanted)[0]) for _, wanted in files.asked]
    assert [after - begins[0] for after in begins] == [0, 300_000, 500_000]


def test_after_four_failures_in_a_row_it_is_given_up(ova, files):
    files.status = [503] * 9
    with ova.open("a-disk1.vmdk") as stream, pytest.raises(Busy):
        stream.read()
    assert len(files.status) == 9 - remote.TIMES


def test_a_file_that_changed_meanwhile_is_refused_by_its_version_and_by_its_bytes(ova, files):
    was, files.etag = files.etag, '"two"'
    with ova.open("a-disk1.vmdk") as stream, pytest.raises(Refusal, match="was changed while"):
        stream.read()
    files.etag = was
    files.data = files.data.replace(BIG, BIG[:-1] + b"!")
    with ova.open("a-disk1.vmdk") as stream, pytest.raises(Refusal, match="other bytes than before"):
        stream.read()


def test_a_redirect_is_followed_without_its_account_and_never_away_from_https(files, transport, tmp_path):
    files.data, trust = big(tmp_path), Trust(ca_pem=files.pem)
    files.moved = {"/files/b.ova": files.url.replace("https://", "https://me:secret@") + "?key=4711"}
    found = RemoteSource.of(files.url.replace("a.ova", "b.ova"), trust, transport)
    assert (found.size, str(found.name)) == (len(files.data), "b.ova")
    assert all("Authorization" not in heard for heard in files.heard)
    for onward, message in {
        "http://127.0.0.1:1/a.ova?key=4711": "that is not https",
        files.url.replace("a.ova", "c.ova"): "more than 5 times",
    }.items():
        files.moved = {"/files/c.ova": onward}
        with pytest.raises(Refusal, match=message) as raised:
            RemoteSource.of(files.url.replace("a.ova", "c.ova"), trust, transport)
        assert "4711" not in str(raised.value)


def test_a_pin_is_the_first_server_s_only(files, transport, tmp_path):
    files.data = big(tmp_path)
    pin = hashlib.sha256(ssl.PEM_cert_to_DER_cert(files.pem)).hexdigest()
    assert RemoteSource.of(files.url, Trust(sha256=pin), transport).size == len(files.data)
    files.moved = {"/files/b.ova": files.url.replace("127.0.0.1", "localhost")}
    with pytest.raises(Untrusted):
        RemoteSource.of(files.url.replace("a.ova", "b.ova"), Trust(sha256=pin), transport)


@pytest.mark.parametrize(
    ("how", "message"), [({"ranges": False}, "the whole file only"), ({"etag": ""}, "which version")]
)
def test_a_server_that_answers_no_parts_or_no_version_is_refused(files, transport, tmp_path, how, message):
    files.data = big(tmp_path)
    for name, value in how.items():
        setattr(files, name, value)
    with pytest.raises(Refusal, match=message):
        RemoteSource.of(files.url, Trust(ca_pem=files.pem), transport)


def test_what_is_not_there_and_who_is_not_trusted_say_so_without_the_query(files, transport, tmp_path):
    files.data = pack(tmp_path / "a.ova", parts()).read_bytes()
    with pytest.raises(Untrusted):
        RemoteSource.of(files.url, Trust(), transport)
    files.moved = {"/files/a.ova": "https://127.0.0.1:1/gone.ova?key=4711"}
    with pytest.raises(Unreachable) as raised:
        RemoteSource.of(files.url, Trust(ca_pem=files.pem), transport)
    assert "4711" not in str(raised.value)


def test_without_a_manifest_what_comes_from_far_is_not_sent_on(files, transport, tmp_path):
    files.data = pack(
        tmp_path / "a.ova", {name: data for name, data in parts().items() if name != "a.mf"}
    ).read_bytes()
    found = read_from(RemoteSource.of(files.url, Trust(ca_pem=files.pem), transport))
    with pytest.raises(Refusal, match="no manifest, and is remote"):
        verify(found, lambda _: None, sha256=hashlib.sha256(files.data).hexdigest())


def test_another_status_is_an_error_that_says_where_to_look(files, transport, tmp_path):
    files.data, files.status = big(tmp_path), [404]
    with pytest.raises(Missing, match=r"check ova\.url"):
        read_from(RemoteSource.of(files.url, Trust(ca_pem=files.pem), transport))
