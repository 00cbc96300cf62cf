"""OVAs that lie, or are broken: each is refused with a reason, before its disks are read."""

from __future__ import annotations

import random
import tarfile
import time
from pathlib import Path

import pytest
from ova_packing import DISK, OVF, manifest, pack, parts

from bfinfra.backends.ova import read, verify
from bfinfra.model.errors import Refusal
from bfinfra.sandbox.factories.ova import BROKEN, make_ova


def refused(path: Path) -> str:
    with pytest.raises(Refusal) as caught:
        verify(read(path), lambda _: None)
    problem = caught.value.problems[0]
    assert caught.value.field == "ova"
    assert problem.next
    assert path.name in problem.what
    return str(problem)


@pytest.mark.parametrize("broken", BROKEN)
def test_every_broken_ova_of_the_sandbox_is_refused(tmp_path: Path, broken: str) -> None:
    make_ova(tmp_path / "a.ova", broken=broken)
    assert refused(tmp_path / "a.ova")


@pytest.mark.parametrize(
    "name",
    ["../x", "/etc/x", "a/b.vmdk", "..", "a\\b", "C:x", ".hidden", "a\nb", "a\x1b[31m", "x" * 99 + "\u202e"],
)
def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    message = refused(pack(tmp_path / "a.ova", parts() | {name: b"x"}, form=tarfile.PAX_FORMAT))
    assert "holds a file called" in message
    assert message.isprintable()


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (tarfile.SYMTYPE, "a symbolic link"),
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.BLKTYPE, "a device"),
        (tarfile.FIFOTYPE, "a pipe"),
        (tarfile.DIRTYPE, "a folder"),
        (tarfile.GNUTYPE_SPARSE, "a sparse file"),
        (b"Z", "not a file"),
    ],
)
def test_only_plain_files_are_let_in(tmp_path: Path, kind: bytes, message: str) -> None:
    member = tarfile.TarInfo("b.vmdk")
    member.type, member.linkname = kind, "/etc/passwd"
    assert message in refused(pack(tmp_path / "a.ova", parts(), member))


def test_an_extended_header_cannot_smuggle_a_path_in(tmp_path: Path) -> None:
    member = tarfile.TarInfo("b.vmdk")
    member.pax_headers = {"path": "../../b.vmdk"}
    assert "holds a file called" in refused(
        pack(tmp_path / "a.ova", parts(), member, form=tarfile.PAX_FORMAT)
    )


def test_an_extended_header_cannot_make_a_sparse_file(tmp_path: Path) -> None:
    member = tarfile.TarInfo("b.vmdk")
    member.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
    assert "sparse" in refused(pack(tmp_path / "a.ova", parts(), member, form=tarfile.PAX_FORMAT))


def test_a_huge_extended_header_is_not_read(tmp_path: Path) -> None:
    member = tarfile.TarInfo("b.vmdk")
    member.pax_headers = {"comment": "x" * (1 << 20)}
    assert "one of its headers has" in refused(
        pack(tmp_path / "a.ova", parts(), member, form=tarfile.PAX_FORMAT)
    )


def test_a_size_that_leads_past_the_end_is_refused(tmp_path: Path) -> None:
    member = tarfile.TarInfo("b.vmdk")
    member.size = 1 << 40
    assert "cut short" in refused(pack(tmp_path / "a.ova", parts(), member, form=tarfile.GNU_FORMAT))


def test_thousands_of_files_are_refused(tmp_path: Path) -> None:
    assert "more than 256 files" in refused(
        pack(tmp_path / "a.ova", parts() | {f"f{n}": b"" for n in range(300)})
    )


def test_an_archive_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = pack(tmp_path / "a.ova").read_bytes()
    end = len(whole.rstrip(b"\0"))
    for cut in (1, 511, 512, 700, end // 2, end - 600, end):
        (tmp_path / "b.ova").write_bytes(whole[:cut])
        assert refused(tmp_path / "b.ova")


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04 a zip", b"\x1f\x8b a gzip", b"<html>log in</html>" * 100, bytes(10240)]
)
def test_what_is_no_tar_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.ova").write_bytes(content)
    assert "not an OVA" in (message := refused(tmp_path / "a.ova")) or "is empty" in message


def test_a_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    pack(tmp_path / "server.ova")
    assert "did you mean server.ova?" in refused(tmp_path / "sever.ova")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.ova").mkdir()
    assert "can't be read" in refused(tmp_path / "a.ova")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.replace(b"SHA256(a-disk1.vmdk)", b"SHA256(b.vmdk)"), "lacks a-disk1.vmdk"),
        (lambda m: m + b"SHA256(ghost.vmdk)= " + b"0" * 64, "names ghost.vmdk, which it does not hold"),
        (lambda m: m + m, "twice"),
        (lambda m: m.replace(b"SHA256", b"MD5"), "can't be understood"),
        (lambda m: m.replace(b"= ", b"= 0"), "can't be understood"),
        (lambda m: b"\xff\xfe\x00junk", "can't be understood"),
        (lambda m: b"", "lacks"),
        (lambda m: m.replace(b"= ", b"= " + b"0" * 64 + b"#")[:-1], "can't be understood"),
    ],
)
def test_a_wrong_manifest_is_refused(tmp_path: Path, change: object, message: str) -> None:
    files = parts()
    files["a.mf"] = change(files["a.mf"])
    assert message in refused(pack(tmp_path / "a.ova", files))


def test_a_manifest_for_another_descriptor_does_not_count(tmp_path: Path) -> None:
    files = parts()
    files["b.mf"] = files.pop("a.mf")
    assert "manifest is not called a.mf" in refused(pack(tmp_path / "a.ova", files))


