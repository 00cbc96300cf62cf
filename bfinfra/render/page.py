"""A drift report as one page of HTML."""

from __future__ import annotations

from collections.abc import Sequence

from bfinfra.model.drift import ALARMING, Cause, Drifted, Report
from bfinfra.model.errors import Problem
from bfinfra.model.order import Before, Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.render import html_page
from bfinfra.render.drift import SAYS, total
from bfinfra.render.html_page import identifier, moment
from bfinfra.render.html_text import broken, text
from bfinfra.render.style import PLAIN, Style
from bfinfra.render.topology import Box, Drawing, parts_of
from bfinfra.render.values import shown

HEADS = ("What", "Resource", "Field", "Live", "By the file", "Applied", "Who and when", "Since")


RENEWED = 2  # seconds until the page of a watch is read again


@dataclass(frozen=True)
class Followed:
    """A site that is watched: `since` when; `lost`: when its servers could not be followed any more, and
    `why`; `ended`: when the watch ended. Times in seconds since the epoch, 0: not.
    """

    since: float
    lost: float = 0.0
    why: str = ""
    ended: float = 0.0


def page(
    found: Report, resources: Specs, before: Before, style: Style = PLAIN, followed: Followed | None = None
) -> str:
    """The whole document. `resources`: the site's specs; `before`: key → the keys that it refers to. With
    `followed`, a browser reads it again by itself.
    """
    return html_page.whole(
        found.site,
        [
            *_unfollowed(followed),
            html_page.verdict(total(found), alarm=bool(found.blind or found.alarming)),
            _checked(found, followed),
        ],
        [*_findings(found, style), *_lists(found)],
        Drawing(_boxes(found, resources, style), before),
        skip="findings To what drifted",
        made=f"Made by bfinfra {'watch' if followed else 'drift'}. Boxes with a sign link to their row in "
        "the table; lines lead from what must be done first.",
        renewed=RENEWED if followed else 0,
    )


def _checked(found: Report, followed: Followed | None) -> str:
    if followed is None:
        return f"<p>Checked {moment(found.at)}.</p>"
    return (
        f"<p>Followed since {moment(followed.since)}; this is the report of {moment(found.at)}. The page "
        "renews itself.</p>"
    )


def _unfollowed(followed: Followed | None) -> list[str]:
    """Since when the report may be out of date, and why."""
    if followed is None or not (followed.ended or followed.lost):
        return []
    words = (
        f"The watch ended {moment(followed.ended)}."
        if followed.ended
        else f"Changes are not followed since {moment(followed.lost)}: {text(followed.why)}"
    )
    return [f'<p class="verdict alarm">{words}</p>']


def _boxes(found: Report, resources: Specs, style: Style) -> list[Box]:
    by: dict[Key, list[Drifted]] = {}
    for each in found.found:
        by.setdefault(each.key, []).append(each)
    keys = [*resources, *(key for key in by if key not in resources)]
    return [_box(key, resources.get(key), by.get(key, []), found, style) for key in keys]


def _box(key: Key, spec: object, those: Sequence[Drifted], found: Report, style: Style) -> Box:
    parts = parts_of(spec)
    if why := found.unreadable.get(str(key)) or found.unreadable.get(key.kind):
        return Box(key, parts, "alarm", "?", f"can't be read: {why}")
    if not those:
        return Box(key, parts)
    worst = min(those, key=lambda each: (bool(each.ignored), list(Cause).index(each.cause)))
    words = "; ".join(
        f"{SAYS[cause][2]}: {', '.join(_sentence(each, style) for each in those if each.cause is cause)}"
        for cause in dict.fromkeys(each.cause for each in those)
    )
    return Box(key, parts, _class(worst), SAYS[worst.cause][0], words, identifier(key))


def _sentence(found: Drifted, style: Style) -> str:
    unit = style.units(found.key.kind, found.field)
    return (
        f"{found.field} {shown(found.now, unit)} instead of {shown(found.wanted, unit)}"
        if found.field
        else found.why
    )


def _findings(found: Report, style: Style) -> list[str]:
    if not found.found:
        return [
            '<section id="findings" tabindex="-1">',
            "<h2>Findings</h2>",
            "<p>Everything that could be read is as the site says.</p>"
            if found.blind
            else "<p>Everything is as the site says.</p>",
            "</section>",
        ]
    return [
        '<section id="findings" tabindex="-1">',
        "<h2>Findings</h2>",
        *html_page.table("Findings", "What differs, and who changed it", HEADS, rows(found, style)),
        "</section>",
    ]


def rows(found: Report, style: Style = PLAIN) -> list[str]:
    """A row of the table for each finding. The first row of a resource has its id."""
    listed: set[Key] = set()
    lines = []
    for each in found.found:
        lines.append(_row(each, style, first=each.key not in listed))
        listed.add(each.key)
    return lines


def _row(found: Drifted, style: Style, *, first: bool) -> str:
    unit = style.units(found.key.kind, found.field)
    values = [
        f"<code>{text(shown(value, unit))}</code>" if found.field else ""
        for value in (found.now, found.wanted, found.applied)
    ]
    sentence = f"{SAYS[found.cause][0]} {SAYS[found.cause][2]}" + (
        f" (ignored: {found.ignored})" if found.ignored else ""
    )
    who = " ".join(filter(None, (broken(found.by), moment(found.at) if found.at else "")))
    cells = [
        text(sentence),
        broken(found.key),
        f"<code>{broken(found.field)}</code>" if found.field else text(found.why),
        *values,
        who,
        moment(found.since) if found.since and found.cause in ALARMING else "",
    ]
    return html_page.row(identifier(found.key) if first else "", _class(found), HEADS, cells)


def _lists(found: Report) -> list[str]:
    return [
        *html_page.unreadable(found.unreadable),
        *html_page.problems("Problems", found.problems),
        *html_page.problems("Warnings", [each.problem for each in found.warnings]),
        *html_page.problems("No longer", [Problem(each) for each in found.ended]),
    ]


def _class(found: Drifted) -> str:
    return "quiet" if found.ignored else "alarm" if found.cause in ALARMING else "note"
