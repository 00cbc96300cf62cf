"""What an OVA holds."""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from ova_packing import DISK, OVF, manifest, pack, parts

from bfinfra.backends.ova import Disk, Hardware, Network, Option, Product, Property, inspect, read, verify
from bfinfra.backends.ova.archive import members
from bfinfra.model.errors import Refusal
from bfinfra.sandbox.factories.ova import make_ova


def test_an_ova_says_what_it_holds(tmp_path: Path) -> None:
    ova = read(pack(tmp_path / "a.ova"))
    assert ova.product == Product("Bitfusion", "VMware", "3.0.0", "3.0.0-11")
    assert ova.hardware == Hardware(4, 32 << 30, "vmx-17", "efi", ("Management",))
    assert ova.networks == (Network("Management", "Where people are."),)
    assert ova.disks == (
        Disk("vmdisk1", "a-disk1.vmdk", len(DISK), 50 << 30),
        Disk("vmdisk2", "", 0, 1 << 20),
    )
    assert ova.options == (Option("small", "Small", True), Option("large", "Large"))
    assert ova.eula == ("Be kind.\nShare.",)
    assert ova.files == {"a-disk1.vmdk": len(DISK)}
    assert ova.descriptor == OVF
    assert set(ova.manifest) == {"a.ovf", "a-disk1.vmdk"}


def test_properties_are_called_as_vsphere_calls_them(tmp_path: Path) -> None:
    ova = read(pack(tmp_path / "a.ova"))
    assert ova.properties == (
        Property(
            "bf.host.1",
            "string",
            True,
            True,
            label="Host",
            category="General",
            qualifiers="MinLen(1) MaxLen(9)",
        ),
        Property("bf.secret.1", "string", False, True, True, category="General"),
        Property("bf.port.1", "uint16", False, True, default="56001", category="General"),
        Property("bf.built.1", "string", default="then", category="General"),
        Property("plain", "boolean", False, True, default="True"),
    )


def test_the_sandbox_s_ova_is_read_and_whole(tmp_path: Path) -> None:
    make_ova(tmp_path / "bf.ova")
    ova, seen = read(tmp_path / "bf.ova"), []
    verify(ova, seen.append)
    assert ova.product.name == "VMware vSphere Bitfusion Server"
    assert {p.key.split(".")[-1] for p in ova.properties if p.required} >= {
        "hostname",
        "customer_password",
        "vcenter_url",
    }
    assert all(p.password for p in ova.properties if "password" in p.key)
    assert seen == sorted(seen)
    assert seen[-1] == ova.size


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_every_form_of_tar_is_read(tmp_path: Path, form: int) -> None:
    name = "a-" + "x" * 120 + ".vmdk"
    files = (
        parts(OVF.replace("a-disk1.vmdk", name), **{name.replace(".", "_"): DISK})
        if form != tarfile.USTAR_FORMAT
        else parts()
    )
    ova = read(pack(tmp_path / "a.ova", files, form=form))
    verify(ova, lambda _: None)
    with ova.open(next(iter(ova.files))) as stream:
        assert stream.read() == DISK


def test_system_tar_makes_an_ova_that_is_read(tmp_path: Path) -> None:
    for name, data in parts().items():
        (tmp_path / name).write_bytes(data)
    subprocess.run(["tar", "-cf", "a.ova", "a.ovf", "a.mf", "a-disk1.vmdk"], cwd=tmp_path, check=True)
    verify(read(tmp_path / "a.ova"), lambda _: None)


def test_a_size_beyond_eight_gigabytes_is_read_from_a_sparse_file(tmp_path: Path) -> None:
    size = 9 << 30
    info = tarfile.TarInfo("a-disk1.vmdk")
    info.size = size
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        path = pack(tmp_path / "a.ova", {"a.ovf": OVF.replace(str(len(DISK)), str(size)).encode()}, form=form)
        with path.open("r+b") as stream:
            stream.truncate(0)
            text = OVF.replace(str(len(DISK)), str(size)).encode()
            head = tarfile.TarInfo("a.ovf")
            head.size = len(text)
            stream.write(head.tobuf(form) + text + bytes(-len(text) % 512) + info.tobuf(form) + DISK)
            os.truncate(stream.fileno(), stream.tell() - len(DISK) + size + 1024)
        assert read(path).files == {"a-disk1.vmdk": size}


