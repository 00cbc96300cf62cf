"""Decides which certificates to trust: makes an SSLContext for each server from a Trust, with the pin that
every handshake is checked against.
"""

from __future__ import annotations

import hashlib
import secrets
import socket
import ssl
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import truststore

from bfinfra.formats.shell import word
from bfinfra.model.errors import Untrusted
from bfinfra.model.files import PRIVATE, write_whole
from bfinfra.model.sources import small
from bfinfra.model.trust import Trust

OLDEST = ssl.TLSVersion.TLSv1_2  # whatever the machine's own openssl.cnf allows
BROKEN = (
    ssl.SSLEOFError,
    ssl.SSLZeroReturnError,
    ssl.SSLSyscallError,
)  # the connection ended without a refusal
DATES = (9, 10)  # OpenSSL's codes for a certificate that isn't valid yet, or has expired
PARTIAL = getattr(ssl, "VERIFY_X509_PARTIAL_CHAIN", ssl.VerifyFlags(0x80000))


def context(trust: Trust, extra_pem: str = "", server: str = "") -> ssl.SSLContext:
    """The context for one server. A pin needs `check_pin` after every handshake. Raises Untrusted for
    unusable authorities.

    `extra_pem`: authorities in addition to the system's store, if the site names none.
    """
    if trust.sha256:
        return settled(unverified())
    if trust.ca_file is None and trust.ca_pem is None and not extra_pem:
        system: ssl.SSLContext = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        system.minimum_version = OLDEST
        return settled(system)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    own.minimum_version = OLDEST
    own.verify_flags |= PARTIAL  # a self-signed server certificate as its own authority is enough
    if trust.ca_file is None and trust.ca_pem is None:
        own.load_default_certs()
    try:
        pem = small(trust.ca_file.path) if trust.ca_file else trust.ca_pem or extra_pem
        # Bundles name authorities in their own letters; Python takes ASCII only, and a certificate is that.
        own.load_verify_locations(cadata=pem.encode("ascii", "replace").decode("ascii"))
    except (OSError, ValueError) as error:
        name = str(trust.ca_file.path) if trust.ca_file else "the given authorities"
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
    """A context whose ALPN protocols are fixed. HTTP libraries set them again for each connection, and
    OpenSSL frees the list while another thread copies it.

    Its greeting is then garbled, and the server hangs up ("decode error").
    """
    context.set_alpn_protocols(["http/1.1"])
    context.set_alpn_protocols = _stand  # type: ignore[method-assign]  # they are set already
    return context


def _stand(alpn_protocols: object) -> None:
    """Nothing: the protocols are the same each time."""


def unverified() -> ssl.SSLContext:
    """A context that accepts any certificate: only with `check_pin`, or to read a fingerprint."""
    free = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    free.minimum_version = OLDEST
    free.check_hostname = False
    free.verify_mode = ssl.CERT_NONE
    return free


def identify(context: ssl.SSLContext, certificate: str, key: str, server: str) -> None:
    """Show a client certificate (PEM, with its key) to the server. Raises Untrusted if they don't fit."""
    from cryptography.hazmat.primitives import serialization as forms  # noqa: PLC0415 - few clusters know their users by certificate

    # OpenSSL reads a chain from files only. The file is useless after a crash: its password exists only in
    # this process.
    password = secrets.token_bytes(32).hex().encode()
    with tempfile.TemporaryDirectory(prefix="bfinfra-") as folder:  # mode 0700
        try:
            loaded = forms.load_pem_private_key(key.encode(), None)
            sealed = loaded.private_bytes(
                forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.BestAvailableEncryption(password)
            )
            mine, its_key = Path(folder, "certificate.pem"), Path(folder, "key.pem")
            write_whole(mine, certificate, PRIVATE)
            write_whole(its_key, sealed, PRIVATE)
            context.load_cert_chain(mine, its_key, password=password)
        except (OSError, TypeError, ValueError):
            raise Untrusted(
                "the client certificate can't be used",
                server=server,
                why="certificate and key don't fit, or are not PEM",
                next="create the kubeconfig again",
            ) from None


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
            f"bfinfra trust {word(server)} shows the certificate",
        )


def refused(error: ssl.SSLCertVerificationError, address: tuple[str, int], server: str) -> Untrusted:
    """The error for a certificate that did not verify, with its fingerprint, which is read for this."""
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
        + f"bfinfra trust {word(server)} shows the certificate",
    )


def unfit(error: ssl.SSLError, server: str) -> Untrusted:
    """The error for a server that offers no secure connection."""
    reason = error.reason or ""
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"):
        return Untrusted(
            "it does not speak TLS",
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
    """The certificate (DER) that a server shows for `name`. Raises OSError. No request is sent."""
    with (
        socket.create_connection(address, timeout=10) as plain,
        unverified().wrap_socket(plain, server_hostname=name) as tls,
    ):
        return tls.getpeercert(binary_form=True) or b""


def trusted(address: tuple[str, int], name: str, trust: Trust) -> tuple[bytes, tuple[str, ...]]:
    """The certificate (DER) of a trusted server, and the names it is valid for; () if only a pin proves it.
    Raises OSError, Untrusted. No request is sent.
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
    """Return why a server's certificate is not trusted, or "". Raises OSError. No request is sent."""
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
