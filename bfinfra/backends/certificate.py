"""Reads the certificate that a server shows, and why it is not trusted. No request is sent."""

from __future__ import annotations

import hashlib
from datetime import datetime

from cryptography import x509
from cryptography.x509.oid import NameOID

from bfinfra.backends import tls
from bfinfra.backends.transport import Transport
from bfinfra.model.errors import Malformed, Unreachable
from bfinfra.model.records import dataclass
from bfinfra.model.trust import Trust, host_and_port


@dataclass(frozen=True)
class Shown:
    """A server's certificate. Times in UTC; `names` that it is valid for; `sha256` with colons; `objection`:
    why it is not trusted, or "".

    `what`: the server's role in the site; `by`: what it was compared with.
    """

    server: str
    what: str
    subject: str
    issuer: str
    not_before: datetime
    not_after: datetime
    names: tuple[str, ...]
    sha256: str
    by: str
    objection: str


def look(transport: Transport, server: str, trust: Trust, *, what: str = "", extra_pem: str = "") -> Shown:
    """The certificate of `server` (host or host:port). Raises Unreachable, Malformed, or Untrusted for
    authorities that can't be read.
    """
    host, port = host_and_port(server)
    there = transport.where(host, port)
    try:
        der, objection = tls.shown(there, host), tls.objection(there, host, trust, extra_pem)
    except OSError as error:
        raise Unreachable(
            "it shows no certificate",
            server=f"{host}:{port}",
            why=error.strerror or str(error) or type(error).__name__,
            next="check the address, and that what answers there speaks TLS 1.2 or newer",
        ) from None
    try:
        found = x509.load_der_x509_certificate(der)
        return Shown(
            f"{host}:{port}",
            what,
            _named(found.subject),
            _named(found.issuer),
            found.not_valid_before_utc,
            found.not_valid_after_utc,
            _names(found),
            tls.colons(hashlib.sha256(der).hexdigest()),
            _by(trust, extra_pem),
            objection,
        )
    except ValueError as error:
        raise Malformed(
            "the server's certificate can't be read", server=f"{host}:{port}", why=str(error)
        ) from None


def _named(name: x509.Name) -> str:
    common = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return name.rfc4514_string() or (str(common[0].value) if common else "")


def _names(found: x509.Certificate) -> tuple[str, ...]:
    try:
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(str(each.value) for each in names if isinstance(each, x509.DNSName | x509.IPAddress))


def _by(trust: Trust, extra_pem: str) -> str:
    if trust.sha256:
        return "the pinned SHA-256"
    if trust.ca_file:
        return trust.ca_file.text
    return "the given authorities" if trust.ca_pem or extra_pem else "this machine's store of authorities"
