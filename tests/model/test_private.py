from __future__ import annotations

import os
import stat

import pytest

from bfinfra.app import saved
from bfinfra.engine import journal
from bfinfra.model import private
from bfinfra.model.errors import BfinfraError
from bfinfra.model.plan import Plan
from bfinfra.model.site import Site


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request):
    before = os.umask(request.param)
    yield
    os.umask(before)


def mode(path):
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.fixture
def state(tmp_path, monkeypatch):
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "bfinfra" / "s"


def test_whatever_the_umask_state_is_its_owners_alone(umask, state, tmp_path):
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
def test_a_folder_that_others_may_use_is_refused_with_how_to_mend_it(wide, state):
    state.mkdir(parents=True)
    state.chmod(wide)
    with pytest.raises(BfinfraError, match=rf"mode 0{wide:o}.*chmod 700 {state}"):
        journal.Journal("s")
    state.chmod(0o700)
    journal.Journal("s").close()


def test_a_folder_that_is_a_link_is_refused(state, tmp_path):
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    state.parent.mkdir(parents=True)
    state.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BfinfraError, match="it is a link"):
        journal.Journal("s")
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("name", ["journal.jsonl", "lock"])
@pytest.mark.parametrize("how", ["symlink", "dangling", "hard link", "pipe"])
def test_a_file_of_state_that_leads_elsewhere_is_refused_and_nothing_is_written_there(
    name, how, state, tmp_path
):
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


def test_a_file_of_state_that_others_may_read_is_closed_to_them(state):
    private.folder(state)
    (state / "journal.jsonl").write_text("")
    (state / "journal.jsonl").chmod(0o644)
    journal.Journal("s").close()
    assert mode(state / "journal.jsonl") == 0o600
