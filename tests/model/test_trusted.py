"""What a server or machine must show, and where it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bfinfra.model.sources import LocalFile
from bfinfra.model.ssh import HostTrust, LinuxMachine
from bfinfra.model.trust import Server, Trust, host_and_port

DIGITS = "0123456789abcdef" * 4
KEY = "SHA256:" + "Ab0+/" * 8 + "xyz"
FILE = LocalFile("f", Path("/f"))


@pytest.mark.parametrize(
    "written", [DIGITS, DIGITS.upper(), ":".join(DIGITS[at : at + 2] for at in range(0, 64, 2))]
)
def test_a_certificate_is_known_by_its_fingerprint_however_that_is_written(written: str) -> None:
    assert Trust(sha256=written).sha256 == DIGITS


@pytest.mark.parametrize("written", [DIGITS[1:], DIGITS + "0", "g" + DIGITS[1:], ""])
def test_what_is_no_fingerprint_of_a_certificate_is_refused(written: str) -> None:
    with pytest.raises(
        ValidationError, match="expected a SHA-256 fingerprint: 64 hexadecimal digits, colons"
    ):
        Trust(sha256=written)


@pytest.mark.parametrize(
    "given",
    [
        {"ca_file": FILE, "sha256": DIGITS},
        {"ca_pem": "PEM", "sha256": DIGITS},
        {"ca_file": FILE, "ca_pem": "PEM"},
    ],
)
def test_a_certificate_is_trusted_for_one_reason_alone(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="give ca_file or sha256, not both") as refused:
        Trust.model_validate(given)
    assert refused.value.errors()[0]["ctx"]["error"].path == ("sha256",)
    for name, value in given.items():
        assert Trust.model_validate({name: value}).model_fields_set == {name}
    with pytest.raises(ValidationError, match="valid dictionary"):
        Trust.model_validate(3)


@pytest.mark.parametrize("key", [KEY, f"{KEY[:-1]}X"])
def test_a_host_key_is_known_by_its_fingerprint_as_ssh_prints_it(key: str) -> None:
    assert HostTrust(sha256=key).sha256 == HostTrust(sha256=f"{key}=").sha256 == key


@pytest.mark.parametrize("written", [KEY[:-1], f"{KEY}x", KEY.removeprefix("SHA256:"), "MD5:" + "a" * 43, ""])
def test_what_is_no_fingerprint_of_a_host_key_is_refused(written: str) -> None:
    with pytest.raises(
        ValidationError, match="expected what ssh-keygen -l prints: SHA256: and 43 characters"
    ):
        HostTrust(sha256=written)


@pytest.mark.parametrize("given", [{}, {"known_hosts": FILE, "sha256": KEY}])
def test_nothing_is_trusted_on_first_use(given: dict[str, Any]) -> None:
    with pytest.raises(
        ValidationError, match="give either known_hosts or sha256; bfinfra trust shows the fingerprints"
    ):
        HostTrust.model_validate(given)
    assert HostTrust(known_hosts=FILE).sha256 is None


@pytest.mark.parametrize(
    ("port", "server", "known_as"),
    [(22, "10.0.0.1:22", "10.0.0.1"), (2222, "10.0.0.1:2222", "[10.0.0.1]:2222")],
)
def test_a_machine_is_known_to_ssh_by_its_address_and_a_port_of_its_own(
    port: int, server: str, known_as: str
) -> None:
    machine = LinuxMachine("m", "10.0.0.1", "root", HostTrust(sha256=KEY), port=port)
    assert (machine.server, machine.known_as) == (server, known_as)


@pytest.mark.parametrize(
    ("written", "host", "port"),
    [
        ("vc.test", "vc.test", 443),
        ("vc.test:8443", "vc.test", 8443),
        ("vc.test:https", "vc.test:https", 443),
        ("[2001:db8::1]:8443", "2001:db8::1", 8443),
        ("[2001:db8::1]", "2001:db8::1", 443),
        ("2001:db8::1", "2001:db8::1", 443),
        ("2001:db8::", "2001:db8::", 443),
        ("2001:db8::1:5", "2001:db8::1:5", 443),
        ("X", "X", 443),
        ("X:8443", "X", 8443),
        ("::1", "::1", 443),
    ],
)
def test_a_server_is_a_host_and_a_port_of_its_own_or_that_of_https(
    written: str, host: str, port: int
) -> None:
    assert host_and_port(written) == (host, port)
    server = Server("vCenter", host, port, Trust())
    assert host_and_port(server.address) == (host, port)
