"""The end of an apply: what exists now, where, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bfinfra.model.events import Ended, Ending, Event, StepEnded
from bfinfra.model.plan import Action
from bfinfra.render import problems
from bfinfra.render.data import Outcome, steps_run
from bfinfra.render.safe import safe, safe_lines
from bfinfra.render.style import ENDINGS, PLAIN, Style
from bfinfra.render.text import own, part
from bfinfra.render.values import count, duration

DONE = {
    Action.CREATE: "created",
    Action.UPDATE: "updated",
    Action.REPLACE: "replaced",
    Action.DELETE: "deleted",
    Action.KEEP: "up to date",
    Action.READ: "up to date",
}
WORDS = {
    Ending.FAILED: "failed",
    Ending.WAITING: "still waiting",
    Ending.BLOCKED: "blocked",
    Ending.STOPPED: "stopped",
}
NEXT = {
    Ending.DONE: "",
    Ending.FAILED: ("Correct what failed, then run the same command again: it continues with what is left."),
    Ending.WAITING: (
        "Nothing is broken: it takes longer than the deadline. Run the same command again to wait longer; "
        "nothing is created twice."
    ),
    Ending.STOPPED: "Stopped on request. Run the same command again to continue.",
}


OUT_OF_SERVICE = "Out of service now:"
BRING = (
    "Nothing is broken. Bring what is named above, then run the same command again: what is done stays "
    "done, only what waited is done."
)


def advice(found: Outcome) -> str:
    """Return the next thing to do; "" if nothing is left."""
    return BRING if found.ending is Ending.WAITING and found.plan.held else NEXT.get(found.ending, "")


def outcome(found: Outcome, events: Sequence[Event] = (), style: Style = PLAIN) -> str:
    """Every resource that changed, has a note or did not end well; the summary; what to do next."""
    ran = steps_run(events)
    ended = sorted(
        found.endings.values(), key=lambda e: e.ending in WORDS
    )  # bad endings last, next to the prompt
    shown = [e for e in ended if style.verbose or e.note or e.problem or e.ending is not Ending.UNCHANGED]
    blocks = ["\n".join(resource(e, ran.get(e.key, ()), style)) for e in shown]
    return "\n".join(
        [
            *blocks,
            *([""] if blocks else []),
            *([*out_of_service(found, style), ""] if found.out_of_service else []),
            *filter(None, (part(found.plan.partial), sum_of(found, style), advice(found))),
        ]
    )


def out_of_service(found: Outcome, style: Style = PLAIN) -> Iterator[str]:
    """A line for each resource that does not serve now, under a heading."""
    yield style.paint(OUT_OF_SERVICE, "bold", "red")
    for each in found.out_of_service:
        yield f"  {safe(each)}"


def resource(ended: Ended, steps: Sequence[StepEnded], style: Style = PLAIN) -> Iterator[str]:
    """One resource: how it ended and how long it took, its steps, note and problem."""
    symbol, colour = ENDINGS[ended.ending]
    took = "" if ended.ending in (Ending.UNCHANGED, Ending.BLOCKED) else f"  {duration(ended.seconds)}"
    word = WORDS.get(ended.ending) or DONE[ended.action]
    yield (
        f"{style.paint(f'{symbol} {word:<13}', colour)} {style.paint(safe(ended.key), 'bold')}"
        f"{style.paint(took, 'dim')}"
    )
    for step in steps:
        mark = style.paint("  did not succeed", "red") if step.problem else ""
        yield f"    {duration(step.seconds):>8}  {safe(step.title)}{mark}"
    for line in safe_lines(ended.note):
        yield f"      {line}"
    if ended.problem:
        what, *more = safe_lines(own(ended.key, ended.problem.what)) or [""]
        where = f" ({safe(ended.problem.where)})" if ended.problem.where else ""
        yield from [f"      {style.paint(what, colour)}{where}", *(f"      {line}" for line in more)]
        yield from problems.notes(ended.problem, style, "      ")


def sum_of(found: Outcome, style: Style = PLAIN) -> str:
    """`singapore-poc: done in 12m 3s: 5 created, 12 up to date. 24 requests that write, of 180.`"""
    per = Counter(WORDS.get(e.ending) or DONE[e.action] for e in found.endings.values())
    words = (
        ", ".join(
            f"{per[word]} {word}" for word in dict.fromkeys((*DONE.values(), *WORDS.values())) if per[word]
        )
        or "nothing to do"
    )
    ending = "still waiting" if found.ending is Ending.WAITING else str(found.ending)
    colour = ENDINGS[found.ending][1]
    wire = f" {count(found.writes, 'write')} in {count(found.requests, 'request')}." if found.requests else ""
    return (
        f"{style.paint(f'{safe(found.plan.site)}: {ending}', 'bold', colour)} in {duration(found.seconds)}: "
        f"{words}.{wire}"
    )
