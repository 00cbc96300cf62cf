"""Bitfusion client tokens as the vCenter plug-in offers them for download: a tar of ca.crt, client.yaml and
servers.conf.
"""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from bfinfra.sandbox.factories.ova import link, member

BROKEN = ("extra file", "link", "traversal", "expired", "no blank", "missing file", "not pem")
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of the curve P-256


def make_token(
    path: Path,
    *,
    servers: Iterable[str] = ("172.24.210.80:56001",),
    name: str = "token",
    days: int = 3650,
    broken: str = "",
) -> None:
    """Write a token's tar. `servers`: host:port of each; `days` that its CA lasts from the start of the year.
    `broken`: one of BROKEN.

    The same arguments give the same bytes for a year. Raises ValueError for an unknown `broken`.
    """
    if broken and broken not in BROKEN:
        raise ValueError(f"broken: {broken!r} is none of {', '.join(BROKEN)}")
    files = {
        "ca.crt": b"no certificate\n"
        if broken == "not pem"
        else _ca(name, -1 if broken == "expired" else days),
        "client.yaml": _client(name),
        "servers.conf": _servers(servers, broken),
    }
    if broken == "missing file":
        del files["client.yaml"]
    if broken == "extra file":
        files["run.sh"] = b"#!/bin/sh\n"
    if broken == "traversal":
        files["../client.yaml"] = b"a: 1\n"
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for file, data in files.items():
            tar.addfile(member(file, len(data)), io.BytesIO(data))
        if broken == "link":
            tar.addfile(link("ca.pem", "/etc/passwd"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(out.getvalue())


def _servers(servers: Iterable[str], broken: str) -> bytes:
    colon = ":" if broken == "no blank" else ": "
    rows = "".join(f"- reachable{colon}{server}\n  addresses:\n  - {server}\n" for server in servers)
    if broken == "no blank":
        rows = "".join(f"- reachable:{server}\n" for server in servers)
    return f"servers:\n{rows}".encode()


def _client(name: str) -> bytes:
    secret = base64.b64encode(hashlib.sha256(f"secret of {name}".encode()).digest()).decode()
    return f"client_id: {_uuid(name)}\ntoken: {secret}\n".encode()


def _uuid(name: str) -> str:
    raw = hashlib.sha256(f"client of {name}".encode()).hexdigest()
    return f"{raw[:8]}-{raw[8:12]}-4{raw[13:16]}-9{raw[17:20]}-{raw[20:32]}"


def _ca(name: str, days: int) -> bytes:
    number = int.from_bytes(hashlib.sha256(f"key of {name}".encode()).digest()) % (ORDER - 1) + 1
    key = ec.derive_private_key(number, ec.SECP256R1())
    start = datetime(datetime.now(UTC).year, 1, 1, tzinfo=UTC)
    begin, end = (
        (start, start + timedelta(days=days))
        if days > 0
        else (start - timedelta(days=730), start - timedelta(days=1))
    )
    subject = x509.Name(
        [
            x509.NameAttribute(NameOID.COMMON_NAME, "Bitfusion CA"),
            x509.NameAttribute(NameOID.ORGANIZATION_NAME, "VMware, Inc."),
        ]
    )
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(number >> 100)
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256(), ecdsa_deterministic=True)
    )
    return certificate.public_bytes(serialization.Encoding.PEM)
