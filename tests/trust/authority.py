"""Certificates of every sort, made for a test: by an authority of its own, and not by bfinfra's or the
sandbox's code.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HERE = "127.0.0.1"
DAY = dt.timedelta(days=1)


@dataclass(frozen=True)
class Shown:
    """A server's certificate with its key in one file; `ca`: the PEM of who signed it."""

    file: Path
    pem: str
    ca: str

    @property
    def sha256(self) -> str:
        return hashlib.sha256(
            x509.load_pem_x509_certificate(self.pem.encode()).public_bytes(serialization.Encoding.DER)
        ).hexdigest()


class Authority:
    def __init__(self, folder: Path, name: str = "test authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        made = _builder(self._name, self._name, self._key, dt.datetime.now(dt.UTC), DAY * 30)
        usage = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
        self._certificate = (
            made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.pem = _pem(self._certificate)

    def leaf(
        self,
        name: str = HERE,
        *,
        ends: dt.timedelta = DAY,
        begins: dt.timedelta = -DAY * 2,
        own: bool = False,
    ) -> Shown:
        """For `name`, valid from now + `begins` to now + `ends`; `own`: signed by itself."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        start = dt.datetime.now(dt.UTC) + begins
        names: list[x509.GeneralName] = [
            x509.IPAddress(ipaddress.ip_address(name)) if name[:1].isdigit() else x509.DNSName(name)
        ]
        made = _builder(subject, subject if own else self._name, key, start, ends - begins)
        signed = made.add_extension(x509.SubjectAlternativeName(names), critical=False).sign(
            key if own else self._key, hashes.SHA256()
        )
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file = self._folder / f"{signed.serial_number}.pem"
        file.write_bytes(_pem(signed).encode() + secret)
        return Shown(file, _pem(signed), self.pem)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    start: dt.datetime,
    life: dt.timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + life)
    )


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
