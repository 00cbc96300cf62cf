"""The reader of archives against those who write them: Python, GNU tar, bsdtar, zip; and against zlib, however the
packed bytes arrive.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import shutil
import subprocess
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bfinfra.backends.archives.bounds import FILE, FOLDER, BadArchive, Bounds, Budget, NoArchive
from bfinfra.backends.archives.packed import opened, unpacked
from bfinfra.backends.archives.tar import Tar
from bfinfra.backends.archives.zip import files

BOUNDS = Bounds(whole=16 << 20, member=4 << 20, members=100)
NAME = st.text(st.sampled_from("abcäß0 -._+"), min_size=1, max_size=60).filter(lambda name: name.strip("."))
PATH = st.lists(NAME, min_size=1, max_size=4).map("/".join)
TREE = st.dictionaries(PATH, st.binary(max_size=2000), max_size=5).filter(
    lambda tree: not any(one != other and other.startswith(f"{one}/") for one in tree for other in tree)
)
PACKERS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "deflate": zlib.compress}


def in_tar(whole: bytes, bounds: Bounds = BOUNDS) -> dict[str, bytes]:
    """What a stream holds."""
    budget = Budget(bounds)
    tar = Tar(opened(io.BytesIO(whole), budget), budget)
    return {each.name: tar.content(each, bounds.member) for each in tar if each.kind == FILE}


def tarred(tree: dict[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as tar:
        for name, content in tree.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@settings(max_examples=25, deadline=None)
@given(tree=TREE, pack=st.sampled_from([bytes, gzip.compress, bz2.compress, lzma.compress]))
def test_what_python_packs_is_found_again(form, tree, pack):
    whole = tarred(tree, form)
    assert in_tar(pack(whole)) == tree
    seeking = Tar(io.BytesIO(whole), Budget(BOUNDS), length=len(whole))
    found = {each.name: each for each in seeking}
    assert {name: seeking.content(each, 4 << 20) for name, each in found.items()} == tree


@settings(max_examples=40, deadline=None)
@given(
    content=st.binary(max_size=3000) | st.binary(min_size=1, max_size=9).map(lambda part: part * 20_000),
    form=st.sampled_from(sorted(PACKERS)),
    step=st.integers(1, 70_000),
    streams=st.integers(1, 3),
)
def test_packed_bytes_are_unpacked_however_they_arrive(content, form, step, streams):
    whole = PACKERS[form](content) * streams
    step = max(step, len(whole) // 2000)
    blocks = [whole[at : at + step] for at in range(0, len(whole), step)]
    assert b"".join(unpacked(blocks, form)) == content * streams
    with pytest.raises(BadArchive):
        b"".join(unpacked([whole[:-1]], form))
    with pytest.raises(BadArchive):
        b"".join(unpacked([*blocks, b"garbage"], form))
    assert b"".join(unpacked([*blocks, bytes(1000)], form)) == content * streams


@settings(max_examples=25, deadline=None)
@given(tree=TREE, how=st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
def test_what_python_zips_is_found_again(tree, how):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", how) as archive:
        for name, content in tree.items():
            archive.writestr(name, content)
    assert dict(files(out.getvalue(), Budget(BOUNDS), lambda _: True)) == tree


@settings(max_examples=100, deadline=None)
@given(
    name=st.text(max_size=40)
    | st.lists(st.sampled_from(["..", ".", "", "a", "/", "\\", "C:", "~", "\0", "\u202e"])).map("/".join)
)
def test_no_name_leads_anywhere(name):
    try:
        found = Budget(BOUNDS).admit(name, FILE, 0)
    except BadArchive as error:
        assert str(error).isprintable()
        return
    below = Path("/base", found)
    assert Path("/base") in below.parents
    assert ".." not in below.parts
    assert found.isprintable()
    assert "\\" not in found


def test_folders_and_what_is_in_them_come_in_any_order():
    budget = Budget(BOUNDS)
    assert [
        budget.admit(*each, 0) for each in ((".", FOLDER), ("./a/b", FILE), ("./a/", FOLDER), ("a/c", FILE))
    ] == [".", "a/b", "a", "a/c"]
    with pytest.raises(BadArchive, match="twice"):
        budget.admit("a", FILE, 0)
    with pytest.raises(BadArchive, match="twice"):
        budget.admit("a/c/d", FILE, 0)


def test_a_value_with_a_line_end_is_no_name_of_its_own():
    """tarfile, GNU tar and helm read a record by its length; who splits at lines sees another name."""
    info = tarfile.TarInfo("good")
    info.pax_headers = {"comment": "x\n11 path=bad"}
    assert list(in_tar(info.tobuf(tarfile.PAX_FORMAT) + bytes(1024))) == ["good"]


def test_a_size_in_an_extended_header_counts():
    head = tarfile.TarInfo("a")
    head.pax_headers = {"size": "3"}
    whole = head.tobuf(tarfile.PAX_FORMAT) + b"abc".ljust(512, b"\0") + bytes(1024)
    assert in_tar(whole) == {"a": b"abc"}


@pytest.mark.parametrize(
    "records", [b"x", b"5 a=b\n", b"9999 path=a\n", b"10 path a\n", b"12 size=-100\n", b"0 a=b\n"]
)
def test_an_extended_header_that_makes_no_sense_is_refused(records):
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, len(records)
    with pytest.raises(BadArchive):
        in_tar(info.tobuf() + records.ljust(512, b"\0") + tarred({"a": b""}))


@pytest.mark.parametrize(
    "whole", [b"", b"PK\3\4", b"hello" * 1000, bytes(100), b"\x1f\x8b", b"BZh9", b"\xfd7zXZ\0"]
)
def test_what_is_no_archive_is_called_so(whole):
    with pytest.raises(BadArchive):
        in_tar(whole)
    with pytest.raises(NoArchive):
        list(files(whole, Budget(BOUNDS), lambda _: True))


def test_the_whole_is_limited_and_so_is_what_swells():
    with pytest.raises(BadArchive, match="more than 1 MiB unpacked"):
        in_tar(tarred({"a": bytes(2 << 20)}), Bounds(whole=1 << 20, member=4 << 20, members=9))
    with pytest.raises(BadArchive, match="swells to more than 200 times"):
        in_tar(gzip.compress(tarred({"a": bytes(3 << 20)})))


def _tool(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "command",
    [
        *(pytest.param(["tar", f"--format={form}", *how, "-cf", "out", "."], marks=_tool("tar")) for form in ("v7", "ustar", "gnu", "oldgnu", "pax") for how in ([], ["-z"], ["-j"], ["-J"])),
        *(pytest.param(["bsdtar", f"--format={form}", *how, "-cf", "out", "."], marks=_tool("bsdtar")) for form in ("ustar", "gnutar", "pax") for how in ([], ["-z"])),
    ],
    ids=" ".join,
)  # fmt: skip
def test_what_real_tools_tar_is_found_again(command, tmp_path):
    tree = {"demo/a.txt": b"one", "demo/" + "d" * 60 + "/b": b"two" * 5000, "demo/empty": b""}
    for name, content in tree.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(content)
    words = [str(tmp_path / "out") if word == "out" else word for word in command]
    subprocess.run(words, cwd=tmp_path / "in", check=True)
    assert in_tar((tmp_path / "out").read_bytes()) == tree


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["tar", "-cPf", "out", "/etc/hostname"], "holds a file called"),
        (["tar", "-cPf", "out", "../beside"], "holds a file called"),
        (["tar", "-cf", "out", "link"], "a symbolic link"),
        (["tar", "-cf", "out", "a", "hard"], "a hard link"),
        (["tar", "-cf", "out", "pipe"], "a pipe"),
        (["tar", "--sparse", "-cf", "out", "holes"], "a sparse file"),
        (["tar", "--sparse", "--format=pax", "-cf", "out", "holes"], "a sparse file"),
        (["bsdtar", "--format=pax", "-cf", "out", "holes"], "a sparse file|has 2,147,483,648 bytes"),
        (["bsdtar", "-cPf", "out", "/etc/hostname"], "holds a file called"),
        (["tar", "-czf", "out", "zeros"], "swells|has 33,554,432 bytes"),
        (["tar", "-czf", "out", "a", "a"], "twice|a hard link"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_what_real_tools_can_be_made_to_tar_is_refused(command, says, tmp_path):
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    home = _furnished(tmp_path)
    subprocess.run(
        [str(tmp_path / "out") if word == "out" else word for word in command], cwd=home, check=True
    )
    with pytest.raises(BadArchive, match=says):
        in_tar((tmp_path / "out").read_bytes())


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("options", "names", "says"),
    [
        ((), ("a", "zeros"), "has 33,554,432 bytes"),
        (("-y",), ("link",), "a symbolic link"),
        (("-P", "secret"), ("a",), "encrypted"),
        ((), ("../beside",), "holds a file called"),
        (("-Z", "bzip2"), ("text",), "packed in another way"),
    ],
)
def test_what_zip_can_be_made_to_pack_is_refused(options, names, says, tmp_path):
    if shutil.which("zip") is None:
        pytest.skip("zip is not installed")
    home = _furnished(tmp_path)
    subprocess.run(["zip", "-q", *options, str(tmp_path / "out.zip"), *names], cwd=home, check=True)
    with pytest.raises(BadArchive, match=says):
        list(files((tmp_path / "out.zip").read_bytes(), Budget(BOUNDS), lambda _: True))


def _furnished(folder: Path) -> Path:
    home = folder / "in"
    home.mkdir()
    (folder / "beside").write_text("x")
    (home / "a").write_text("x")
    (home / "text").write_text("one two " * 5000)
    (home / "link").symlink_to("/etc/passwd")
    (home / "hard").hardlink_to(home / "a")
    (home / "zeros").write_bytes(bytes(32 << 20))
    with (home / "holes").open("wb") as stream:
        stream.truncate(2 << 30)

    os.mkfifo(home / "pipe")
    return home
