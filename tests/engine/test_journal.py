"""The journal takes whole lines or says that it can't; a line cut short spoils no other. The lock names its
holder and dies with it.
"""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bfinfra.engine import journal
from bfinfra.model.errors import BfinfraError, Locked, Problem
from bfinfra.model.events import Event, Progressed, Started, StepBegun, StepEnded
from bfinfra.model.kind import Done
from bfinfra.model.names import LABEL_VALUE_RULE
from bfinfra.model.plan import Action
from bfinfra.model.refs import Key
from bfinfra.model.site import Site, VCenterSettings


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path))


def event(name: str) -> Started:
    return Started(at=0, key=Key("box", name), action=Action.CREATE)


@pytest.mark.parametrize(
    ("before", "keys"), [('{"event":"Started","key":"box/a"}\n{"event":"Sta', ["box/a"]), ("{", [])]
)
def test_a_line_cut_short_by_a_crash_spoils_no_other(before: str, keys: list[str]) -> None:
    (journal.folder("s") / "journal.jsonl").write_text(before)
    log = journal.Journal("s")
    for name in ("b", "c"):
        log(event(name))
    log.close()
    assert [line["key"] for line in journal.read("s")] == [*keys, "box/b", "box/c"]


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
        assert holder.stdout is not None
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
    under_way, go_on, synced = threading.Event(), threading.Event(), list[int]()

    def slow(_: int) -> None:
        synced.append(len(log.path.read_text().splitlines()))
        under_way.set()
        assert go_on.wait(60)

    monkeypatch.setattr(os, "fdatasync", slow)
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


def test_a_site_on_two_vcenters_has_two_journals_and_one_history() -> None:
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


def test_what_an_earlier_release_kept_by_the_name_alone_is_found_and_moved_on_to_the_first_vcenter() -> None:
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


def test_a_sandbox_has_a_journal_of_its_own_and_after_a_reset_another(tmp_path: Path) -> None:
    first = journal.scope(site_at("vc1", sandbox=tmp_path / "files"))
    assert first == journal.scope(site_at("vc1", sandbox=tmp_path / "files"))
    (tmp_path / "files/.bfinfra/begun").unlink()
    os.utime(tmp_path / "files")
    assert {first, journal.scope(site_at("vc1", sandbox=tmp_path / "files"))} > {first}


def test_a_sandbox_keeps_its_id_for_its_owner_and_two_runs_that_begin_at_once_have_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, make = tmp_path / "files/.bfinfra/begun", journal.make_folder

    def other_is_faster(path: Path, mode: int) -> None:
        make(path, mode)
        began.touch()
        os.utime(began, ns=(7, 7))

    before = os.umask(0)
    try:
        journal.scope(site_at("vc1", sandbox=tmp_path / "files"))
    finally:
        os.umask(before)
    assert [stat.S_IMODE(each.stat().st_mode) for each in (began.parent, began)] == [0o700, 0o600]
    began.unlink()
    monkeypatch.setattr(journal, "make_folder", other_is_faster)
    assert journal.scope(site_at("vc1", sandbox=tmp_path / "files")) == "s/sandbox-7"


def written(*events: Event) -> list[journal.Line]:
    log = journal.Journal("s")
    for each in events:
        log(each)
    log.close()
    return [*journal.read("s")]


def test_a_line_says_which_run_did_what_to_which_resource() -> None:
    (line,) = written(event("a"))
    assert {**line, "run": ""} == {"run": "", "event": "Started", "at": 0, "key": "box/a", "action": "create"}
    (_, other) = written(event("a"))
    assert line["run"] != other["run"]


def test_the_progress_of_a_step_is_not_kept() -> None:
    assert written(Progressed(at=0, key=Key("box", "a"), progress=Done("planks", 1))) == []


def test_only_the_begin_of_a_step_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    log, key = journal.Journal("s"), Key("box", "a")
    log(event("a"))
    assert synced == []
    log(StepBegun(at=0, key=key, title="make a", number=1))
    assert len(synced) == 1
    log(StepEnded(at=0, key=key, title="make a", number=1, seconds=1, problem=Problem("no"), again=False))
    assert len(synced) == 1
    log(StepBegun(at=0, key=key, title="make a", number=2))
    assert len(synced) == 2
    log.close()


def test_two_runs_that_write_at_once_cut_no_line_of_each_other() -> None:
    one, two = journal.Journal("s"), journal.Journal("s")
    for name in "abc":
        one(event(name))
        two(event(name.upper()))
    one.close()
    two.close()
    assert [line["key"] for line in journal.read("s")] == [f"box/{name}" for name in "aAbBcC"]


@pytest.mark.parametrize(
    "text",
    [
        "[1]",
        "no JSON",
        "[" * 100_000,
        '{"event":"Started","key":1}',
        '{"event":"Started","run":null}',
        '{"event":"Started","at":"noon"}',
        '{"event":"Started","at":-1}',
        '{"event":"Started","at":1e12}',
        '{"event":"Started","at":NaN}',
        '{"event":"Started","problem":[1]}',
        '{"event":"Started","problem":{"what":1}}',
    ],
)
def test_a_line_that_no_journal_wrote_is_skipped(text: str) -> None:
    written(event("a"))
    with (journal.folder("s") / "journal.jsonl").open("a") as file:
        file.write(text + "\n")
    assert [line["key"] for line in written(event("b"))] == ["box/a", "box/b"]


def test_lines_of_every_form_that_a_journal_writes_are_read() -> None:
    (journal.folder("s") / "journal.jsonl").write_text(
        '{"event":"StepEnded","problem":null,"seconds":0}\n'
        f'{{"event":"Ended","problem":{{"what":"no"}},"at":{journal.LATEST}}}\n'
    )
    assert [line["event"] for line in journal.read("s")] == ["StepEnded", "Ended"]


