from __future__ import annotations

import contextlib
import datetime as dt
import socket
import ssl
import tempfile
import threading

import pytest
from trust.authority import Authority
from trust.listening import listening
from trust.matrix import SERVERS, cases

from bfinfra.backends import tls
from bfinfra.backends.transport import Transport
from bfinfra.model.errors import Unreachable, Untrusted
from bfinfra.model.sources import LocalFile
from bfinfra.model.trust import Trust


@pytest.fixture
def transport():
    made = Transport()
    yield made
    made.close()


@pytest.mark.parametrize("case", list(cases()), ids=lambda case: case.name)
def test_who_is_trusted_and_who_is_not(case, transport, tmp_path):
    shown = SERVERS[case.server](Authority(tmp_path))
    trust = case.trust(shown, Authority(tmp_path, "another authority"))
    with listening(shown.file) as server:
        assert case.says in tls.objection(("127.0.0.1", server.port), "127.0.0.1", trust)
        client = transport.client(server.url, trust)
        if not case.says:
            assert client.get("/x").status_code == 200
            return
        with pytest.raises(Untrusted, match=case.says) as raised:
            client.get("/x", headers={"authorization": "Basic secret"})
        assert tls.colons(shown.sha256) in str(raised.value)
        assert f"bfinfra trust 127.0.0.1:{server.port}" in str(raised.value)
        assert server.asked == []


BUNDLE = "# NetLock Arany (Class Gold) Főtanúsítvány\n{}# \x9b31m 認証局\n"


@pytest.mark.parametrize("form", ["ca_file", "ca_pem", "extra_pem"])
def test_a_bundle_names_its_authorities_in_any_letters(form, tmp_path):
    """curl's bundle of authorities did, and Debian's file names do."""
    shown = Authority(tmp_path).leaf()
    bundle = BUNDLE.format(shown.ca)
    (tmp_path / "bundle.pem").write_text(bundle)
    trust, extra = {
        "ca_file": (Trust(ca_file=LocalFile("bundle.pem", tmp_path / "bundle.pem")), ""),
        "ca_pem": (Trust(ca_pem=bundle), ""),
        "extra_pem": (Trust(), bundle),
    }[form]
    with listening(shown.file) as server:
        assert tls.objection(("127.0.0.1", server.port), "127.0.0.1", trust, extra) == ""


def test_other_letters_inside_a_certificate_make_it_no_certificate(tmp_path):
    broken = Authority(tmp_path).leaf().ca.replace("MII", "MÍI", 1)
    with pytest.raises(Untrusted, match="no certificate in PEM form in it"):
        tls.context(Trust(ca_pem=broken))


@pytest.mark.parametrize(("begins", "ends", "says"), [(10, 20, "not yet valid"), (-20, -10, "has expired")])
def test_a_clock_that_is_ten_minutes_off_is_thought_of_where_a_date_is_wrong(
    transport, tmp_path, begins, ends, says
):
    """A certificate that begins in ten minutes is what a clock ten minutes behind sees of one that has just
    become valid.
    """
    shown = Authority(tmp_path).leaf(begins=dt.timedelta(minutes=begins), ends=dt.timedelta(minutes=ends))
    with listening(shown.file) as server, pytest.raises(Untrusted, match=says) as raised:
        transport.client(server.url, Trust(ca_pem=shown.ca)).get(
            "/x", headers={"authorization": "Basic secret"}
        )
    assert "if this machine's clock is right (it says 20" in str(raised.value)
    assert server.asked == []


def test_a_changed_certificate_says_both_fingerprints_and_how_to_accept_it(transport, tmp_path):
    authority = Authority(tmp_path)
    before, now = authority.leaf(), authority.leaf()
    with listening(now.file) as server, pytest.raises(Untrusted) as raised:
        transport.client(server.url, Trust(sha256=before.sha256)).get("/x")
    for part in (
        tls.colons(before.sha256),
        tls.colons(now.sha256),
        "trust: {sha256: …}",
        f"bfinfra trust 127.0.0.1:{server.port}",
    ):
        assert part in str(raised.value)
    assert server.asked == []


@pytest.mark.parametrize("trust", ["authority", "pin"])
@pytest.mark.parametrize("newest", ["TLSv1", "TLSv1_1"])
def test_nothing_older_than_tls_1_2_is_spoken(newest, trust, transport, tmp_path):
    shown = Authority(tmp_path).leaf()
    with listening(shown.file, newest=ssl.TLSVersion[newest]) as server:
        client = transport.client(
            server.url, Trust(ca_pem=shown.ca) if trust == "authority" else Trust(sha256=shown.sha256)
        )
        with pytest.raises(Untrusted, match=r"TLS 1\.2"):
            client.get("/x")
        assert server.asked == []


def test_tls_1_2_is_spoken(transport, tmp_path):
    shown = Authority(tmp_path).leaf()
    with listening(shown.file, newest=ssl.TLSVersion.TLSv1_2) as server:
        assert transport.client(server.url, Trust(ca_pem=shown.ca)).get("/x").status_code == 200


def test_a_port_without_tls_is_named_as_that_and_not_asked_again(transport, tmp_path):
    with listening(None) as server, pytest.raises(Untrusted, match="does not speak TLS"):
        transport.client(server.url, Trust()).get("/x")


def test_a_connection_that_ends_in_the_handshake_may_be_tried_again(transport):
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_hang_up, args=(server,), daemon=True).start()
        with pytest.raises(Unreachable):
            transport.client(f"https://127.0.0.1:{server.getsockname()[1]}", Trust()).get("/x")


def _hang_up(server):
    server.accept()[0].close()


def test_a_key_that_was_left_behind_in_a_crash_is_of_no_use(tmp_path, monkeypatch):
    @contextlib.contextmanager
    def kept(**_):
        yield str(tmp_path)

    shown = Authority(tmp_path / "..").leaf()
    own = shown.file.read_text()
    monkeypatch.setattr(tempfile, "TemporaryDirectory", kept)
    tls.identify(tls.context(Trust(ca_pem=shown.ca)), shown.pem, own, "vc.test")
    assert "ENCRYPTED PRIVATE KEY" in (tmp_path / "key.pem").read_text()
    body = own.partition("PRIVATE KEY-----\n")[2].partition("\n")[0]
    assert body
    assert body not in (tmp_path / "key.pem").read_text()
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
