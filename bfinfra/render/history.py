"""The history of a site: the journal's lines grouped into runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from bfinfra.model.events import Ending
from bfinfra.model.records import dataclass
from bfinfra.render.data import document
from bfinfra.render.safe import safe
from bfinfra.render.style import ENDINGS, PLAIN, Style
from bfinfra.render.summary import DONE, WORDS
from bfinfra.render.values import duration, utc

Line = Mapping[str, Any]


@dataclass
class Run:
    """One apply: its lines, oldest first."""

    run: str
    lines: list[Line] = field(default_factory=list)

    @property
    def began(self) -> float:
        """Its start, in seconds since the epoch."""
        return float(self.lines[0].get("at", 0))

    @property
    def seconds(self) -> float:
        """Seconds from its first line to its last."""
        return float(self.lines[-1].get("at", 0)) - self.began

    def ended(self) -> list[Line]:
        """Return how each resource ended, without those that were up to date already."""
        return [
            line
            for line in self.lines
            if line.get("event") == "Forgotten"
            or (line.get("event") == "Ended" and line.get("ending") != Ending.UNCHANGED)
        ]

    def unfinished(self) -> list[Line]:
        """Steps that started and never ended: the process died while they ran."""
        over = {
            (line.get("key"), line.get("number")) for line in self.lines if line.get("event") == "StepEnded"
        }
        return [
            line
            for line in self.lines
            if line.get("event") == "StepBegun" and (line.get("key"), line.get("number")) not in over
        ]


def runs(lines: Iterable[Line]) -> list[Run]:
    """The journal's lines by run, oldest first."""
    found: dict[str, Run] = {}
    for line in lines:
        found.setdefault(str(line.get("run", "")), Run(str(line.get("run", "")))).lines.append(line)
    return list(found.values())


def history(lines: Iterable[Line], style: Style = PLAIN) -> str:
    """For each run: when, how long, what changed; with `verbose` also each step."""
    return (
        "\n\n".join("\n".join(_run(run, style)) for run in runs(lines))
        or "Nothing was applied from this machine yet."
    )


def data(site: str, lines: Iterable[Line]) -> dict[str, Any]:
    """The runs as JSON; every line has its time in ISO 8601."""
    return document(
        "history",
        site=site,
        runs=[
            {
                "run": run.run,
                "began": utc(run.began),
                "seconds": round(run.seconds, 3),
                "events": [{**line, "at": utc(float(line.get("at", 0)))} for line in run.lines],
            }
            for run in runs(lines)
        ],
    )


def _run(run: Run, style: Style) -> Iterator[str]:
    per = Counter(_word(line) for line in run.ended())
    words = ", ".join(f"{number} {word}" for word, number in per.items()) or "nothing changed"
    yield (
        f"{style.paint(utc(run.began)[:19] + 'Z', 'bold')}  run {safe(run.run)}  {duration(run.seconds)}: "
        f"{words}"
    )
    for line in run.ended():
        yield from _ended(line, style)
        if style.verbose:
            yield from _steps(run, line.get("key"))
    for line in run.unfinished():
        yield (
            f"  {style.paint('■', 'yellow')} {safe(line.get('key'))}: never ended: {safe(line.get('title'))}"
        )


def _ended(line: Line, style: Style) -> Iterator[str]:
    symbol, colour = ENDINGS.get(line.get("ending", ""), ("?", "dim"))
    why = (line.get("problem") or {}).get("what", "")
    took = duration(float(line.get("seconds", 0)))
    yield (
        f"  {style.paint(symbol, colour)} {safe(line.get('key'))}: {_word(line)} after {took}"
        f"{': ' + safe(why) if why else ''}"
    )


def _steps(run: Run, key: object) -> Iterator[str]:
    for line in run.lines:
        if line.get("event") == "StepEnded" and line.get("key") == key:
            mark = "  did not succeed" if line.get("problem") else ""
            yield f"    {duration(float(line.get('seconds', 0))):>8}  {safe(line.get('title'))}{mark}"


def _word(line: Line) -> str:
    ending, action = line.get("ending", ""), line.get("action", "")
    if line.get("event") == "Forgotten":
        return "forgotten"
    return (
        WORDS.get(ending) or DONE.get(action) or safe(ending)
    )  # words of a later version are printed as they are
