"""The journal takes whole lines or says that it can't; a line cut short spoils no other. The lock names its
holder and dies with it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bfinfra.engine import journal
from bfinfra.model.errors import BfinfraError, Locked
from bfinfra.model.events import Started, StepBegun
from bfinfra.model.plan import Action
from bfinfra.model.refs import Key
from bfinfra.model.site import Site, VCenterSettings


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path))


def event(name: str) -> Started:
    return Started(at=0, key=Key("box", name), action=Action.CREATE)


def test_a_line_cut_short_by_a_crash_spoils_no_other() -> None:
    (journal.folder("s") / "journal.jsonl").write_text('{"event":"Started","key":"box/a"}\n{"event":"Sta')
    log = journal.Journal("s")
    for name in ("b", "c"):
        log(event(name))
    log.close()
    assert [line["key"] for line in journal.read("s")] == ["box/a", "box/b", "box/c"]


def test_a_line_is_written_whole_or_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    log, write = journal.Journal("s"), os.write
    monkeypatch.setattr(
        os, "write", lambda file, data: write(file, data[:7])
    )  # as on a disk that is nearly full
    log(event("a"))
    log.close()
    assert [line["key"] for line in journal.read("s")] == ["box/a"]


def test_a_full_disk_is_reported_with_the_file_and_what_to_do() -> None:
    log = journal.Journal("s")
    with Path("/dev/full").open("w") as full:
        os.dup2(full.fileno(), log._file)
    with pytest.raises(
        BfinfraError,
        match=r"journal\.jsonl: the journal can't be written; No space left on device; free space there",
    ):
        log(event("a"))
    log.close()


def test_the_lock_names_its_holder_and_dies_with_it() -> None:
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            (
                "from bfinfra.engine import journal\nwith journal.lock('s'):\n print('held', flush=True)\n "
                "input()"
            ),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=dict(os.environ),
    )
    with holder:
        assert holder.stdout.readline() == b"held\n"
        with (
            pytest.raises(
                Locked, match=rf"another apply of s runs on this machine; process {holder.pid}; wait for it"
            ),
            journal.lock("s"),
        ):
            pass
        holder.send_signal(signal.SIGKILL)
    with journal.lock("s"):
        pass


def test_a_folder_that_cannot_be_made_is_reported_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "file"))
    with (
        pytest.raises(
            BfinfraError,
            match=r"can't be made; Not a directory; correct that, or set BFINFRA_STATE_HOME to another folder",
        ),
        journal.lock("s"),
    ):
        pass


def test_steps_that_begin_at_once_share_the_wait_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    log = journal.Journal("s")
    under_way, go_on, synced = threading.Event(), threading.Event(), []

    def slow(_: int) -> None:
        synced.append(len(log.path.read_text().splitlines()))
        under_way.set()
        assert go_on.wait(60)

    monkeypatch.setattr(journal.os, "fdatasync", slow)
    began = [
        threading.Thread(
            target=log, args=(StepBegun(at=1.0, key=Key("box", str(n)), title="make", number=1),)
        )
        for n in range(9)
    ]
    began[0].start()
    assert under_way.wait(60)
    for each in began[1:]:
        each.start()
    while len(log.path.read_text().splitlines()) < 9:
        under_way.wait(0.01)
    go_on.set()
    for each in began:
        each.join(60)
    log.close()
    assert synced == [1, 9], "the second one is for all that were written while the first one was under way"


def site_at(server: str | None, name: str = "s", sandbox: Path | None = None) -> Site:
    return Site(name, VCenterSettings(server=server) if server else None, {}, stand_ins=sandbox)


def test_a_site_on_two_vcenters_has_two_journals_and_one_history():
    one, two = (journal.scope(site_at(server)) for server in ("VC1.lab.test", "vc2.lab.test:8443"))
    assert (one, two) == ("s/vcenter-vc1.lab.test", "s/vcenter-vc2.lab.test:8443")
    for at, scope in enumerate((two, one)):
        log = journal.Journal(scope)
        log(Started(at=float(at), key=Key("box", scope[-4:]), action=Action.CREATE))
        log.close()
    assert [line["key"] for line in journal.read(one)] == ["box/test"]
    assert [line["key"] for line in journal.everywhere("s")] == ["box/8443", "box/test"]
    with journal.lock(one), journal.lock(two):
        pass


def test_what_an_earlier_release_kept_by_the_name_alone_is_found_and_moved_on_to_the_first_vcenter():
    old = journal.folder("s")
    for name in ("journal.jsonl", "drift.json"):
        (old / name).write_text('{"event":"Started","key":"box/a"}\n')
    first, second = (journal.scope(site_at(server)) for server in ("vc1", "vc2"))
    assert [line["key"] for line in journal.read(first)] == ["box/a"]
    assert (old / "journal.jsonl").exists(), "who only reads moves nothing"
    kept = journal.folder(first)
    assert sorted(path.name for path in kept.iterdir()) == ["drift.json", "journal.jsonl"]
    assert [line["key"] for line in journal.read(first)] == ["box/a"]
    assert [*journal.read(second)] == [*journal.read("s")] == []


def test_a_sandbox_has_a_journal_of_its_own_and_after_a_reset_another(tmp_path):
    first = journal.scope(site_at("vc1", sandbox=tmp_path / "files"))
    assert first == journal.scope(site_at("vc1", sandbox=tmp_path / "files"))
    (tmp_path / "files/.bfinfra/begun").unlink()
    os.utime(tmp_path / "files")
    assert {first, journal.scope(site_at("vc1", sandbox=tmp_path / "files"))} > {first}
