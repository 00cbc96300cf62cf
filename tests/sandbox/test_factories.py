"""Made files are what they claim to be, the same each time, or broken in the way asked for."""

from __future__ import annotations

import hashlib
import shutil
import struct
import subprocess
import tarfile
import zlib
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from lxml import etree

from bfinfra.sandbox.factories import ova, token
from bfinfra.sandbox.factories.deb import make_deb
from bfinfra.sandbox.factories.files import make_files
from bfinfra.sandbox.factories.ova import make_ova
from bfinfra.sandbox.factories.token import make_token
from bfinfra.sandbox.factories.vmdk import make_vmdk
from bfinfra.sandbox.reading import BadWorld
from bfinfra.sandbox.world_outside import File

OVF = "{http://schemas.dmtf.org/ovf/envelope/1}"


def unpacked(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {each.name: tar.extractfile(each).read() for each in tar if each.isreg()}


def test_an_ova_has_a_manifest_that_holds_and_disks_of_the_sizes_described(tmp_path: Path) -> None:
    make_ova(tmp_path / "a.ova", disk=1 << 17)
    files = unpacked(tmp_path / "a.ova")
    assert list(files) == ["a.ovf", "a.mf", "a-disk1.vmdk", "a-disk2.vmdk"]
    for line in files["a.mf"].decode().splitlines():
        name, _, digest = line.removeprefix("SHA256(").partition(")= ")
        assert hashlib.sha256(files[name]).hexdigest() == digest
    envelope = etree.fromstring(files["a.ovf"])
    sizes = {each.get(f"{OVF}href"): int(each.get(f"{OVF}size")) for each in envelope.iter(f"{OVF}File")}
    assert sizes == {name: len(files[name]) for name in files if name.endswith(".vmdk")}


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        make_ova(tmp_path / folder / "x.ova", disk=1 << 17)
        make_token(tmp_path / folder / "x.tar", name="t")
        make_deb(tmp_path / folder / "x.deb", package="p", version="1")
    for name in ("x.ova", "x.tar", "x.deb"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_the_descriptor_asks_for_properties_by_class_and_instance(tmp_path: Path) -> None:
    make_ova(tmp_path / "a.ova", disk=1 << 17)
    envelope = etree.fromstring(unpacked(tmp_path / "a.ova")["a.ovf"])
    ids = {
        ".".join(
            filter(None, (section.get(f"{OVF}class"), each.get(f"{OVF}key"), section.get(f"{OVF}instance")))
        ): each
        for section in envelope.iter(f"{OVF}ProductSection")
        for each in section.iter(f"{OVF}Property")
    }
    assert {"hostname", "vcenter_password", "network.ip_cidr.1", "network.mtu.4"} <= set(ids)
    assert [key for key, each in ids.items() if each.get(f"{OVF}password") == "true"] == [
        "customer_password",
        "vcenter_password",
    ]
    assert len(list(envelope.iter(f"{OVF}Network"))) == 4


def test_a_vmdk_reads_back_by_the_published_format() -> None:
    disk = make_vmdk(50 << 30, 3 << 16, "seed")
    magic, version, flags, capacity, grain, _, _, entries, _, _, overhead = struct.unpack_from(
        "<4sIIQQQQIQQQ", disk
    )
    assert (magic, version, flags, capacity, grain, entries) == (
        b"KDMV",
        3,
        0x30001,
        (50 << 30) // 512,
        128,
        512,
    )
    footer = struct.unpack_from("<4sIIQQQQIQQQ", disk, len(disk) - 1024)
    directory = struct.unpack_from("<I", disk, footer[9] * 512)[0]
    table = struct.unpack_from("<512I", disk, directory * 512)
    grains = [each for each in table if each]
    assert len(grains) == 3 and grains[0] == overhead
    for number, at in enumerate(grains):
        sector, size = struct.unpack_from("<QI", disk, at * 512)
        assert sector == number * 128
        assert len(zlib.decompress(disk[at * 512 + 12 : at * 512 + 12 + size])) == 65536


@pytest.mark.parametrize("broken", ova.BROKEN)
def test_a_broken_ova_differs_from_the_whole_one(broken: str, tmp_path: Path) -> None:
    make_ova(tmp_path / "x.ova", disk=1 << 17)
    make_ova(tmp_path / "y" / "x.ova", disk=1 << 17, broken=broken)
    assert (tmp_path / "x.ova").read_bytes() != (tmp_path / "y" / "x.ova").read_bytes()


def test_a_token_holds_a_certificate_and_servers(tmp_path: Path) -> None:
    make_token(tmp_path / "t.tar", servers=["10.0.0.1:56001", "10.0.0.2:56001"])
    files = unpacked(tmp_path / "t.tar")
    certificate = x509.load_pem_x509_certificate(files["ca.crt"])
    certificate.verify_directly_issued_by(certificate)
    assert [each["reachable"] for each in yaml.safe_load(files["servers.conf"])["servers"]] == [
        "10.0.0.1:56001",
        "10.0.0.2:56001",
    ]
    assert isinstance(yaml.safe_load(files["client.yaml"]), dict)


@pytest.mark.parametrize("broken", token.BROKEN)
def test_a_broken_token_differs_from_the_whole_one(broken: str, tmp_path: Path) -> None:
    make_token(tmp_path / "a.tar")
    make_token(tmp_path / "b.tar", broken=broken)
    assert (tmp_path / "a.tar").read_bytes() != (tmp_path / "b.tar").read_bytes()


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="dpkg is not installed")
def test_dpkg_reads_a_package(tmp_path: Path) -> None:
    make_deb(tmp_path / "p.deb", package="bitfusion-client-ubuntu2004", version="3.0.0-11")
    found = subprocess.run(
        ["dpkg", "--info", str(tmp_path / "p.deb")], capture_output=True, check=True, text=True
    )
    assert "Version: 3.0.0-11" in found.stdout


@pytest.mark.parametrize(
    ("name", "file", "message"),
    [
        ("../x", File("text", {"text": "a"}), "leaves"),
        ("x", File("cake"), "'cake'"),
        ("x", File("text"), "'text'"),
        ("x", File("ova", {"broken": "somehow"}), "somehow"),
        ("x", File("ova", {"disk": "much"}), "much"),
        ("x", File("token", {"colour": 1}), "colour"),
        ("x", File("kubeconfig", {"cluster": "attic"}), "no attic; it has none"),
        ("x", File("kubeconfig"), "'cluster'"),
    ],
)
def test_a_file_that_cannot_be_made_is_named(name: str, file: File, message: str, tmp_path: Path) -> None:
    with pytest.raises(BadWorld, match="files") as caught:
        make_files({name: file}, tmp_path, "ca")
    assert message in str(caught.value)
