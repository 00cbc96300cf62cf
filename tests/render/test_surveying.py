"""The line that shows how far a survey is: on a terminal, while it lasts."""

from __future__ import annotations

import io
import sys
import threading

from bfinfra.cli.screen import Screen
from bfinfra.model.surveying import SurveyProgress
from bfinfra.render.live import line
from bfinfra.render.surveying import SurveyLine, SurveyNotes

SCREEN = Screen("text", verbose=False, plain=True)


class Terminal(io.StringIO):
    """Says that it is one, and when something was written."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if "kinds" in text:
            self.written.set()
        return super().write(text)


def no_terminal(words):
    raise AssertionError("nothing is shown")


def test_it_names_what_is_read_and_counts_what_was():
    progress = SurveyProgress()
    shown = SurveyLine(progress, no_terminal)
    progress.asks(12)
    with progress.asking("vm_class"):
        assert shown.words(0.5) == "Reading the live state: 0 of 12 kinds, 0.5s; now vm_class"
        with progress.asking("a"), progress.asking("b"), progress.asking("c"), progress.asking("d"):
            assert shown.words(61) == (
                "Reading the live state: 0 of 12 kinds, 1m 1s; now vm_class, a, b and 2 more"
            )
    assert shown.words(61) == "Reading the live state: 5 of 12 kinds, 1m 1s"


def test_a_terminal_shows_it_until_the_end(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    progress, terminal = SurveyProgress(), Terminal()
    progress.asks(2)
    with SurveyLine(progress, lambda words: line(words, terminal, colour=False), after=0):
        assert terminal.written.wait(30)
    assert "Reading the live state: 0 of 2 kinds" in terminal.getvalue()
    assert terminal.getvalue().rpartition("kinds")[2].endswith("\x1b[1A\x1b[2K")


def test_a_survey_that_is_done_at_once_prints_nothing():
    with SurveyLine(SurveyProgress(), no_terminal, after=3600):
        pass


def test_a_pipe_and_a_dumb_terminal_get_nothing_where_nothing_is_waited_for(monkeypatch):
    for stream, term in ((io.StringIO(), "xterm"), (Terminal(), "dumb")):
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.setenv("TERM", term)
        with SCREEN.surveying(SurveyProgress()) as shown:
            assert isinstance(shown, SurveyNotes)
        assert stream.getvalue() == ""


def test_a_pipe_gets_one_line_for_each_server_that_is_waited_for():
    waits, said, seen = {"vc.test:443": "it answers 503"}, [], threading.Semaphore(0)

    def waiting():
        seen.release()
        return dict(waits)

    with SurveyNotes(SurveyProgress(waiting), said.append, often=0.001):
        for _ in range(3):
            assert seen.acquire(timeout=30)
        waits["cl.test:6443"] = "a request is not answered yet"
        while seen.acquire(blocking=False):  # what was asked before
            pass
        for _ in range(3):
            assert seen.acquire(timeout=30)
    assert said == [
        "waiting for vc.test:443: it answers 503",
        "waiting for cl.test:6443: a request is not answered yet",
    ]


def test_the_line_of_a_terminal_names_what_is_waited_for():
    shown = SurveyLine(SurveyProgress(lambda: {"vc.test:443": "it answers 503"}), no_terminal)
    assert shown.words(4.0) == "waiting for vc.test:443: it answers 503"


def test_a_terminal_gets_the_line(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(SCREEN.surveying(SurveyProgress()), SurveyLine)
