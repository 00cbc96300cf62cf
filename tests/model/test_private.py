"""What bfinfra keeps on this machine is its user's alone, and never behind a link."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from bfinfra.app import saved
from bfinfra.engine import journal
from bfinfra.model import private
from bfinfra.model.errors import BfinfraError
from bfinfra.model.plan import Plan
from bfinfra.model.site import Site


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "bfinfra" / "s"


def test_whatever_the_umask_state_is_its_owners_alone(umask: None, state: Path, tmp_path: Path) -> None:
    with journal.lock("s"):
        journal.Journal("s").close()
    saved.save_plan(tmp_path / "plan", Site("s", None, {}, paths=(tmp_path,)), Plan("s", ()))
    assert {path.name: mode(path) for path in (state, state.parent, state.parent.parent)} == {
        "s": 0o700,
        "bfinfra": 0o700,
        "state": 0o700,
    }
    assert {mode(state / "journal.jsonl"), mode(state / "lock"), mode(tmp_path / "plan")} == {0o600}


@pytest.mark.parametrize("wide", [0o755, 0o770, 0o701])
def test_a_folder_that_others_may_use_is_refused_with_how_to_mend_it(wide: int, state: Path) -> None:
    state.mkdir(parents=True)
    state.chmod(wide)
    with pytest.raises(BfinfraError, match=rf"mode 0{wide:o}.*chmod 700 {state}"):
        journal.Journal("s")
    state.chmod(0o700)
    journal.Journal("s").close()


def test_a_folder_that_is_a_link_is_refused(state: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    state.parent.mkdir(parents=True)
    state.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BfinfraError, match="it is a link"):
        journal.Journal("s")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("name", ["journal.jsonl", "lock"])
@pytest.mark.parametrize("how", ["symlink", "dangling", "hard link", "pipe"])
def test_a_file_of_state_that_leads_elsewhere_is_refused_and_nothing_is_written_there(
    name: str, how: str, state: Path, tmp_path: Path
) -> None:
    private.folder(state)
    target = tmp_path / "precious"
    if how != "dangling":
        target.write_text("precious")
    {
        "symlink": lambda: (state / name).symlink_to(target),
        "dangling": lambda: (state / name).symlink_to(target),
        "hard link": lambda: (state / name).hardlink_to(target),
        "pipe": lambda: os.mkfifo(state / name),
    }[how]()
    with pytest.raises(BfinfraError, match="can't be used"):
        if name == "lock":
            with journal.lock("s"):
                pass
        else:
            journal.Journal("s")
    assert target.exists() == (how != "dangling")
    assert how == "dangling" or target.read_text() == "precious"


def test_a_file_of_state_that_others_may_read_is_closed_to_them(state: Path) -> None:
    private.folder(state)
    (state / "journal.jsonl").write_text("")
    (state / "journal.jsonl").chmod(0o644)
    journal.Journal("s").close()
    assert mode(state / "journal.jsonl") == 0o600


NOBODY = 65534


def test_the_state_is_where_the_user_says_else_where_systems_keep_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("BFINFRA_STATE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert private.home() == tmp_path / "me/.local/state/bfinfra"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert private.home() == tmp_path / "xdg/bfinfra"
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "own"))
    assert private.home() == tmp_path / "own/bfinfra"
    assert not (tmp_path / "own").exists(), "who only asks where it is makes nothing"


@pytest.mark.parametrize("what", ["file", "pipe"])
def test_what_is_no_folder_is_refused(what: str, state: Path) -> None:
    state.parent.mkdir(parents=True, mode=0o700)
    state.touch() if what == "file" else os.mkfifo(state)
    with pytest.raises(BfinfraError, match="it is not a folder; remove it, or set BFINFRA_STATE_HOME"):
        private.folder(state)


def open_files() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


@pytest.fixture
def root() -> None:
    if os.geteuid():
        pytest.fail("run as root, as .ci/run does: the files of another user are made here", pytrace=False)


def test_a_folder_of_somebody_else_is_refused(root: None, state: Path) -> None:
    private.folder(state)
    os.chown(state, NOBODY, NOBODY)
    with pytest.raises(BfinfraError, match="it belongs to somebody else; set BFINFRA_STATE_HOME"):
        private.folder(state)


def test_a_file_of_somebody_else_is_refused_and_not_held_open(root: None, state: Path) -> None:
    file = private.folder(state) / "f"
    file.touch(0o600)
    os.chown(file, NOBODY, NOBODY)
    before = open_files()
    with pytest.raises(BfinfraError, match="it is not a regular file of yours"):
        private.opened(file, os.O_RDWR)
    assert open_files() == before


def test_a_link_that_appears_meanwhile_is_not_followed(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    private.folder(state)
    (state / "target").write_text("others'")
    (state / "lock").symlink_to(state / "target")
    monkeypatch.setattr(Path, "is_symlink", lambda _: False)  # as it was when it was looked at
    with pytest.raises(OSError, match="symbolic links"):
        private.opened(state / "lock", os.O_WRONLY)


def test_a_file_of_state_is_not_inherited_by_programs_that_are_started(state: Path) -> None:
    handle = private.opened(private.folder(state) / "f", os.O_RDWR)
    assert not os.get_inheritable(handle)
    os.close(handle)


@pytest.mark.parametrize("wide", [0o640, 0o604, 0o660])
def test_whoever_may_read_a_file_of_state_may_no_longer_once_it_is_used(wide: int, state: Path) -> None:
    file = private.folder(state) / "f"
    file.touch()
    file.chmod(wide)
    os.close(private.opened(file, os.O_RDWR))
    assert mode(file) == 0o600


def test_a_pipe_is_refused_at_once_though_nobody_writes_to_it(state: Path) -> None:
    os.mkfifo(pipe := private.folder(state) / "f")
    with pytest.raises(BfinfraError, match="it is not a regular file of yours"):
        private.opened(pipe, os.O_RDONLY)
