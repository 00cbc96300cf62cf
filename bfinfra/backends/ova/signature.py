"""The signature of an OVA's manifest: `<name>.cert` contains a signature of `<name>.mf`, and the signer's
certificate.

A valid signature says that the holder of the certificate's key packed the manifest and its files. Whether to
trust them is the reader's decision, who can compare the certificate's fingerprint. Source: DSP0243, chapter
5.1.
"""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import PurePath

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from bfinfra.backends.archives.bounds import shown
from bfinfra.backends.ova.source import refusal
from bfinfra.model.records import dataclass

LINE = re.compile(
    r"\s*(?P<algorithm>SHA-?\d+)\s*\((?P<name>[^)]+)\)\s*=\s*(?P<value>[0-9A-Fa-f]+)\s*$", re.MULTILINE
)
PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Signature:
    """A valid signature. Times in UTC; `sha256`: the certificate's fingerprint; `own`: it is self-signed."""

    algorithm: str
    subject: str
    issuer: str
    not_before: datetime
    not_after: datetime
    sha256: str
    own: bool


def check(path: PurePath, data: bytes, name: str, manifest: bytes) -> Signature:
    """The signature in `data` of the manifest `name`. Raises Refusal if it is none, or not of this
    manifest.
    """
    text = data.decode("latin-1")
    line, pem = LINE.match(text), PEM.search(text)
    if line is None or pem is None or len(line["value"]) % 2:
        raise refusal(
            path,
            "its certificate can't be understood",
            f"{name.removesuffix('.mf')}.cert begins with no signature, or holds no certificate",
        )
    if line["name"] != name:
        raise refusal(path, f"its certificate signs {shown(line['name'])}, not {name}")
    algorithm = line["algorithm"].replace("-", "")
    kinds: dict[str, type[hashes.HashAlgorithm]] = {
        "SHA1": hashes.SHA1,
        "SHA256": hashes.SHA256,
        "SHA384": hashes.SHA384,
        "SHA512": hashes.SHA512,
    }
    if algorithm not in kinds:
        raise refusal(path, f"its signature uses {shown(algorithm)}", f"known: {', '.join(kinds)}")
    try:
        certificate = x509.load_pem_x509_certificate(pem[0].encode("latin-1"))
        right = _signed(certificate, bytes.fromhex(line["value"]), manifest, kinds[algorithm]())
        found = _signature(certificate, algorithm)
    except ValueError as error:
        raise refusal(path, "its certificate can't be read", shown(str(error))) from None
    if not right:
        raise refusal(
            path,
            "its signature is not that of its manifest",
            "somebody changed the manifest, or signed another one",
            "do not use it; download it again",
        )
    return found


def _signed(certificate: x509.Certificate, value: bytes, manifest: bytes, kind: hashes.HashAlgorithm) -> bool:

    try:
        key = certificate.public_key()
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(value, manifest, padding.PKCS1v15(), kind)
        elif isinstance(key, ec.EllipticCurvePublicKey):
            key.verify(value, manifest, ec.ECDSA(kind))
        else:
            raise ValueError("its key is neither RSA nor of an elliptic curve")
    except InvalidSignature:
        return False
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from None
    return True


def _signature(certificate: x509.Certificate, algorithm: str) -> Signature:

    names = [shown(each.rfc4514_string()) for each in (certificate.subject, certificate.issuer)]
    return Signature(
        algorithm,
        names[0],
        names[1],
        certificate.not_valid_before_utc,
        certificate.not_valid_after_utc,
        certificate.fingerprint(hashes.SHA256()).hex(),
        certificate.subject == certificate.issuer,
    )
