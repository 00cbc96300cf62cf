"""What a site names on this machine, and where that is: beside the site, in the sandbox, or nowhere."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from bfinfra.model.sources import LARGEST, LocalFile, LocalOutput, Sources, plain_file, small


def test_the_text_of_a_file_is_read_up_to_a_bound(tmp_path: Path) -> None:
    assert LARGEST == 1 << 20
    (file := tmp_path / "f").write_text("é" * 5)
    assert small(file) == small(file, 10) == "é" * 5
    with pytest.raises(OSError, match=f"it is larger than 9 bytes: '{file}'") as refused:
        small(file, 9)
    assert refused.value.errno == errno.EFBIG


def test_what_is_no_text_or_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"\xe9")
    os.mkfifo(tmp_path / "pipe")
    for name, why in {
        "latin": "it is not UTF-8 text",
        "pipe": "it is not a regular file",
        "none": "No such",
    }.items():
        with pytest.raises(OSError, match=why) as refused:
            small(tmp_path / name)
        assert refused.value.filename == str(tmp_path / name)
        assert refused.value.errno


def test_a_file_that_is_read_is_not_inherited_by_programs_that_are_started(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    with plain_file(tmp_path / "f") as stream:
        assert not os.get_inheritable(stream.fileno())
        handle = stream.fileno()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handle)


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    (tmp_path / "site").mkdir()
    return tmp_path / "site"


def test_a_path_of_a_site_is_beside_its_file(base: Path) -> None:
    sources = Sources(base)
    for text, path in {
        "ca.pem": base / "ca.pem",
        "../ca.pem": base / "../ca.pem",  # of a link, its target's folder
        "/etc/ca.pem": Path("/etc/ca.pem"),
        "~/ca.pem": base.parent / "me/ca.pem",
        "~no-such-user/ca.pem": base / "~no-such-user/ca.pem",
        "folder/~": base / "folder/~",
    }.items():
        assert sources.path(text) == sources.made(text) == path


def test_a_site_that_is_still_to_be_written_has_its_paths_all_the_same(tmp_path: Path) -> None:
    new = Sources(tmp_path / "new")
    assert new.path("../ca.pem") == tmp_path / "ca.pem"
    assert new.path("ca.pem") == tmp_path / "new/ca.pem"


def test_a_relative_folder_is_below_the_working_one(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(base)
    assert Sources(Path("sub")).path("ca.pem") == base / "sub/ca.pem"
    assert Sources().path("ca.pem") == base / "ca.pem"


def test_the_sandbox_has_replacements_for_files_and_makes_none_outside_of_itself(base: Path) -> None:
    (stand_ins := base.parent / "sandbox").mkdir()
    (stand_ins / "etc").mkdir()
    (stand_ins / "etc/ca.pem").touch()
    (stand_ins / "X").touch()
    sources = Sources(base, stand_ins=stand_ins)
    assert sources.path("/etc/ca.pem") == stand_ins / "etc/ca.pem"
    assert sources.path("//X") == sources.path("X") == stand_ins / "X"
    assert sources.path("/etc/other.pem") == Path("/etc/other.pem")
    for text in ("out/image.tar", "/out/image.tar", "../../out/image.tar", "~/out/image.tar"):
        assert sources.made(text) == stand_ins / "out/image.tar"


@pytest.mark.parametrize(
    "text", ["/etc/passwd", "../f", "a/../../f", "~/f", "~root/f", "..", ".", "", "a/..", "./../f", "a\nb"]
)
def test_a_site_of_somebody_else_names_no_file_outside_of_its_folder(base: Path, text: str) -> None:
    confined = Sources(base, confined=True)
    for ask in (confined.path, confined.made):
        with pytest.raises(ValueError, match=r"leads out of the Site's own folder; .* a relative path"):
            ask(text)


@pytest.mark.parametrize("text", ["f", "./f", "a/b.pem", ".hidden", "a//b/", "a/~"])
def test_a_site_of_somebody_else_names_the_files_below_its_folder(base: Path, text: str) -> None:
    assert Sources(base, confined=True).path(text) == base / text


def test_what_another_file_names_is_read_if_it_is_in_the_folder_of_a_confined_site(base: Path) -> None:
    for path, inside in {"ca.pem": True, "sub/../ca.pem": True, "../ca.pem": False, "/etc": False}.items():
        assert Sources(base, confined=True).encloses(base / path) is inside
        assert Sources(base).encloses(base / path)


def test_a_file_of_a_site_is_its_text_and_its_place(base: Path) -> None:
    given = {"sources": Sources(base, stand_ins=base.parent)}
    for kind, path in ((LocalFile, Path("/ca.pem")), (LocalOutput, base.parent / "ca.pem")):
        adapter = TypeAdapter(kind)
        file = adapter.validate_python("/ca.pem", context=given)
        assert (type(file), file.text, file.path) == (kind, "/ca.pem", path)
        assert adapter.validate_python(file) is file
        assert adapter.dump_python(file) == adapter.dump_python(file, mode="json") == "/ca.pem"
        assert adapter.json_schema() == {"type": "string", "minLength": 1, "x-file": True}
        for wrong in ("", 1, ["ca.pem"]):
            with pytest.raises(ValidationError, match="expected the path of a file, relative to the site"):
                adapter.validate_python(wrong)
    assert TypeAdapter(LocalFile).validate_python("ca.pem") == LocalFile("ca.pem", Path.cwd() / "ca.pem")
