"""A plan as text for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from bfinfra.model.drift import Report
from bfinfra.model.kind import Change, Disruption, Step
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.render import problems
from bfinfra.render.safe import safe
from bfinfra.render.style import DISRUPTIONS, PLAIN, SYMBOLS, Style
from bfinfra.render.values import count, shown

QUIET = (Action.KEEP, Action.READ)


def plan(found: Plan, style: Style = PLAIN) -> str:
    """Every item that would change, with its steps and fields; then what stands in the way; then the sum."""
    blocks = ["\n".join(item(each, style)) for each in found.items if style.verbose or each.action not in QUIET or each.steps]
    blocks += [problems.warnings(found.warnings, style), unreadable(found, style), problems.problems(found.problems, style)]
    return "\n\n".join([*filter(None, blocks), summary(found, style)])


def item(found: Item, style: Style = PLAIN) -> Iterator[str]:
    """One resource: symbol, word, address; what it disrupts and takes along; its steps, each with the fields it changes."""
    yield _head(found, style)
    yield from _dangers(found, style)
    seen: list[Change] = []
    for number, step in enumerate(found.steps, 1):
        yield f"    {number}. {safe(step.title())}{'' if found.action is Action.DELETE else _warns(step, style)}"
        new = tuple(change for change in step.changes if change not in seen)
        yield from _fields(found, new, "       ", style)
        seen += new


def summary(found: Plan, style: Style = PLAIN) -> str:
    """`Plan: 2 to create, 1 to delete; 12 agree.`"""
    if not found.items and not found.unreadable and not found.problems:
        return "Nothing is wanted and nothing of this site stands: nothing to do."
    head = f"{safe(found.site)}: {counts(found)}."
    if found.problems or found.unreadable:
        return style.paint(f"{head} It can't be applied before the above is mended.", "bold", "red")
    return style.paint(head if found.pending else f"{head} Nothing to do.", "bold")


def counts(found: Plan) -> str:
    """`2 to create, 1 to delete, 12 as wanted`; what there is none of is left out."""
    per = Counter(each.action for each in found.items)
    words = [f"{per[action]} to {action}" for action in (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.DELETE) if per[action]]
    agreed = sum(per[action] for action in QUIET)
    words += [f"{agreed} as wanted"] if agreed or not words else []
    words += [f"{len(found.unreadable)} unreadable"] if found.unreadable else []
    words += [count(len(found.problems), "problem")] if found.problems else []
    return ", ".join(words)


def unreadable(found: Plan | Report, style: Style = PLAIN) -> str:
    """What could not be looked at, and why."""
    by: dict[str, list[str]] = {}
    for where, why in found.unreadable.items():
        by.setdefault(why, []).append(style.paint(safe(where), "bold"))
    word = style.paint("can't be read:", "bold", "red")
    return "\n".join(f"{', '.join(names)} {word} {safe(why)}" for why, names in by.items())


def _head(found: Item, style: Style) -> str:
    symbol, colour = SYMBOLS[found.action]
    return f"{style.paint(f'{symbol} {found.action:<8}', colour)}{style.paint(safe(found.key), 'bold')}"


def _dangers(found: Item, style: Style) -> Iterator[str]:
    if any(step.destructive for step in found.steps):
        yield "    " + style.paint("destroys what can't be had back", "red")
    if found.contents:
        yield "    " + style.paint(f"takes along what is not this site's: {', '.join(map(safe, found.contents))}", "red")


def _warns(step: Step, style: Style) -> str:
    if step.disruption is Disruption.NONE:
        return ""
    why = f": {safe(step.why)}" if step.why else ""
    return style.paint(f"  [{DISRUPTIONS[step.disruption]}{why}]", "magenta")


def _fields(found: Item, changes: tuple[Change, ...], indent: str, style: Style) -> Iterator[str]:
    for change in changes:
        unit = style.units(found.key.kind, change.field)
        wanted = style.paint(shown(change.wanted, unit), "green") + (style.paint("  (follows)", "dim") if change.field in found.follows else "")
        if change.now is None and found.action is Action.CREATE:
            yield f"{indent}{safe(change.field)}: {wanted}"
        else:
            yield f"{indent}{safe(change.field)}: {style.paint(shown(change.now, unit), 'red')} → {wanted}"
