"""A signed manifest, signed by openssl as its manual says."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from ova_packing import DISK, manifest, pack, parts

from bfinfra.backends.ova import Ova, inspect, read, verify
from bfinfra.model.errors import Refusal

pytestmark = [
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed"),
    pytest.mark.thorough,
]
KEYS = {
    "rsa": ["-newkey", "rsa:2048"],
    "ec": ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"],
    "ed25519": ["-newkey", "ed25519"],
}


def openssl(folder: Path, *words: str, given: bytes = b"") -> bytes:
    return subprocess.run(
        ["openssl", *words], cwd=folder, input=given, check=True, capture_output=True
    ).stdout


def signed(
    folder: Path, data: bytes, *, algorithm: str = "SHA256", key: str = "rsa", name: str = "a.mf"
) -> bytes:
    """A .cert for a manifest."""
    openssl(
        folder,
        "req",
        "-x509",
        *KEYS[key],
        "-nodes",
        "-keyout",
        "key.pem",
        "-out",
        "cert.pem",
        "-days",
        "9",
        "-subj",
        "/O=Bitfusion/CN=Builder",
    )
    value = (
        openssl(folder, "dgst", f"-{algorithm.lower()}", "-sign", "key.pem", given=data)
        if key != "ed25519"
        else b"x"
    )
    return f"{algorithm}({name})= {value.hex()}\n".encode() + (folder / "cert.pem").read_bytes()


def packed(folder: Path, cert: bytes, mf: bytes | None = None) -> Ova:
    files = parts() | {"a.cert": cert}
    return read(pack(folder / "a.ova", files | ({"a.mf": mf} if mf else {})))


@pytest.mark.parametrize("algorithm", ["SHA1", "SHA256", "SHA512"])
@pytest.mark.parametrize("key", ["rsa", "ec"])
def test_a_right_signature_names_who_made_it(tmp_path, algorithm, key):
    ova = packed(tmp_path, signed(tmp_path, parts()["a.mf"], algorithm=algorithm, key=key))
    verify(ova, lambda _: None)
    found = inspect(ova)["signature"]
    output = (
        openssl(tmp_path, "x509", "-in", "cert.pem", "-noout", "-fingerprint", "-sha256")
        .decode()
        .strip()
        .partition("=")[2]
        .replace(":", "")
        .lower()
    )
    assert (found["sha256"], found["subject"], found["own"], found["expired"], found["algorithm"]) == (
        output,
        "CN=Builder,O=Bitfusion",
        True,
        False,
        algorithm,
    )


def test_a_manifest_that_somebody_changed_is_refused_before_anything_is_read(tmp_path):
    cert = signed(tmp_path, parts()["a.mf"])
    other = manifest({"a.ovf": parts()["a.ovf"], "a-disk1.vmdk": DISK[:-1] + b"!"})
    with pytest.raises(Refusal, match="its signature is not that of its manifest"):
        packed(tmp_path, cert, other)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda cert: b"nothing", "can't be understood"),
        (lambda cert: cert.replace(b"(a.mf)", b"(b.mf)"), "signs b.mf, not a.mf"),
        (lambda cert: cert.replace(b"SHA256(", b"SHA3(", 1), "uses SHA3"),
        (lambda cert: cert.replace(b"MII", b"AAA"), "can't be read"),
        (lambda cert: cert.partition(b"-----BEGIN")[0], "can't be understood"),
    ],
)
def test_what_is_no_signature_is_refused(tmp_path, change, message):
    with pytest.raises(Refusal, match=message):
        packed(tmp_path, change(signed(tmp_path, parts()["a.mf"])))


def test_a_key_that_signs_no_digest_is_refused(tmp_path):
    with pytest.raises(Refusal, match="neither RSA nor of an elliptic curve"):
        packed(tmp_path, signed(tmp_path, parts()["a.mf"], key="ed25519"))


def test_a_certificate_without_a_manifest_or_under_another_name_is_refused(tmp_path):
    cert = signed(tmp_path, parts()["a.mf"])
    with pytest.raises(Refusal, match="a certificate and no manifest"):
        read(
            pack(
                tmp_path / "a.ova",
                {name: data for name, data in (parts() | {"a.cert": cert}).items() if name != "a.mf"},
            )
        )
    with pytest.raises(Refusal, match=r"its certificate is not called a\.cert"):
        read(pack(tmp_path / "a.ova", parts() | {"b.cert": cert}))
