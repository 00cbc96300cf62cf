"""A plan as text for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from bfinfra.model.compare import Change
from bfinfra.model.drift import Report
from bfinfra.model.errors import Problem, Warned
from bfinfra.model.events import Ending
from bfinfra.model.partial import Partial
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.refs import Key
from bfinfra.model.step import Disruption, Step
from bfinfra.model.unreadable import Unread, by_cause
from bfinfra.render import problems
from bfinfra.render.safe import safe
from bfinfra.render.style import DISRUPTIONS, ENDINGS, PLAIN, SYMBOLS, Style
from bfinfra.render.values import count, shown

MOST = 4  # names in a line
QUIET = (Action.KEEP, Action.READ)


def plan(found: Plan, style: Style = PLAIN) -> str:
    """Every item that changes, with its steps and fields; then problems; then the summary."""
    blocks = [
        "\n".join(item(each, style))
        for each in found.items
        if style.verbose or each.action not in QUIET or each.steps or each.held
    ]
    blocks += [
        problems.warnings(warned(found), style),
        unreadable(found, style),
        problems.problems(found.problems, style),
        part(found.partial),
    ]
    return "\n\n".join([*filter(None, blocks), summary(found, style)])


def part(found: Partial | None) -> str:
    """The sentence that a plan or report is about some resources only; "" if it is about all."""
    if found is None:
        return ""
    beside, left = len(found.keys) - len(found.targets), found.left_out
    needed = f" and {count(beside, 'resource')} that must be done before" if beside else ""
    others = f"{count(left, 'other resource')} {'is' if left == 1 else 'are'} left out"
    return f"Partial: {', '.join(safe(key) for key in found.targets)}{needed}; {others}."


def item(found: Item, style: Style = PLAIN) -> Iterator[str]:
    """One resource: symbol, word, address; its disruption and lost contents; its steps, each with the fields
    it changes.
    """
    yield _head(found, style)
    if found.held:
        yield from _waits(found, found.held, style)
    yield from _dangers(found, style)
    earlier: list[Change] = []
    for number, step in enumerate(found.steps, 1):
        yield (
            f"    {number}. {safe(step.title())}"
            f"{'' if found.action is Action.DELETE else _warns(step, style)}"
        )
        new = tuple(change for change in step.changes if change not in earlier)
        yield from _fields(found, new, "       ", style)
        earlier += new


def summary(found: Plan, style: Style = PLAIN) -> str:
    """`singapore-poc: 2 to create, 1 to delete, 12 up to date.`, and whether there is anything to do."""
    if not found.items and not found.unreadable and not found.problems and not found.lost:
        return "The site has no resources, and none of its objects exist: nothing to do."
    head = f"{safe(found.site)}: {counts(found)}."
    if found.problems or found.unreadable:
        return style.paint(f"{head} Correct the above before an apply.", "bold", "red")
    if found.lost and not found.pending:
        return style.paint(f"{head} Nothing else to do.", "bold")
    return style.paint(head if found.pending or found.held else f"{head} Nothing to do.", "bold")


def counts(found: Plan) -> str:
    """`2 to create, 1 to delete, 12 up to date`, without zeros."""
    per = Counter(each.action for each in found.items if each.held is None)
    words = [
        f"{per[action]} to {action}"
        for action in (Action.CREATE, Action.UPDATE, Action.REPLACE, Action.DELETE)
        if per[action]
    ]
    agreed = sum(per[action] for action in QUIET)
    words += [f"{len(found.held)} waiting"] if found.held else []
    words += [f"{len(found.lost)} not found"] if found.lost else []
    words += [f"{agreed} up to date"] if agreed or not words else []
    words += [f"{blind_count(found.unreadable)} unreadable"] if found.unreadable else []
    words += [count(len(found.problems), "problem")] if found.problems else []
    return ", ".join(words)


def unreadable(found: Plan | Report, style: Style = PLAIN) -> str:
    """Return a sentence for each cause by which something could not be read. Kinds are named only if the file
    has no unreadable resource.
    """
    return "\n".join(_blind(each, style) for each in by_cause(found.unreadable))


def _blind(found: Unread, style: Style) -> str:
    most = len(found.named) if style.verbose else MOST
    listed = ", ".join(style.paint(safe(name), "bold") for name in found.named[:most])
    more = f" and {len(found.named) - most} more" if len(found.named) > most else ""
    word = style.paint("can't be read:", "bold", "red")
    stop = "." if found.besides and found.why[-1:] not in ".!?" else ""
    return f"{listed}{more} {word} {safe(found.why)}{stop}{found.besides and f' {found.besides}'}"


def blind_count(unreadable: Mapping[str, str]) -> int:
    """The number of unreadable resources, or of kinds if no resource is named."""
    return sum("/" in where for where in unreadable) or len(unreadable)


def _head(found: Item, style: Style) -> str:
    symbol, colour = ENDINGS[Ending.WAITING] if found.held else SYMBOLS[found.shown]
    word = "waits" if found.held else found.shown
    return f"{style.paint(f'{symbol} {word:<8}', colour)}{style.paint(safe(found.key), 'bold')}"


def _waits(found: Item, held: Problem, style: Style) -> Iterator[str]:
    where = f"  ({safe(held.where)})" if held.where else ""
    yield f"    {safe(own(found.key, held.what))}{where}"
    yield from problems.notes(held, style, "    ")


def warned(found: Plan) -> tuple[Warned, ...]:
    """The plan's warnings, without those that a waiting item prints itself."""
    named = {each.held for each in found.held}
    return tuple(each for each in found.warnings if each.problem not in named)


def own(key: Key, what: str) -> str:
    """A problem's text without the resource's name, where that is printed already."""
    return what.removeprefix(f"{key}").lstrip(": ") if what.startswith((f"{key}: ", f"{key} ")) else what


def _dangers(found: Item, style: Style) -> Iterator[str]:
    if any(step.destructive for step in found.steps):
        yield "    " + style.paint("destroys what can't be recovered", "red")
    if found.contents:
        yield "    " + style.paint(
            f"deletes what is not this site's: {', '.join(map(safe, found.contents))}", "red"
        )


def _warns(step: Step, style: Style) -> str:
    if step.disruption is Disruption.NONE:
        return ""
    why = f": {safe(step.why)}" if step.why else ""
    return style.paint(f"  [{DISRUPTIONS[step.disruption]}{why}]", "magenta")


def _fields(found: Item, changes: tuple[Change, ...], indent: str, style: Style) -> Iterator[str]:
    for change in changes:
        unit = style.units(found.key.kind, change.field)
        wanted = style.paint(shown(change.wanted, unit), "green") + (
            style.paint("  (follows)", "dim") if change.field in found.follows else ""
        )
        if change.now is None and found.action is Action.CREATE:
            yield f"{indent}{safe(change.field)}: {wanted}"
        else:
            yield f"{indent}{safe(change.field)}: {style.paint(shown(change.now, unit), 'red')} → {wanted}"
