"""Progress: plain lines in a pipe, rows for a terminal."""

from __future__ import annotations

import io
import subprocess
import sys

from render_samples import CLUSTER, HOST, NAMESPACE, OLD, SECRET

from bfinfra.model.errors import Problem
from bfinfra.model.events import Ended, Ending, Progressed, Settling, Started, StepBegun, StepEnded
from bfinfra.model.kind import Done
from bfinfra.model.plan import Action, Plan
from bfinfra.render.lines import Lines
from bfinfra.render.live import Board
from bfinfra.render.progress import Progress, Row


def test_a_pipe_gets_a_line_for_what_begins_ends_and_waits(plan, events):
    lines: list[str] = []
    sink = Lines(plan, lines.append)
    for event in events:
        sink(event)
    assert (
        "\n".join(lines)
        == """\
04:05:00  supervisor_namespace/cnasg: step 1 of 1: Create the namespace cnasg
04:05:02  supervisor_namespace/cnasg: looks again: the server is busy
04:05:03  supervisor_namespace/cnasg: step 1 of 1: Create the namespace cnasg
04:05:07  supervisor_namespace/cnasg: waits: CONFIGURING
04:05:20  supervisor_namespace/cnasg: created after 20s
04:05:21  bitfusion_server/bf-00: step 1 of 1: Upload disk-0.vmdk
04:05:32  bitfusion_server/bf-00: disk-0.vmdk 600.0 MiB of 1000.0 MiB, 50.0 MiB/s, 8.0s left"""
    )


def test_a_failure_is_shown_with_its_reason(plan):
    lines: list[str] = []
    sink = Lines(plan, lines.append)
    sink(StepEnded(at=0, key=HOST, title="x", number=1, seconds=1, problem=Problem("denied\x1b[2J")))
    sink(
        Ended(
            at=1, key=HOST, action=Action.UPDATE, ending=Ending.FAILED, seconds=61, problem=Problem("denied")
        )
    )
    assert lines == [
        "00:00:00  gpu_host/esx209-161.aiml.local: failed: denied\\x1b[2J",
        "00:00:01  gpu_host/esx209-161.aiml.local: failed after 1m 1s: denied",
    ]


def test_rows_say_the_step_the_share_the_rate_and_what_is_left(plan, events):
    progress = Progress(plan)
    for event in events:
        progress(event)
    (row,) = progress.rows(events[-1].at + 1)
    assert row == Row(
        OLD, "1/1 Upload disk-0.vmdk", 0.6, "disk-0.vmdk 600.0 MiB of 1000.0 MiB, 50.0 MiB/s, 8.0s left", 12.0
    )


def test_items_that_have_not_started_say_what_they_wait_for(plan, events):
    progress = Progress(plan)
    assert progress.waiting() == ((HOST, ()), (NAMESPACE, ()), (SECRET, (str(CLUSTER),)), (OLD, ()))
    for event in events:
        progress(event)
    assert progress.waiting() == ((HOST, ()), (SECRET, ()))
    assert (len(progress.ended), progress.total()) == (2, 5)


def test_waiting_for_readiness_and_another_read_are_shown(plan):
    progress = Progress(plan)
    progress(Started(at=0, key=HOST, action=Action.UPDATE))
    assert progress.rows(1) == (Row(HOST, "looking", since=1),)
    progress(
        StepEnded(
            at=2,
            key=HOST,
            title="x",
            number=1,
            seconds=1,
            problem=Problem("CloneVM_Task failed", why="no room"),
            again=True,
        )
    )
    assert progress.rows(2)[0].doing == "looks again: CloneVM_Task failed: no room"
    progress(Settling(at=3, key=HOST, why="reboots"))
    assert progress.rows(3)[0].doing == "waits: reboots"


def test_the_rate_is_that_of_the_last_seconds_and_starts_anew_with_a_new_file(plan):
    progress = Progress(plan)
    for at, done in ((0, 0), (1, 10 * 2**20), (100, 20 * 2**20), (105, 70 * 2**20)):
        progress(Progressed(at=at, key=OLD, progress=Done("a", done, 100 * 2**20)))
    assert "10.0 MiB/s, 3.0s left" in progress.rows(105)[0].amount
    progress(Progressed(at=106, key=OLD, progress=Done("b", 5, None)))
    assert progress.rows(106)[0].amount == "b 5 B"
    assert progress.rows(106)[0].share is None


def test_an_empty_file_has_no_share(plan):
    progress = Progress(plan)
    progress(Progressed(at=0, key=OLD, progress=Done("a", 0, 0)))
    assert progress.rows(0)[0].share is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_board_shows_what_runs_and_what_waits_for_what(plan, events, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "150")
    monkeypatch.delenv("NO_COLOR", raising=False)
    file = Terminal()
    with Board(plan, file, colour=False, now=lambda: events[-1].at) as board:
        for event in events:
            board(event)
    shown = file.getvalue()
    assert "created after 20s" in shown
    assert "1/1 Upload disk-0.vmdk" in shown
    assert "disk-0.vmdk 600.0 MiB of 1000.0 MiB, 50.0 MiB/s, 8.0s left" in shown
    assert "━" in shown
    assert "token_secret/cluster-01-default waits for a free slot" in shown
    assert "2 of 5 done" in shown
    assert "\x1b[32m" not in shown


def test_the_board_survives_markup_and_control_characters_in_names(plan, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    file = Terminal()
    with Board(Plan("s", ()), file) as board:
        board(StepBegun(at=0, key=HOST, title="[red]x[/] :smile: \x1b]0;t\x07", number=1))
        board(Ended(at=0, key=HOST, action=Action.CREATE, ending=Ending.DONE, seconds=0))
    assert "\x1b]0;" not in file.getvalue()


def test_nothing_but_the_board_imports_rich():
    code = (
        "import sys, bfinfra.render.text, bfinfra.render.summary, bfinfra.render.lines, "
        "bfinfra.render.markdown, bfinfra.render.data, "
        "bfinfra.render.kinds, bfinfra.render.history, bfinfra.render.graph; sys.exit('rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
