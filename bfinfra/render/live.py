"""Progress on a terminal: what runs, how far and how fast, and what waits. Imported only for a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Lock
from types import TracebackType
from typing import IO, Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from bfinfra.model.events import Ended, Ending, Event
from bfinfra.model.plan import Plan
from bfinfra.render.lines import ended
from bfinfra.render.progress import Progress, Row
from bfinfra.render.safe import printed, safe
from bfinfra.render.style import ENDINGS
from bfinfra.render.values import duration

MOST = 8  # rows of waiting items; others are counted
BAR = 24  # columns


def line(words: Callable[[], str], file: IO[str], *, colour: bool = True) -> Live:
    """A context that keeps one line at the bottom of the terminal, and removes it at its end."""
    spinner = Spinner("dots")

    def shown() -> Spinner:
        spinner.update(text=Text(printed(words()), no_wrap=True, overflow="ellipsis"))
        return spinner

    return Live(
        console=_console(file, colour=colour),
        get_renderable=shown,
        refresh_per_second=8,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def _console(file: IO[str], *, colour: bool) -> Console:
    return Console(file=file, no_color=not colour, highlight=False, markup=False, emoji=False)


class Board:
    """A sink of events that keeps a board at the bottom of the terminal. Ended items scroll above it."""

    def __init__(
        self, plan: Plan, file: IO[str], *, colour: bool = True, now: Callable[[], float] = time.time
    ) -> None:
        self._progress, self._lock, self._now = Progress(plan), Lock(), now
        self._console = _console(file, colour=colour)
        self._spinner = Spinner("dots")
        self._live = Live(
            self,
            console=self._console,
            refresh_per_second=8,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        """Take one event; from any thread."""
        with self._lock:
            self._progress(event)
        if isinstance(event, Ended) and event.ending is not Ending.UNCHANGED:
            symbol, colour = ENDINGS[event.ending]
            self._console.print(Text.assemble((f"{symbol} ", colour), printed(ended(event))))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The board in its current state."""
        with self._lock:
            rows, waiting = self._progress.rows(self._now()), self._progress.waiting()
            sum_of = f"{len(self._progress.ended)} of {self._progress.total()} done"
        yield self._table(rows)
        yield from _waits(waiting)
        yield Text(sum_of, style="dim")

    def _table(self, rows: tuple[Row, ...]) -> Table:
        table = Table.grid(padding=(0, 1))
        for row in rows:
            doing = Text(printed(row.doing), no_wrap=True, overflow="ellipsis")
            table.add_row(
                self._spinner,
                Text(printed(safe(row.key)), style="bold"),
                doing,
                Text(duration(row.since), style="dim"),
            )
            if row.amount:
                bar = (
                    ProgressBar(total=1.0, completed=row.share, width=BAR)
                    if row.share is not None
                    else Text("")
                )
                table.add_row("", bar, Text(printed(row.amount), no_wrap=True, overflow="ellipsis"))
        return table


def _waits(waiting: tuple[tuple[object, tuple[str, ...]], ...]) -> Iterator[Text]:
    for key, others in waiting[:MOST]:
        yield Text(
            printed(f"  {safe(key)} waits for {', '.join(map(safe, others)) or 'a free slot'}"),
            style="dim",
            no_wrap=True,
            overflow="ellipsis",
        )
    if len(waiting) > MOST:
        yield Text(f"  and {len(waiting) - MOST} more wait", style="dim")
