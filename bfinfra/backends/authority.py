"""Makes a certificate authority for one webhook. It is made here, kept in the cluster, and never printed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from bfinfra.model.records import dataclass

UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm)
"""Errors for a key that is damaged, has a passphrase, or is of another sort."""
EARLY = timedelta(minutes=5)  # for clocks that are slow


@dataclass(frozen=True)
class Certificate:
    """`fingerprint`: the first 16 hexadecimal digits of its SHA-256; `not_after`: UTC; `names`: its DNS
    names.
    """

    fingerprint: str
    not_after: datetime
    names: tuple[str, ...] = ()


def make(name: str, days: int) -> tuple[bytes, bytes]:
    """Certificate and key of a new authority, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
    ident = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    built = (
        _builder(subject, subject, key, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(ca=True), critical=True)
        .add_extension(ident, critical=False)
    )
    return _pem(built.sign(key, hashes.SHA256())), _key_pem(key)


def issue(authority: bytes, key: bytes, names: Sequence[str], days: int) -> tuple[bytes, bytes]:
    """Certificate and key for a server of these names, PEM, signed by the first certificate of `authority`.
    Raises ValueError if key and authority don't fit.
    """
    if not belongs(authority, key):
        raise ValueError("the authority's key is not the one of its certificate")
    signer, signing = x509.load_pem_x509_certificates(authority)[0], _read_key(key)
    own = ec.generate_private_key(ec.SECP256R1())
    built = (
        _builder(
            x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[-1][:64])]), signer.subject, own, days
        )
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(ca=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False
        )
    )
    return _pem(built.sign(signing, hashes.SHA256())), _key_pem(own)


def read(pem: bytes) -> tuple[Certificate, ...]:
    """The certificates in a text, in order; () if it has none that can be read."""
    try:
        found = x509.load_pem_x509_certificates(pem)
    except ValueError:
        return ()
    return tuple(Certificate(_fingerprint(each), each.not_valid_after_utc, _names(each)) for each in found)


def belongs(certificate: bytes, key: bytes) -> bool:
    """Return whether a key belongs to the first certificate."""
    try:
        return bool(
            x509.load_pem_x509_certificates(certificate)[0].public_key() == _read_key(key).public_key()
        )
    except UNREADABLE:
        return False


def signer(certificate: bytes, authorities: bytes) -> str:
    """The fingerprint of the authority that signed the first certificate; "" if none of these did."""
    try:
        leaf, found = (
            x509.load_pem_x509_certificates(certificate)[0],
            x509.load_pem_x509_certificates(authorities),
        )
    except ValueError:
        return ""
    return next((_fingerprint(each) for each in found if _signed(leaf, each)), "")


def unexpired(pem: bytes) -> bytes:
    """The certificates that have not expired, PEM."""
    now = datetime.now(UTC)
    try:
        return b"".join(
            _pem(each) for each in x509.load_pem_x509_certificates(pem) if each.not_valid_after_utc > now
        )
    except ValueError:
        return b""


def _signed(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(authority)
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLY)
        .not_valid_after(now + timedelta(days=days))
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


def _names(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        found = certificate.extensions.get_extension_for_class(
            x509.SubjectAlternativeName
        ).value.get_values_for_type(x509.DNSName)
    except (x509.ExtensionNotFound, ValueError):
        return ()
    return tuple(found)


def _fingerprint(certificate: x509.Certificate) -> str:
    return hashlib.sha256(certificate.public_bytes(serialization.Encoding.DER)).hexdigest()[:16]


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _read_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    found = serialization.load_pem_private_key(pem, None)
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise UnsupportedAlgorithm("not a key of an elliptic curve")
    return found