def test_two_descriptors_are_refused(tmp_path: Path) -> None:
    assert "holds 2 OVF descriptors" in refused(pack(tmp_path / "a.ova", parts(b_ovf=OVF.encode())))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('ovf:href="a-disk1.vmdk"', 'ovf:href="other.vmdk"', "refers to other.vmdk, which it does not hold"),
        (
            'ovf:href="a-disk1.vmdk"',
            'ovf:href="http://evil.example/x.vmdk"',
            "x.vmdk is outside of the archive",
        ),
        (f'ovf:size="{len(DISK)}"', 'ovf:size="5"', "and its descriptor says 5"),
        (f'ovf:size="{len(DISK)}"', 'ovf:size="many"', "a whole number is expected"),
        (f'ovf:size="{len(DISK)}"', f'ovf:size="{len(DISK)}" ovf:chunkSize="100"', "split into chunks"),
        ('ovf:fileRef="file1"', 'ovf:fileRef="file9"', "does not list"),
        ("byte * 2^30", "furlongs", "its capacity is counted in 'furlongs'"),
        ('ovf:capacity="50"', 'ovf:capacity="-1"', "a whole number is expected"),
        ('ovf:capacity="50"', f'ovf:capacity="{"9" * 5000}"', "a whole number is expected"),
        ('ovf:key="secret"', 'ovf:key="host"', "names the property bf.host.1 twice"),
        ("VirtualHardwareSection>", "OperatingSystemSection>", "no hardware"),
        ("<VirtualSystem ", "<VirtualSystem/><VirtualSystem ", "exactly one virtual machine"),
        ("envelope/1", "envelope/9", "no OVF envelope"),
        ("</Envelope>", "", "no XML"),
        ("<Envelope ", "<!DOCTYPE x><Envelope ", "document type"),
        ("<Envelope ", '<!DOCTYPE x SYSTEM "file:///etc/passwd"><Envelope ', "document type"),
        ('encoding="UTF-8"', 'encoding="EBCDIC-CP-US"', "descriptor"),
        ('encoding="UTF-8"', 'encoding="UTF-7"', "descriptor"),
    ],
)
def test_a_descriptor_that_lies_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in OVF
    assert message in refused(pack(tmp_path / "a.ova", parts(OVF.replace(old, new))))


ENTITIES = (
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {chr(98 + n)} "{f"&{chr(97 + n)};" * 10}">' for n in range(9))
    + "%s]><Envelope "
)


@pytest.mark.parametrize(
    "text",
    [
        OVF.replace("<Envelope ", ENTITIES % "").replace("Be kind.", "&j;"),
        OVF.replace("<Envelope ", ENTITIES % "").replace('ovf:key="host"', 'ovf:key="&j;"'),
        OVF.replace("<Envelope ", ENTITIES % '<!ENTITY file SYSTEM "file:///etc/passwd">').replace(
            "Be kind.", "&file;"
        ),
        OVF.replace("<Envelope ", ENTITIES % '<!ENTITY % far SYSTEM "http://127.0.0.1:9/x"> %far;'),
        OVF.replace("Be kind.", "<x>" * 100_000),
    ],
)
def test_entity_tricks_and_depth_are_refused_quickly(tmp_path: Path, text: str) -> None:
    began = time.process_time()
    message = refused(pack(tmp_path / "a.ova", parts(text)))
    assert "descriptor" in message
    assert "root:" not in message
    assert time.process_time() - began < 3


def test_entity_tricks_in_utf_16_are_refused_too(tmp_path: Path) -> None:
    text = OVF.replace("UTF-8", "UTF-16").replace("<Envelope ", ENTITIES % "").replace("Be kind.", "&j;")
    assert "descriptor" in refused(pack(tmp_path / "a.ova", parts(text.encode("utf-16"))))


def test_a_huge_descriptor_is_not_read(tmp_path: Path) -> None:
    assert "more than 4 MiB are not read" in refused(pack(tmp_path / "a.ova", parts(OVF + " " * (5 << 20))))


def test_words_of_the_descriptor_are_fit_for_a_screen(tmp_path: Path) -> None:
    ova = read(
        pack(
            tmp_path / "a.ova",
            parts(
                OVF.replace("Be kind.", "Be\u202e kind\u009b.").replace(">Host<", ">" + "x" * 200_000 + "<")
            ),
        )
    )
    assert ova.eula == ("Be kind.\nShare.",)
    assert len(ova.properties[0].label) <= 1 << 16


def test_no_noise_in_it_does_anything_but_a_refusal(tmp_path: Path) -> None:
    whole = pack(tmp_path / "a.ova").read_bytes()
    dice, path = random.Random(7), tmp_path / "b.ova"
    for _ in range(300):
        noisy = bytearray(whole)
        for _ in range(dice.choice((1, 3, 30))):
            noisy[dice.randrange(len(noisy.rstrip(b"\0")))] = dice.choice(
                (0, 10, 34, 47, 60, 255, dice.randrange(256))
            )
        path.write_bytes(noisy)
        try:
            verify(read(path), lambda _: None)
        except Refusal as error:
            assert str(error).isprintable()


def test_a_digest_that_differs_is_refused(tmp_path: Path) -> None:
    files = parts()
    files["a.mf"] = manifest({"a.ovf": files["a.ovf"], "a-disk1.vmdk": b"other"})
    assert "a-disk1.vmdk is damaged; its SHA256 is" in refused(pack(tmp_path / "a.ova", files))
