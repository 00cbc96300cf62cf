"""A plan, or the end of an apply, as one page of HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bfinfra.model.compare import Change
from bfinfra.model.events import Ended, Ending, Event, StepEnded
from bfinfra.model.order import Before, Specs
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.refs import Key
from bfinfra.render import html_page, summary
from bfinfra.render.data import Outcome, steps_run
from bfinfra.render.html_page import identifier
from bfinfra.render.html_text import broken, text
from bfinfra.render.style import DISRUPTIONS, ENDINGS, PLAIN, SYMBOLS, Style
from bfinfra.render.text import QUIET, counts, own, warned
from bfinfra.render.topology import Box, Drawing, parts_of
from bfinfra.render.values import duration, shown

PLANNED = ("What", "Resource", "Steps", "Fields")
ENDED = ("How it ended", "Resource", "Took", "Steps", "What to know")
LINKS = "Boxes with a sign link to their row in the table; lines lead from what must be done first."


def plan(found: Plan, resources: Specs, before: Before, style: Style = PLAIN) -> str:
    """Return the page of a plan. `resources`: the site's specs; `before`: key → the keys that it
    refers to.
    """
    boxes = {item.key: _planned_box(item) for item in _shown(found)}
    table = html_page.table("Changes", "What apply would do", PLANNED, rows(found, style))
    nothing = "<p>Everything that could be read is up to date.</p>"
    return html_page.whole(
        found.site,
        [html_page.verdict(counts(found), alarm=bool(found.problems or found.unreadable))],
        [
            '<section id="changes" tabindex="-1">',
            "<h2>Changes</h2>",
            *(table if boxes else [nothing]),
            "</section>",
            *html_page.unreadable(found.unreadable),
            *html_page.problems("Problems", found.problems),
            *html_page.problems("Warnings", [each.problem for each in warned(found)]),
        ],
        Drawing(_boxes(resources, boxes), before),
        made=f"Made by bfinfra plan. {LINKS}",
        skip="changes To what would change",
    )


def saved(found: Plan, style: Style = PLAIN) -> str:
    """The same for a saved plan, without its site: the parts inside of a resource aren't drawn."""
    before = {item.key: {key: item.because.get(key, "") for key in item.waits_for} for item in found.items}
    return plan(found, dict.fromkeys(before), before, style)


def rows(found: Plan, style: Style = PLAIN) -> list[str]:
    """A row of the table for each item that changes or waits."""
    return [_planned(item, style) for item in _shown(found)]


def outcome(found: Outcome, events: Sequence[Event], resources: Specs, before: Before) -> str:
    """Return the page of an apply's result, with what to do next."""
    ran = steps_run(events)
    ended = [each for each in found.endings.values() if each.ending is not Ending.UNCHANGED or each.note]
    lines = [_ended(each, ran.get(each.key, ())) for each in ended]
    boxes = {each.key: _ended_box(each) for each in ended}
    return html_page.whole(
        found.plan.site,
        [
            html_page.verdict(summary.sum_of(found), alarm=found.ending is not Ending.DONE),
            *([f"<p>{text(summary.OUT_OF_SERVICE)}</p>", "<ul>"] if found.out_of_service else []),
            *(f"<li>{text(each)}</li>" for each in found.out_of_service),
            *(["</ul>"] if found.out_of_service else []),
            *([f"<p>{text(summary.advice(found))}</p>"] if summary.advice(found) else []),
        ],
        [
            '<section id="changes" tabindex="-1">',
            "<h2>Resources</h2>",
            *(
                html_page.table("Resources", "How each ended", ENDED, lines)
                if lines
                else ["<p>Everything was up to date.</p>"]
            ),
            "</section>",
        ],
        Drawing(_boxes(resources, boxes), before),
        made=f"Made by bfinfra apply. {LINKS}",
        skip="changes To what changed",
    )


def _boxes(resources: Specs, known: dict[Key, Box]) -> list[Box]:
    keys = [*resources, *(key for key in known if key not in resources)]
    return [replace(known.get(key, Box(key)), parts=parts_of(resources.get(key))) for key in keys]


def _shown(found: Plan) -> list[Item]:
    return [item for item in found.items if item.action not in QUIET or item.steps or item.held]


def _planned_box(item: Item) -> Box:
    if item.held:
        return Box(
            item.key, cause="note", sign=ENDINGS[Ending.WAITING][0], words="waits", link=identifier(item.key)
        )
    cause = "alarm" if item.action in (Action.DELETE, Action.REPLACE) else "note"
    sign = SYMBOLS[item.action][0]
    return Box(item.key, cause=cause, sign=sign, words=f"to {item.action}", link=identifier(item.key))


def _planned(item: Item, style: Style) -> str:
    held = item.held
    sign = ENDINGS[Ending.WAITING][0] if held else SYMBOLS[item.action][0]
    danger = item.action in (Action.DELETE, Action.REPLACE) or any(s.destructive for s in item.steps)
    steps = [
        f"{step.title()}{f' ({DISRUPTIONS[step.disruption]})' if step.disruption in DISRUPTIONS else ''}"
        for step in item.steps
    ]
    changes: list[Change] = []  # values may be lists, which can't be hashed
    for step in item.steps:
        changes += [change for change in step.changes if change not in changes]
    parts = [own(item.key, held.what), held.why, held.next] if held else []
    return _row(
        item.key,
        "alarm" if danger else "note",
        f"{sign} {'waits' if held else item.action}",
        PLANNED,
        [_list([*filter(None, parts), *steps]), _list([_field(item, each, style) for each in changes])],
    )


def _field(item: Item, change: Change, style: Style) -> str:
    unit = style.units(item.key.kind, change.field)
    wanted = shown(change.wanted, unit)
    if change.now is None and item.action is Action.CREATE:
        return f"{change.field}: {wanted}"
    return f"{change.field}: {shown(change.now, unit)} → {wanted}"


def _ended_box(found: Ended) -> Box:
    good = found.ending in (Ending.DONE, Ending.UNCHANGED)
    cause = "note" if good or found.ending is Ending.WAITING else "alarm"
    return Box(
        found.key, cause=cause, sign=ENDINGS[found.ending][0], words=_word(found), link=identifier(found.key)
    )


def _ended(found: Ended, steps: Sequence[StepEnded]) -> str:
    problem = found.problem
    parts = [own(found.key, problem.what), problem.why, problem.next] if problem else []
    return _row(
        found.key,
        "note" if found.ending in (Ending.DONE, Ending.UNCHANGED, Ending.WAITING) else "alarm",
        f"{ENDINGS[found.ending][0]} {_word(found)}",
        ENDED,
        [
            text(duration(found.seconds)),
            _list([f"{step.title}{' (did not succeed)' if step.problem else ''}" for step in steps]),
            _list([*found.note.splitlines(), *filter(None, parts)]),
        ],
    )


def _word(found: Ended) -> str:
    return summary.WORDS.get(found.ending) or summary.DONE[found.action]


def _row(key: Key, style: str, what: str, heads: Sequence[str], cells: Sequence[str]) -> str:
    return html_page.row(identifier(key), style, heads, [text(what), broken(key), *cells])


def _list(lines: Sequence[str]) -> str:
    return f'<ul class="lines">{"".join(f"<li>{broken(line)}</li>" for line in lines)}</ul>' if lines else ""
