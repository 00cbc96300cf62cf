"""Build contexts on disk: written whole, found again, removed without touching anything else."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from pathlib import Path

import pytest

from bfinfra.backends.images import Images, folder
from bfinfra.model.errors import BfinfraError
from bfinfra.model.mark import Mark
from bfinfra.model.site import Site

OURS = Mark("g", "client_image/a")
NAMES = frozenset({"Dockerfile", "files/x"})
WANTED = {"Dockerfile": b"FROM scratch\n", "files/x": b"secret"}


def tree(path: Path) -> set[str]:
    return {str(p.relative_to(path)) for p in path.rglob("*")}


def test_what_was_written_is_found_with_its_mark(tmp_path: Path) -> None:
    context = tmp_path / "deep" / "context"
    folder.write(context, OURS, WANTED, {"files/x": 0o600})
    found = folder.look(context, NAMES)
    assert found
    assert found.mark == OURS
    assert found.files == found.record.files
    assert stat.S_IMODE((context / "files/x").stat().st_mode) == 0o600
    assert stat.S_IMODE(context.stat().st_mode) == 0o700


def test_removing_takes_what_was_written_and_made_and_nothing_else(tmp_path: Path) -> None:
    folder.write(tmp_path / "a" / "b", OURS, WANTED, {})
    folder.remove(tmp_path / "a" / "b")
    assert tree(tmp_path) == set()
    folder.write(tmp_path / "a" / "b", OURS, WANTED, {})
    (tmp_path / "a" / "b" / "files" / "mine").write_text("x")
    (tmp_path / "a" / "mine").write_text("x")
    folder.remove(tmp_path / "a" / "b")
    assert tree(tmp_path) == {"a", "a/mine", "a/b", "a/b/files", "a/b/files/mine"}


def test_a_folder_that_was_there_stays(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    folder.write(tmp_path / "here", OURS, WANTED, {})
    folder.remove(tmp_path / "here")
    assert tree(tmp_path) == {"here"}


def test_files_wanted_no_more_go_with_the_next_writing(tmp_path: Path) -> None:
    folder.write(tmp_path, OURS, WANTED, {})
    folder.write(tmp_path, OURS, {"Dockerfile": b"x"}, {})
    assert tree(tmp_path) == {".bfinfra.json", "Dockerfile", "files"}


def test_a_stranger_s_dockerfile_is_seen_without_a_mark(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM x")
    found = folder.look(tmp_path, NAMES)
    assert found
    assert found.mark is None
    assert folder.look(tmp_path, frozenset({"other"})) is None


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"mark": 1}', '{"files": 3, "folders": [], "built": "", "pushed": ""}', "\x00" * 100],
)
def test_a_spoiled_mark_is_no_mark(tmp_path: Path, content: str) -> None:
    (tmp_path / folder.MARK).write_text(content)
    assert folder.look(tmp_path, NAMES) is None


def test_a_forged_record_removes_nothing_outside(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("x")
    context = tmp_path / "context"
    context.mkdir()
    (context / folder.MARK).write_text(
        json.dumps(
            {
                "mark": OURS.encode(),
                "files": {"../victim": "x", str(victim): "x"},
                "folders": [],
                "built": "",
                "pushed": "",
            }
        )
    )
    folder.remove(context)
    assert victim.exists()


def test_links_are_replaced_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("kept")
    context = tmp_path / "context"
    context.mkdir()
    (context / "Dockerfile").symlink_to(outside)
    folder.write(context, OURS, {"Dockerfile": b"new"}, {})
    assert outside.read_text() == "kept"
    assert (context / "Dockerfile").read_text() == "new"
    assert not (context / "Dockerfile").is_symlink()


def test_a_linked_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    context = tmp_path / "context"
    context.mkdir()
    (context / "files").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BfinfraError, match="is a link"):
        folder.write(context, OURS, WANTED, {})
    assert tree(tmp_path / "elsewhere") == set()


def test_a_folder_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BfinfraError, match="can't be written"):
        folder.write(tmp_path / "file" / "context", OURS, WANTED, {})


def test_a_writing_cut_off_anywhere_is_finished_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = (
        6  # replacements of files in one writing: the mark, two files, the mark; and room to see that it ends
    )
    real = Path.replace
    for cut in range(1, whole):
        context, left = tmp_path / str(cut), iter(range(cut))

        def replace(self: Path, target: Path, left: object = left) -> Path:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return real(self, target)

        monkeypatch.setattr(Path, "replace", replace)
        with contextlib.suppress(KeyboardInterrupt):
            folder.write(context, OURS, WANTED, {})
        monkeypatch.undo()
        found = folder.look(context, NAMES)
        assert found
        assert found.mark == OURS, "the mark comes first"
        folder.write(context, OURS, WANTED, {})
        folder.remove(context)
        assert tree(tmp_path) == set()


def test_the_index_is_a_hint_that_may_be_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    images = Images(Site("g", None, {}), real=False)
    assert images.known() == {}
    images.render(tmp_path / "c", OURS, WANTED, {})
    assert Images(Site("g", None, {})).known() == {"client_image/a": tmp_path / "c"}
    assert Images(Site("other", None, {})).known() == {}
    images.remove(tmp_path / "c", OURS.address)
    assert images.known() == {}
    index = next((tmp_path / "state").rglob("client_images.json"))
    index.write_text("{ spoiled")
    assert images.known() == {}


def test_the_sandbox_keeps_its_index_among_its_sample_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    Images(Site("g", None, {}, stand_ins=tmp_path / "stand_ins")).render(tmp_path / "c", OURS, WANTED, {})
    assert not (tmp_path / "state").exists()
    assert Images(Site("g", None, {})).known() == {}


def test_a_package_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.deb").write_bytes(b"!<arch>\nrest")
    (tmp_path / "b.deb").write_bytes(b"<html>")
    (tmp_path / "c.rpm").write_bytes(b"\xed\xab\xee\xdb rest")
    images = Images(Site("g", None, {}))
    assert len(images.package(tmp_path / "a.deb")[0]) == 64
    assert "is no .deb package" in images.package(tmp_path / "b.deb")[1]
    assert images.package(tmp_path / "c.rpm")[1] == ""
    assert "can't be read" in images.package(tmp_path / "d.deb")[1]
    if os.geteuid():
        (tmp_path / "a.deb").chmod(0)
        assert "can't be read" in images.package(tmp_path / "a.deb")[1]
