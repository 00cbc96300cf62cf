from __future__ import annotations

import io
import tarfile
from datetime import UTC, datetime

import pytest

from bfinfra.backends.bitfusion import read_token
from bfinfra.sandbox.factories import token as maker
from bfinfra.sandbox.pki import Pki

SERVERS = b"servers:\n- reachable: 10.0.0.1:56001\n  addresses: [10.0.0.1:56001, 10.0.0.2:56001]\n"


@pytest.fixture(scope="session")
def ca(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki")).ca_pem.encode()


@pytest.fixture
def files(ca):
    return {"ca.crt": ca, "client.yaml": b"client_id: x\nkey: s3cret\n", "servers.conf": SERVERS}


def tar(path, files, *members):
    with tarfile.open(path, "w:gz" if path.suffix == ".tgz" else "w") as out:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            out.addfile(info, io.BytesIO(content))
        for member in members:
            out.addfile(member)
    return path


def folder(path, files):
    path.mkdir()
    for name, content in files.items():
        (path / name).write_bytes(content)
    return path


@pytest.mark.parametrize("prefix", ["", "./"])
def test_a_tar_and_the_folder_that_it_unpacks_to_are_the_same_token(files, tmp_path, prefix):
    packed = read_token(tar(tmp_path / "t.tgz", {prefix + name: content for name, content in files.items()}))
    unpacked = read_token(folder(tmp_path / "f", files))
    assert packed == unpacked
    assert packed.servers == (("10.0.0.1", 56001), ("10.0.0.2", 56001))
    assert packed.not_after > datetime.now(UTC)
    assert packed.files["client.yaml"].startswith("client_id")


def test_the_content_is_never_shown(files, tmp_path):
    assert "s3cret" not in repr(read_token(folder(tmp_path / "f", files)))


def test_another_content_is_another_digest(files, tmp_path):
    first = read_token(folder(tmp_path / "a", files))
    assert (
        read_token(folder(tmp_path / "b", {**files, "client.yaml": b"client_id: y\n"})).digest != first.digest
    )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"servers.conf": b"servers:\n- reachable:10.0.0.1:56001\n"}, "lacks the blank after `reachable:`"),
        ({"servers.conf": b"servers: []\n"}, "no list `servers`"),
        ({"servers.conf": b"- a\n"}, "no list `servers`"),
        ({"servers.conf": b"servers:\n- reachable: 'a b:56001'\n"}, "not HOST:PORT"),
        ({"servers.conf": b"servers:\n- reachable: h:99999\n"}, "not HOST:PORT"),
        ({"servers.conf": b"servers:\n- {}\n"}, "names no address"),
        ({"servers.conf": b"servers: {a: \n"}, "servers.conf: it is not YAML: line 2"),
        ({"client.yaml": b"s3cret: [\n"}, "client.yaml: it is not YAML"),
        ({"client.yaml": b"just s3cret text"}, "not a mapping"),
        ({"client.yaml": b"\xff\xfe"}, "not text"),
        ({"client.yaml": b"!!python/object/apply:os.system [s3cret]"}, "a tag that is not allowed"),
        ({"ca.crt": b"s3cret"}, "no certificate in PEM"),
        ({"ca.crt": b""}, "empty"),
        ({"client.yaml": b"x" * ((1 << 20) + 1)}, "more than"),
        ({"key.pem": b"x"}, "not part of a token"),
        ({"../ca.crt": b"x"}, "holds a file called"),
        ({"/etc/passwd": b"x"}, "holds a file called"),
    ],
)
def test_what_is_wrong_is_reported_with_what_to_do_and_without_content(files, tmp_path, change, says):
    with pytest.raises(ValueError, match=says) as wrong:
        read_token(tar(tmp_path / "t.tar", {**files, **change}))
    assert "s3cret" not in str(wrong.value)


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE]
)
def test_links_and_devices_are_refused(files, tmp_path, kind):
    member = tarfile.TarInfo("servers.conf")
    member.type, member.linkname = kind, "/etc/passwd"
    del files["servers.conf"]
    with pytest.raises(ValueError, match=r"not a regular file|it may contain only regular files"):
        read_token(tar(tmp_path / "t.tar", files, member))


def test_a_link_in_a_folder_is_refused(files, tmp_path):
    path = folder(tmp_path / "f", files)
    (path / "ca.crt").unlink()
    (path / "ca.crt").symlink_to("/etc/hostname")
    with pytest.raises(ValueError, match="not a regular file"):
        read_token(path)


def test_a_member_twice_a_missing_one_and_a_torn_tar_are_refused(files, tmp_path):
    again = tarfile.TarInfo("ca.crt")
    with pytest.raises(ValueError, match=r"empty|twice"):
        read_token(tar(tmp_path / "twice.tar", files, again))
    with pytest.raises(ValueError, match=r"has no client\.yaml"):
        read_token(tar(tmp_path / "less.tar", {k: v for k, v in files.items() if k != "client.yaml"}))
    whole = tar(tmp_path / "t.tgz", files).read_bytes()
    (tmp_path / "torn.tgz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"damaged|cut short|can't be read"):
        read_token(tmp_path / "torn.tgz")
    with pytest.raises(ValueError, match="there is no"):
        read_token(tmp_path / "nothing.tar")


def test_a_token_made_by_somebody_else_is_read(tmp_path):
    maker.make_token(tmp_path / "t.tar", servers=["172.24.210.80:56001", "gpu.example.com:56001"])
    assert read_token(tmp_path / "t.tar").servers == (("172.24.210.80", 56001), ("gpu.example.com", 56001))


@pytest.mark.parametrize("broken", [b for b in maker.BROKEN if b != "expired"])
def test_every_broken_token_is_refused(tmp_path, broken):
    maker.make_token(tmp_path / "t.tar", broken=broken)
    with pytest.raises(ValueError, match=":"):
        read_token(tmp_path / "t.tar")


def test_an_expired_token_is_read_and_its_expiry_is_reported(tmp_path):
    maker.make_token(tmp_path / "t.tar", broken="expired")
    assert read_token(tmp_path / "t.tar").not_after < datetime.now(UTC)
