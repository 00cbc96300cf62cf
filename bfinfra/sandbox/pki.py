"""The sandbox's own certificate authority: one CA a state folder, one leaf a host, both kept so that pins
last.
"""

from __future__ import annotations

import ipaddress
import os
import re
import ssl
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Key = ec.EllipticCurvePrivateKey
YEAR = timedelta(days=365)


class Pki:
    """Certificates under a folder. Safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.ca_file = folder / "ca.pem"
        if not self.ca_file.exists():
            key = ec.generate_private_key(ec.SECP256R1())
            _write(folder / "ca.key", _pem(key))
            _write(self.ca_file, _ca(key).public_bytes(serialization.Encoding.PEM))
        self._ca = x509.load_pem_x509_certificate(self.ca_file.read_bytes())
        self._key = _read_key(folder / "ca.key")

    @property
    def ca_pem(self) -> str:
        """The CA's certificate."""
        return self.ca_file.read_text()

    def leaf(self, host: str) -> Path:
        """A PEM file with key and certificate for the host (and localhost and 127.0.0.1), made once."""
        path = self._folder / f"{re.sub(r'[^A-Za-z0-9.-]', '_', host)}.pem"
        with self._lock:
            if not path.exists():
                key = ec.generate_private_key(ec.SECP256R1())
                _write(path, _pem(key) + self._leaf(host, key).public_bytes(serialization.Encoding.PEM))
        return path

    def certificate(self, host: str) -> str:
        """The host's certificate as PEM, without its key."""
        text = self.leaf(host).read_text()
        return text[text.index("-----BEGIN CERTIFICATE") :]

    def ssh_key(self, name: str) -> str:
        """A private key of SSH under this name, made once."""
        path = self._folder / f"ssh-{re.sub(r'[^A-Za-z0-9.-]', '_', name)}"
        with self._lock:
            if not path.exists():
                key = ed25519.Ed25519PrivateKey.generate()
                _write(
                    path,
                    key.private_bytes(
                        serialization.Encoding.PEM,
                        serialization.PrivateFormat.OpenSSH,
                        serialization.NoEncryption(),
                    ),
                )
        return path.read_text()

    def ssh_public(self, name: str) -> str:
        """Its public key: type and base64."""
        public = serialization.load_ssh_private_key(self.ssh_key(name).encode(), None).public_key()
        return public.public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        ).decode()

    def context(self, host: str) -> ssl.SSLContext:
        """Return the TLS settings of a server for this host."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.leaf(host))
        context.set_alpn_protocols(["http/1.1"])
        return context

    def _leaf(self, host: str, key: Key) -> x509.Certificate:
        names = list(dict.fromkeys([_name(host), x509.DNSName("localhost"), _name("127.0.0.1")]))
        return (
            _builder(host[:64], self._ca.subject, key, YEAR * 2)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )


def _ca(key: Key) -> x509.Certificate:
    name = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, "bfinfra sandbox CA"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "bfinfra sandbox"),
        ]
    )
    return (
        _builder("bfinfra sandbox CA", name, key, YEAR * 10)
        .subject_name(name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(ca=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _builder(common: str, issuer: x509.Name, key: Key, life: timedelta) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    own = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])
    return (
        builder
        if own == issuer or issuer.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == common
        else builder.subject_name(own)
    )


def _usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not ca,
        key_cert_sign=ca,
        crl_sign=ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: Key) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _read_key(path: Path) -> Key:
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return key


def _write(path: Path, data: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
