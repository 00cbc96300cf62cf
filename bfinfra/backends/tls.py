"""Whom to trust: an SSLContext per server from a Trust, and the pin that every handshake is held to."""

from __future__ import annotations

import hashlib
import socket
import ssl
import tempfile
from pathlib import Path

import truststore

from bfinfra.model.errors import Untrusted
from bfinfra.model.sources import small
from bfinfra.model.trust import Trust

PARTIAL = getattr(ssl, "VERIFY_X509_PARTIAL_CHAIN", ssl.VerifyFlags(0x80000))


def context(trust: Trust, extra_pem: str = "", server: str = "") -> ssl.SSLContext:
    """The context for one server. A pin needs `check_pin` after every handshake. Raises Untrusted for unusable authorities.

    `extra_pem`: authorities that count beside the system's store where the site says nothing.
    """
    if trust.sha256:
        return unverified()
    if trust.ca_file is None and trust.ca_pem is None and not extra_pem:
        system: ssl.SSLContext = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return system
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    own.verify_flags |= PARTIAL  # a self-signed server certificate given as the authority is enough
    if trust.ca_file is None and trust.ca_pem is None:
        own.load_default_certs()
    try:
        pem = small(trust.ca_file.path) if trust.ca_file else trust.ca_pem or extra_pem
        own.load_verify_locations(cadata=pem)
    except (OSError, ValueError) as error:
        name = str(trust.ca_file.path) if trust.ca_file else "the authorities handed over"
        why = (
            error.strerror or ""
            if isinstance(error, OSError) and not isinstance(error, ssl.SSLError)
            else "no certificate in PEM form in it"
        )
        raise Untrusted(
            f"{name} can't be used", server=server, why=why, next="give a PEM file with the server's certificate authority"
        ) from None
    return own


def unverified() -> ssl.SSLContext:
    """A context that accepts any certificate: only for use with `check_pin`, or to show a fingerprint."""
    free = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    free.check_hostname = False
    free.verify_mode = ssl.CERT_NONE
    return free


def identify(context: ssl.SSLContext, certificate: str, key: str, server: str) -> None:
    """Show our own certificate (PEM, with its key) to the server. Raises Untrusted where they don't fit."""
    with tempfile.TemporaryDirectory() as folder:  # OpenSSL reads a chain from files only; the folder is ours alone (0700)
        shown, own = Path(folder) / "certificate.pem", Path(folder) / "key.pem"
        shown.write_text(certificate)
        own.write_text(key)
        try:
            context.load_cert_chain(shown, own, password="")  # an empty password: never ask on the terminal
        except (OSError, ValueError):
            raise Untrusted("the client certificate can't be used", server=server, why="certificate and key don't fit, or are no PEM",
                            next="make the kubeconfig anew") from None


def check_pin(shown: bytes | None, pin: str, server: str) -> None:
    """Raises Untrusted unless the DER certificate `shown` has the SHA-256 `pin` (64 lower-case hexadecimal digits)."""
    found = hashlib.sha256(shown or b"").hexdigest()
    if found != pin:
        raise Untrusted(
            "the server's certificate is not the pinned one",
            server=server,
            why=f"it shows SHA-256 {colons(found)}, the site pins {colons(pin)}",
            next="if the certificate was renewed, compare the fingerprint on the server itself and write it as trust: {sha256: …}",
        )


def refused(error: ssl.SSLCertVerificationError, address: tuple[str, int], server: str) -> Untrusted:
    """The error for a certificate that did not verify; looks at it once more to show its fingerprint."""
    shown = _fingerprint(address, server.rpartition(":")[0])
    return Untrusted(
        "the server's certificate is not trusted",
        server=server,
        why=error.verify_message + (f"; it shows SHA-256 {colons(shown)}" if shown else ""),
        next="give its authority as trust: {ca_file: …}, or compare the fingerprint on the server itself and write it as trust: {sha256: …}",
    )


def colons(digest: str) -> str:
    """`abcd…` → `AB:CD:…`."""
    return ":".join(digest[i : i + 2] for i in range(0, len(digest), 2)).upper()


def _fingerprint(address: tuple[str, int], name: str) -> str:
    try:
        with socket.create_connection(address, timeout=10) as plain, unverified().wrap_socket(plain, server_hostname=name) as tls:
            return hashlib.sha256(tls.getpeercert(binary_form=True) or b"").hexdigest()
    except OSError:
        return ""