def test_of_an_endless_journal_only_the_end_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MOST", 300)
    written(*(event(f"{number:03}") for number in range(100)))
    read = [line["key"] for line in journal.read("s")]
    assert read == [f"box/{number:03}" for number in range(100 - len(read), 100)]
    assert 1 <= len(read) <= 3


def test_of_a_journal_as_long_as_is_read_each_line_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    written(event("a"), event("b"))
    monkeypatch.setattr(journal, "MOST", (journal.folder("s") / "journal.jsonl").stat().st_size)
    assert [line["key"] for line in journal.read("s")] == ["box/a", "box/b"]


def test_an_endless_line_is_read_in_parts_which_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "LONGEST", 200)
    (journal.folder("s") / "journal.jsonl").write_text('{"event":"Started","key":"' + "x" * 1000 + '"}\n')
    assert [line["key"] for line in written(event("a"))] == ["box/a"]


def test_what_was_never_written_is_empty() -> None:
    assert [*journal.read("s")] == [*journal.everywhere("s")] == []
    assert not journal.place("s").exists(), "who only reads makes nothing"


@pytest.mark.parametrize("name", ["../s", "", "/etc", ".."])
def test_a_name_that_leads_elsewhere_is_no_name_of_a_site(name: str) -> None:
    site = name.partition("/")[0]  # before the slash of a scope
    for do, where in (
        (journal.folder, site),
        (journal.place, site),
        (lambda it: [*journal.everywhere(it)], name),
    ):
        with pytest.raises(BfinfraError) as raised:
            do(name)
        assert raised.value.problems == (
            Problem("this can't be the name of a site", where, f"allowed: {LABEL_VALUE_RULE}"),
        )


def test_a_site_without_a_vcenter_is_known_by_its_name_alone() -> None:
    assert journal.scope(site_at(None)) == "s"
    assert journal.scope(site_at("vc1:443")) == journal.scope(site_at("VC1")) == "s/vcenter-vc1"


def test_the_history_of_two_vcenters_is_told_run_by_run_in_the_order_in_which_they_began() -> None:
    for scope, at in (("s/vcenter-b", 1.0), ("s/vcenter-a", 2.0), ("s/vcenter-b", 3.0)):
        log = journal.Journal(scope)
        for later in (0.0, 100.0):
            log(Started(at=at + later, key=Key("box", f"{scope[-1]}{at:.0f}"), action=Action.CREATE))
        log.close()
    assert [line["key"] for line in journal.everywhere("s")] == [
        f"box/{run}" for run in ("b1", "a2", "b3") for _ in range(2)
    ]


def test_in_a_history_lines_of_no_run_or_no_time_come_first() -> None:
    other = journal.folder("s/vcenter-a")
    written(Started(at=0.5, key=Key("box", "late"), action=Action.CREATE))
    (other / "journal.jsonl").write_text(
        '{"event":"Started","key":"box/early"}\n{"event":"Ended","key":"box/early","at":7}\n'
    )
    assert [line["key"] for line in journal.everywhere("s")] == ["box/early", "box/early", "box/late"]


def test_a_site_that_is_called_as_a_vcenter_is_keeps_its_journal_to_itself() -> None:
    (journal.folder("s").parent / "journal.jsonl").touch()
    assert journal.place("vcenter-lab").name == "vcenter-lab"
    assert [*journal.folder("vcenter-lab").iterdir()] == []


def test_the_lock_of_one_site_is_not_that_of_another() -> None:
    with journal.lock("s"), journal.lock("t"):
        pass


def test_the_lock_is_free_once_its_run_has_ended_and_names_nobody_of_before() -> None:
    with journal.lock("s"):
        path = journal.folder("s") / "lock"
        assert path.read_text() == str(os.getpid())
    path.write_text("1234567890 of a longer number")
    with journal.lock("s"):
        assert path.read_text() == str(os.getpid())


def test_a_run_that_failed_frees_the_lock() -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), journal.lock("s"):
            _ = 1 / 0


def test_a_line_that_a_full_disk_cut_short_spoils_not_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    log, write = journal.Journal("s"), os.write

    def half(file: int, data: bytes) -> int:
        write(file, data[:7])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", half)
        with pytest.raises(BfinfraError, match="free space there"):
            log(event("a"))
    log(event("b"))
    log.close()
    assert [line["key"] for line in journal.read("s")] == ["box/b"]


def test_a_journal_that_ended_well_is_continued_on_the_next_line() -> None:
    written(event("a"))
    written(event("b"))
    assert "\n\n" not in (journal.folder("s") / "journal.jsonl").read_text()


def test_a_journal_that_was_closed_holds_no_file() -> None:
    log = journal.Journal("s")
    log.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(log._file)


def test_the_folder_around_that_of_a_vcenter_is_private_too() -> None:
    around = journal.folder("s")
    around.chmod(0o755)
    with pytest.raises(BfinfraError, match=f"chmod 700 {around}"):
        journal.folder("s/vcenter-vc1")


def test_only_the_first_use_of_a_vcenter_takes_what_an_earlier_release_kept() -> None:
    kept = journal.folder("s/vcenter-vc1")
    old = journal.folder("s") / "journal.jsonl"
    old.touch()
    journal.folder("s/vcenter-vc1")
    journal.folder("s/sandbox-1")
    assert old.exists()
    assert [*kept.iterdir()] == []


def test_a_sandbox_shows_nothing_of_what_an_earlier_release_kept() -> None:
    (journal.folder("s") / "journal.jsonl").write_text('{"event":"Started"}\n')
    assert len([*journal.read("s/vcenter-vc1")]) == 1
    assert [*journal.read("s/sandbox-1")] == []