def test_a_stream_is_bounded_by_its_member(tmp_path: Path) -> None:
    ova = read(pack(tmp_path / "a.ova"))
    with ova.open("a-disk1.vmdk") as stream:
        assert stream.read(4) == b"KDMV"
        assert stream.read() == DISK[4:]
        assert stream.read() == b""
    with ova.open("a.ovf") as one, ova.open("a-disk1.vmdk") as two:
        assert two.read(4) == b"KDMV"
        assert one.read(5) == b"<?xml"


def test_a_file_that_changed_in_between_is_refused(tmp_path: Path) -> None:
    ova = read(pack(tmp_path / "a.ova"))
    pack(tmp_path / "a.ova", parts(OVF + " "))
    with pytest.raises(Refusal, match="changed while"):
        ova.open("a-disk1.vmdk")
    with pytest.raises(Refusal, match="changed while"):
        verify(ova, lambda _: None)


def test_inspect_is_json_and_says_the_state_of_the_manifest(tmp_path: Path) -> None:
    ova = read(pack(tmp_path / "a.ova"))
    found = inspect(ova)
    assert json.loads(json.dumps(found)) == found
    assert (found["manifest"], found["signature"]) == (
        {"state": "present", "algorithms": ["SHA256"], "files": 2},
        None,
    )
    assert inspect(ova, verified=True)["manifest"]["state"] == "verified"
    bare = {name: data for name, data in parts().items() if name != "a.mf"}
    assert inspect(read(pack(tmp_path / "b.ova", bare)))["manifest"]["state"] == "absent"


def test_the_digest_of_the_whole_is_checked_where_given(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.ova", {name: data for name, data in parts().items() if name != "a.mf"})
    right = hashlib.sha256(path.read_bytes()).hexdigest()
    verify(read(path), lambda _: None, sha256=right.upper())
    with pytest.raises(Refusal, match="not the expected file"):
        verify(read(path), lambda _: None, sha256="0" * 64)
    with pytest.raises(Refusal, match="no manifest"):
        verify(read(path), lambda _: None)


@pytest.mark.parametrize("algorithm", ["SHA1", "SHA256", "SHA512"])
def test_every_algorithm_is_checked(tmp_path: Path, algorithm: str) -> None:
    files = parts()
    files["a.mf"] = manifest({k: v for k, v in files.items() if k != "a.mf"}, algorithm)
    verify(read(pack(tmp_path / "a.ova", files)), lambda _: None)
    files["a-disk1.vmdk"] = DISK[:-1] + b"!"
    with pytest.raises(Refusal, match=r"a-disk1\.vmdk is damaged"):
        verify(read(pack(tmp_path / "a.ova", files)), lambda _: None)


def test_reading_takes_little_of_a_large_file(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.ova")

    class Counting(io.FileIO):
        def read(self, size: int | None = -1) -> bytes:
            data = super().read(-1 if size is None else size)
            taken.append(len(data))
            return data

    taken: list[int] = []
    with Counting(path) as stream:
        members(path, stream, path.stat().st_size)
    assert sum(taken) == 512 * 4


def test_without_a_digest_of_the_whole_each_byte_is_digested_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, made = pack(tmp_path / "a.ova"), []
    right = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(
        sys.modules["bfinfra.backends.ova.verify"],
        "hashlib",
        SimpleNamespace(sha256=lambda: made.append("whole") or hashlib.sha256(), new=hashlib.new),
    )
    verify(read(path), lambda _: None)
    assert made == []
    verify(read(path), lambda _: None, sha256=right)
    assert made == ["whole"]
