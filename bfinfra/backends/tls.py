"""Whom to trust: an SSLContext per server from a Trust, and the pin that every handshake is held to."""

from __future__ import annotations

import hashlib
import os
import secrets
import socket
import ssl
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import truststore

from bfinfra.model.errors import Untrusted
from bfinfra.model.sources import small
from bfinfra.model.trust import Trust

OLDEST = ssl.TLSVersion.TLSv1_2  # whatever the machine's own openssl.cnf allows
BROKEN = (
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
    ssl.SSLSyscallError,
)  # the connection ended: nobody said no
DATES = (9, 10)  # OpenSSL's codes for a certificate that isn't valid yet, or no longer
PARTIAL = getattr(ssl, "VERIFY_X509_PARTIAL_CHAIN", ssl.VerifyFlags(0x80000))


def context(trust: Trust, extra_pem: str = "", server: str = "") -> ssl.SSLContext:
    """The context for one server. A pin needs `check_pin` after every handshake. Raises Untrusted for
    unusable authorities.

    `extra_pem`: authorities that count beside the system's store where the site says nothing.
    """
    if trust.sha256:
        return settled(unverified())
    if trust.ca_file is None and trust.ca_pem is None and not extra_pem:
        system: ssl.SSLContext = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        system.minimum_version = OLDEST
        return settled(system)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    own.minimum_version = OLDEST
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
            f"{name} can't be used",
            server=server,
            why=why,
            next="give a PEM file with the server's certificate authority",
        ) from None
    return settled(own)


def settled(context: ssl.SSLContext) -> ssl.SSLContext:
    """A context whose protocols stand: HTTP libraries set them anew for each connection, and OpenSSL frees
    those that another thread is just copying.

    Its greeting is garbled then, and the server hangs up ("decode error").
    """
    context.set_alpn_protocols(["http/1.1"])
    context.set_alpn_protocols = _stand  # type: ignore[method-assign]  # they stand already
    return context


def _stand(alpn_protocols: object) -> None:
    """Nothing: they are the same each time."""


def unverified() -> ssl.SSLContext:
    """A context that accepts any certificate: only for use with `check_pin`, or to show a fingerprint."""
    free = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    free.minimum_version = OLDEST
    free.check_hostname = False
    free.verify_mode = ssl.CERT_NONE
    return free


def identify(context: ssl.SSLContext, certificate: str, key: str, server: str) -> None:
    """Show our own certificate (PEM, with its key) to the server. Raises Untrusted where they don't fit."""
    from cryptography.hazmat.primitives import serialization as forms  # noqa: PLC0415 - few clusters know their users by certificate

    # OpenSSL reads a chain from files only. What lies there is of no use to who finds it after a crash: its
    # password dies with us.
    password = secrets.token_bytes(32).hex().encode()
    with tempfile.TemporaryDirectory(prefix="bfinfra-") as folder:  # ours alone (0700)
        try:
            loaded = forms.load_pem_private_key(key.encode(), None)
            sealed = loaded.private_bytes(
                forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.BestAvailableEncryption(password)
            )
            mine, its_key = (
                _private(Path(folder) / "certificate.pem", certificate.encode()),
                _private(Path(folder) / "key.pem", sealed),
            )
            context.load_cert_chain(mine, its_key, password=password)
        except (OSError, TypeError, ValueError):
            raise Untrusted(
                "the client certificate can't be used",
                server=server,
                why="certificate and key don't fit, or are no PEM",
                next="make the kubeconfig anew",
            ) from None


def _private(path: Path, data: bytes) -> Path:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
        out.write(data)
    return path


def check_pin(shown: bytes | None, pin: str, server: str) -> None:
    """Raises Untrusted unless the DER certificate `shown` has the SHA-256 `pin` (64 lower-case hexadecimal
    digits).
    """
    found = hashlib.sha256(shown or b"").hexdigest()
    if found != pin:
        raise Untrusted(
            "the server's certificate is not the pinned one",
            server=server,
            why=f"it shows SHA-256 {colons(found)}, the site pins {colons(pin)}",
            next="if it was renewed, compare the fingerprint on the server itself, then write it as trust: "
            f"{{sha256: …}}; "
            f"bfinfra trust {server} shows the certificate",
        )


def refused(error: ssl.SSLCertVerificationError, address: tuple[str, int], server: str) -> Untrusted:
    """The error for a certificate that did not verify; looks at it once more to show its fingerprint."""
    try:
        fingerprint = colons(hashlib.sha256(shown(address, server.rpartition(":")[0])).hexdigest())
    except OSError:
        fingerprint = ""
    return Untrusted(
        "the server's certificate is not trusted",
        server=server,
        why=error.verify_message + (f"; it shows SHA-256 {fingerprint}" if fingerprint else ""),
        next=(
            (
                f"if this machine's clock is right (it says {datetime.now(UTC):%Y-%m-%d %H:%M} UTC), renew "
                "the certificate on the server; "
            )
            if error.verify_code in DATES
            else (
                "give its authority as trust: {ca_file: …}, or compare the fingerprint on the server itself "
                "and write it as trust: {sha256: …}; "
            )
        )
        + f"bfinfra trust {server} shows the certificate",
    )


def unfit(error: ssl.SSLError, server: str) -> Untrusted:
    """The error for a server that no secure connection is possible with."""
    reason = error.reason or ""
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"):
        return Untrusted(
            "what answers there speaks no TLS",
            server=server,
            why=reason.lower().replace("_", " "),
            next="check host and port",
        )
    return Untrusted(
        "no secure connection",
        server=server,
        why=f"TLS 1.2 or newer was offered, and the answer was: {reason.lower().replace('_', ' ')}",
        next="allow TLS 1.2 on the server; bfinfra speaks nothing older",
    )


def shown(address: tuple[str, int], name: str) -> bytes:
    """The certificate (DER) that a server shows to who asks for `name`. OSError. Nothing is sent to it."""
    with (
        socket.create_connection(address, timeout=10) as plain,
        unverified().wrap_socket(plain, server_hostname=name) as tls,
    ):
        return tls.getpeercert(binary_form=True) or b""


def trusted(address: tuple[str, int], name: str, trust: Trust) -> tuple[bytes, tuple[str, ...]]:
    """The certificate (DER) of a server that is trusted, and whom it is for; nobody where only a pin vouches
    for it.

    OSError, Untrusted. Nothing is sent to it.
    """
    with (
        socket.create_connection(address, timeout=10) as plain,
        context(trust, "", name).wrap_socket(plain, server_hostname=name) as tls,
    ):
        der = tls.getpeercert(binary_form=True) or b""
        if trust.sha256:
            check_pin(der, trust.sha256, name)
        return der, tuple(str(each[1]) for each in (tls.getpeercert() or {}).get("subjectAltName", ()))


def objection(address: tuple[str, int], name: str, trust: Trust, extra_pem: str = "") -> str:
    """Why a server's certificate is not trusted, or "". OSError. Nothing is sent to it."""
    try:
        with (
            socket.create_connection(address, timeout=10) as plain,
            context(trust, extra_pem, name).wrap_socket(plain, server_hostname=name) as tls,
        ):
            if trust.sha256:
                check_pin(tls.getpeercert(binary_form=True), trust.sha256, name)
    except ssl.SSLCertVerificationError as error:
        return str(error.verify_message)
    except Untrusted as error:
        return error.problems[0].why or error.problems[0].what
    return ""


def colons(digest: str) -> str:
    """`abcd…` → `AB:CD:…`."""
    return ":".join(digest[i : i + 2] for i in range(0, len(digest), 2)).upper()
