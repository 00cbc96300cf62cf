"""What is uploaded goes to the ESXi host that vCenter means, and to nobody who only says so."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace

import httpx2
import pytest
from trust.authority import Authority
from trust.listening import listening

from bfinfra.backends import tls
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import certificates
from bfinfra.backends.vcenter.certificates import HostTrust
from bfinfra.model.errors import Denied, Untrusted
from bfinfra.model.trust import Trust

OWN = Trust(sha256="ab" * 32)


@pytest.fixture
def vmca(tmp_path):
    return Authority(tmp_path, "VMCA")


@pytest.fixture
def host_trust(vmca, monkeypatch):
    """Makes a HostTrust of a vCenter that holds this certificate of its host."""
    transports = []

    def make(held=None, denied=False):
        transport = Transport(route=lambda host, port: ("127.0.0.1", port))
        transports.append(transport)
        session = SimpleNamespace(
            server="vc.test:443", settings=SimpleNamespace(trust=OWN), read=lambda operation: operation(None)
        )

        def one(*_):
            if denied:
                raise Denied("no")
            return {
                "config.certificate": [byte - 256 if byte > 127 else byte for byte in held.pem.encode()]
                if held
                else None
            }

        monkeypatch.setattr(certificates.properties, "one", one)
        monkeypatch.setattr(certificates.refs, "refer", lambda *_: None)
        return HostTrust(session, transport, lambda: vmca.pem)

    yield make
    for transport in transports:
        transport.close()


def put(trust, server, name):
    """Upload as an import does; whether it came there."""
    url = httpx2.URL(f"https://{name}:{server.port}/nfc/x/disk.vmdk")
    with contextlib.closing(Transport(route=lambda host, port: ("127.0.0.1", port))) as transport:
        answer = transport.client(f"https://{name}:{server.port}", trust.of(url, "host-1")).put(
            url, content=b"disk"
        )
    return answer.status_code == 200 and len(server.asked) == 1


def test_a_host_that_vcenters_authority_signed_is_trusted(host_trust, vmca):
    with listening(vmca.leaf("esx1.test").file) as server:
        assert put(host_trust(), server, "esx1.test")


def test_a_host_of_another_authority_is_trusted_by_the_certificate_that_vcenter_holds(host_trust, tmp_path):
    shown = Authority(tmp_path, "a company's own").leaf("esx1.test")
    with listening(shown.file) as server:
        assert put(host_trust(held=shown), server, "esx1.test")


def test_so_is_one_that_the_lease_names_by_its_address(host_trust, vmca):
    shown = vmca.leaf("esx1.test")
    with listening(shown.file) as server:
        assert put(host_trust(held=shown), server, "127.0.0.1")


@pytest.mark.parametrize("held", ["another", "none", "denied"])
def test_nobody_else_gets_anything_and_both_fingerprints_are_shown(held, host_trust, vmca, tmp_path):
    real, shown = vmca.leaf("esx1.test"), Authority(tmp_path, "nobody").leaf("esx1.test")
    trust = host_trust(held=real if held == "another" else None, denied=held == "denied")
    with listening(shown.file) as server:
        with pytest.raises(Untrusted) as raised:
            put(trust, server, "esx1.test")
        assert server.asked == []
    assert tls.colons(shown.sha256) in str(raised.value)
    assert (tls.colons(real.sha256) if held == "another" else "no certificate of its host") in str(
        raised.value
    )


def test_a_host_that_shows_another_hosts_certificate_is_not_trusted(host_trust, vmca):
    with listening(vmca.leaf("esx2.test").file) as server, pytest.raises(Untrusted, match="ismatch"):
        put(host_trust(held=vmca.leaf("esx1.test")), server, "esx1.test")


def test_an_address_without_tls_gets_nothing(host_trust):
    with pytest.raises(Untrusted, match="http://esx1"):
        host_trust().of(httpx2.URL("http://esx1.test/nfc/disk.vmdk"), "host-1")


def test_vcenter_itself_is_trusted_as_the_site_says(host_trust):
    assert host_trust().of(httpx2.URL("https://vc.test/nfc/disk.vmdk"), "host-1") is OWN
