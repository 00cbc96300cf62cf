"""A drift report as text, as Markdown for a ticket, and as data."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from bfinfra.model.drift import ALARMING, Cause, Drifted, Report
from bfinfra.model.plan import plain
from bfinfra.render import problems
from bfinfra.render.data import document, problem
from bfinfra.render.markdown import blind, code, listed, prose, row
from bfinfra.render.safe import safe
from bfinfra.render.style import PLAIN, Style
from bfinfra.render.text import blind_count, part, unreadable
from bfinfra.render.values import count, minute, shown, utc

SAYS = {
    Cause.DRIFT: ("~", "red", "drifted: the live state changed"),
    Cause.CONFLICT: ("≠", "magenta", "conflict: the live state and the file both changed"),
    Cause.VANISHED: ("-", "red", "has vanished"),
    Cause.MISSING: ("?", "red", "does not exist"),
    Cause.UNMARKED: ("!", "yellow", "has its name taken by another object"),
    Cause.UNAPPLIED: ("+", "blue", "is not applied yet: the file changed"),
    Cause.UNFINISHED: ("…", "yellow", "is unfinished"),
}


def text(found: Report, style: Style = PLAIN) -> str:
    """Each resource that differs, with its fields; what has ended; problems; the summary."""
    blocks = [
        "\n".join(_block(group, style))
        for group in _groups(found.found)
        if style.verbose or not group[0].ignored
    ]
    over = [f"no longer: {safe(each)}" for each in found.ended]
    blocks += [
        "\n".join(over),
        problems.warnings(found.warnings, style),
        unreadable(found, style),
        problems.problems(found.problems, style),
    ]
    return "\n\n".join(
        [
            *filter(None, blocks),
            style.paint(total(found), "bold", *(["red"] if found.blind or found.alarming else [])),
        ]
    )


def changes(found: Report, style: Style = PLAIN) -> str:
    """Only the drift that started or ended since the last check; "" if none did."""
    new_groups = _groups(each for each in found.alarming if each.identity in found.new)
    return "\n\n".join(
        filter(
            None,
            [
                "\n\n".join("\n".join(_block(group, style)) for group in new_groups),
                "\n".join(f"no longer: {safe(each)}" for each in found.ended),
            ],
        )
    )


def total(found: Report) -> str:
    """`site: 2 drifted, 1 not applied, 1 ignored; 7 up to date.`"""
    return " ".join(filter(None, (_total(found), part(found.partial))))


def _total(found: Report) -> str:
    head = safe(found.site)
    words = ", ".join(_counted(found))
    if found.blind:
        return (
            f"{head}: {', '.join(filter(None, (words, f'{found.agreed} up to date')))}. What could not be "
            "read or decided may have drifted as well."
        )
    if not found.alarming:
        rest = f", {words}" if words else ""
        return f"{head}: no drift: {count(found.agreed, 'resource')} up to date{rest}."
    return f"{head}: {words}; {found.agreed} up to date."


def markdown(found: Report, style: Style = PLAIN) -> str:
    """For a ticket: a table of the differences; what has ended, problems and warnings as lists."""
    rows = [
        row(
            f"{SAYS[d.cause][0]} {d.cause}",
            code(d.key),
            code(d.field),
            _cell(d, style),
            prose(who(d)),
            prose(_since(d)),
        )
        for d in found.found
    ]
    table = (
        [
            "| cause | resource | field | change | by | since |",
            "| --- | --- | --- | --- | --- | --- |",
            *rows,
            "",
        ]
        if rows
        else []
    )
    over = [f"- {prose(each)}" for each in found.ended]
    return (
        "\n".join(
            [
                f"### bfinfra drift: {prose(found.site)}",
                "",
                f"**{prose(total(found))}**",
                "",
                *table,
                *(["#### No longer", *over, ""] if over else []),
                *listed("Problems", list(found.problems)),
                *listed("Warnings", [warned.problem for warned in found.warnings]),
                *blind(found.unreadable),
            ]
        ).rstrip()
        + "\n"
    )


def data(found: Report) -> dict[str, Any]:
    """The report as JSON; its schema is specs/drift.schema.json."""
    return document(
        "drift",
        site=found.site,
        at=utc(found.at),
        drifted=bool(found.alarming),
        partial=found.partial.data() if found.partial else None,
        agreed=found.agreed,
        summary={str(cause): sum(d.cause is cause and not d.ignored for d in found.found) for cause in Cause}
        | {"ignored": sum(bool(d.ignored) for d in found.found)},
        findings=[finding(each, new=each.identity in found.new) for each in found.found],
        ended=list(found.ended),
        problems=[problem(p) for p in found.problems],
        unreadable=[{"address": where, "why": why} for where, why in found.unreadable.items()],
        warnings=[problem(warned.problem) for warned in found.warnings],
    )


def message(found: Report) -> dict[str, Any]:
    """The webhook's message: what started and what ended, without values of files or servers. The same change
    has the same `id`.
    """
    new = [each for each in found.alarming if each.identity in found.new]
    began = [
        {
            "address": str(each.key),
            "field": each.field,
            "cause": str(each.cause),
            "by": each.by,
            "since": utc(each.since or found.at),
        }
        for each in new
    ]
    identity = hashlib.sha256(json.dumps([found.site, began, list(found.ended)]).encode()).hexdigest()
    return document(
        "drift_news",
        id=identity[:32],
        site=found.site,
        at=utc(found.at),
        drifted=bool(found.alarming),
        lasting=len(found.alarming) - len(began),
        began=began,
        ended=list(found.ended),
    )


def lines(found: Report) -> Iterable[dict[str, Any]]:
    """The same with a document for each finding, the summary last."""
    whole = data(found)
    for each in whole.pop("findings"):
        yield document("finding", site=found.site, **each)
    yield whole


def finding(found: Drifted, *, new: bool = False) -> dict[str, Any]:
    """A finding as JSON."""
    return {
        "address": str(found.key),
        "cause": str(found.cause),
        "field": found.field,
        "applied": plain(found.applied),
        "now": plain(found.now),
        "wanted": plain(found.wanted),
        "why": found.why,
        "by": found.by,
        "at": None if found.at is None else utc(found.at),
        "since": None if found.since is None else utc(found.since),
        "new": new,
        "ignored": found.ignored,
    }


def _groups(found: Iterable[Drifted]) -> list[list[Drifted]]:
    """Groups by resource, cause and whether it is ignored, in the order of the plan."""
    return [
        list(group)
        for _, group in itertools.groupby(
            sorted(found, key=lambda d: bool(d.ignored)), key=lambda d: (d.key, d.cause, d.ignored)
        )
    ]


def _block(group: list[Drifted], style: Style) -> Iterator[str]:
    first = group[0]
    symbol, colour, words = SAYS[first.cause]
    yield (
        f"{style.paint(symbol, colour)} {style.paint(safe(first.key), 'bold')} {words}"
        f"{f' (ignored: {safe(first.ignored)})' if first.ignored else ''}"
    )
    for each in group:
        change = f"{safe(each.field)}: {_values(each, style)}" if each.field else safe(each.why)
        origin = ", ".join(filter(None, (who(each), _since(each))))
        yield f"    {change}" + (style.paint(f"  ({safe(origin)})", "dim") if origin else "")


def _values(found: Drifted, style: Style) -> str:
    unit = style.units(found.key.kind, found.field)
    now, wanted = style.paint(shown(found.now, unit), "red"), style.paint(shown(found.wanted, unit), "green")
    return f"is {now}, should be {wanted}" + (
        f", was applied as {shown(found.applied, unit)}" if found.cause is Cause.CONFLICT else ""
    )


def _cell(found: Drifted, style: Style) -> str:
    if not found.field:
        return prose(found.why)
    unit = style.units(found.key.kind, found.field)
    return f"is {code(shown(found.now, unit))}, should be {code(shown(found.wanted, unit))}"


def who(found: Drifted) -> str:
    """`changed by root at 2026-11-21 10:00 UTC`, as far as known."""
    at = f"at {minute(found.at)}" if found.at else ""
    return " ".join(filter(None, (f"changed by {found.by}" if found.by else "changed" if at else "", at)))


def _since(found: Drifted) -> str:
    return f"since {minute(found.since)}" if found.since and found.cause in ALARMING else ""


def _counted(found: Report) -> Iterator[str]:
    per = Counter(d.cause for group in _groups(found.found) for d in group[:1] if not d.ignored)
    words = {
        Cause.DRIFT: "drifted",
        Cause.CONFLICT: "in conflict",
        Cause.VANISHED: "vanished",
        Cause.MISSING: "not there",
        Cause.UNMARKED: "unmarked",
        Cause.UNAPPLIED: "not applied",
        Cause.UNFINISHED: "unfinished",
    }
    yield from (f"{per[cause]} {word}" for cause, word in words.items() if per[cause])
    if ignored := sum(bool(group[0].ignored) for group in _groups(found.found)):
        yield f"{ignored} ignored"
    if found.unreadable:
        yield f"{blind_count(found.unreadable)} unreadable"
    if found.problems:
        yield count(len(found.problems), "problem")
