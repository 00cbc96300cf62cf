"""A drift report as one page of HTML that needs nothing else: no script, no font, no address outside of
it.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from bfinfra.model.drift import ALARMING, Cause, Drifted, Report
from bfinfra.model.errors import Problem
from bfinfra.model.order import Before, Specs
from bfinfra.model.refs import Key
from bfinfra.render.drift import SAYS, total
from bfinfra.render.safe import safe
from bfinfra.render.style import PLAIN, Style
from bfinfra.render.topology import Box, picture
from bfinfra.render.values import minute, shown, utc

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --soft: #57606a; --line: #c4cbd3; --box: #f6f8fa; --alarm: #b3261e; --note: #0b5cad; --quiet: #57606a; --good: #1a6b35; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #0f1318; --ink: #e8ecf1; --soft: #a5b0bd; --line: #46505c; --box: #1a2129; --alarm: #ff8f85; --note: #86bdff; --quiet: #a5b0bd; --good: #79d192; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
header, main, footer { max-width: 90rem; margin: 0 auto; padding: 1rem 1.5rem; }
h1 { margin: 0; font-size: 1.5rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
.skip { position: absolute; left: -100rem; } .skip:focus { position: static; }
.verdict { font-weight: 600; } .verdict.alarm { color: var(--alarm); } .verdict.good { color: var(--good); }
.scroll { overflow: auto; border: 1px solid var(--line); border-radius: 6px; }
svg { display: block; font: 13px system-ui, sans-serif; }
.edges path { fill: none; stroke: var(--line); stroke-width: 1.5; }
.box > rect:first-child { fill: var(--box); stroke: var(--line); stroke-width: 1.5; }
.box .kind { fill: var(--soft); font-size: 12px; } .box .name { fill: var(--ink); font-weight: 600; } .box .sign { font-size: 20px; font-weight: 700; text-anchor: middle; }
.part { fill: var(--soft); opacity: .55; }
.alarm > rect:first-child { stroke: var(--alarm); stroke-width: 3; } .alarm .sign { fill: var(--alarm); }
.note > rect:first-child { stroke: var(--note); stroke-width: 2; stroke-dasharray: 6 3; } .note .sign { fill: var(--note); }
.quiet > rect:first-child { stroke-dasharray: 2 3; } .quiet .sign { fill: var(--quiet); }
:focus-visible { outline: 3px solid var(--note); outline-offset: 2px; }
a.box:focus-visible, g.box:focus-visible { outline: none; } a.box:focus-visible > rect:first-child, g.box:focus-visible > rect:first-child { stroke: var(--note); stroke-width: 4; }
table { border-collapse: collapse; width: 100%; } caption { text-align: left; color: var(--soft); padding: .25rem .75rem; }
th, td { text-align: left; vertical-align: top; padding: .4rem .75rem; border-bottom: 1px solid var(--line); overflow-wrap: break-word; } th[scope=col], time { white-space: nowrap; }
tr:target { background: var(--box); } code { font: .9em ui-monospace, monospace; } td.alarm { color: var(--alarm); font-weight: 600; } td.note { color: var(--note); } td.quiet { color: var(--quiet); }
@media print { .scroll { overflow: visible; } }
"""
HEADS = ("What", "Resource", "Field", "Live", "By the file", "Applied", "Who and when", "Since")


def page(found: Report, resources: Specs, before: Before, style: Style = PLAIN) -> str:
    """`resources`: the site's specs; `before`: what each refers to. One whole document."""
    verdict = "alarm" if found.blind or found.alarming else "good"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            (
                '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src '
                "'unsafe-inline'\">"
            ),
            f"<title>{_text(found.site)}: drift</title>",
            f"<style>{STYLE}</style>",
            "</head>",
            "<body>",
            '<a class="skip" href="#findings">To what drifted</a>',
            "<header>",
            f"<h1>{_text(found.site)}</h1>",
            f'<p class="verdict {verdict}" role="status">{_text(total(found))}</p>',
            f"<p>Checked {_time(found.at)}.</p>",
            "</header>",
            "<main>",
            *_findings(found, style),
            *_lists(found),
            '<section aria-labelledby="topology">',
            '<h2 id="topology">Topology</h2>',
            '<div class="scroll" tabindex="0" role="region" aria-labelledby="topology">',
            picture(_boxes(found, resources, style), before),
            "</div>",
            "</section>",
            "</main>",
            (
                "<footer><p>Made by bfinfra drift. Boxes with a sign link to their row in the table; lines "
                "lead from what must stand first.</p></footer>"
            ),
            "</body>",
            "</html>",
            "",
        ]
    )


def _boxes(found: Report, resources: Specs, style: Style) -> list[Box]:
    by: dict[Key, list[Drifted]] = {}
    for each in found.found:
        by.setdefault(each.key, []).append(each)
    keys = [*resources, *(key for key in by if key not in resources)]
    return [_box(key, resources.get(key), by.get(key, []), found, style) for key in keys]


def _box(key: Key, spec: Any, those: Sequence[Drifted], found: Report, style: Style) -> Box:
    parts = tuple(spec.parts()) if spec is not None else ()
    if why := found.unreadable.get(str(key)) or found.unreadable.get(key.kind):
        return Box(key, parts, "alarm", "?", f"can't be read: {why}")
    if not those:
        return Box(key, parts)
    worst = min(those, key=lambda each: (bool(each.ignored), list(Cause).index(each.cause)))
    words = "; ".join(
        f"{SAYS[cause][2]}: {', '.join(_said(each, style) for each in those if each.cause is cause)}"
        for cause in dict.fromkeys(each.cause for each in those)
    )
    return Box(key, parts, _class(worst), SAYS[worst.cause][0], words, _id(key))


def _said(found: Drifted, style: Style) -> str:
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
    head = "".join(f'<th scope="col">{each}</th>' for each in HEADS)
    seen: set[Key] = set()
    rows = []
    for each in found.found:
        rows.append(_row(each, style, first=each.key not in seen))
        seen.add(each.key)
    return [
        '<section id="findings" tabindex="-1">',
        "<h2>Findings</h2>",
        '<div class="scroll" tabindex="0" role="region" aria-label="Findings">',
        "<table>",
        "<caption>What does not agree, and who moved it</caption>",
        f"<thead><tr>{head}</tr></thead>",
        "<tbody>",
        *rows,
        "</tbody>",
        "</table>",
        "</div>",
        "</section>",
    ]


def _row(found: Drifted, style: Style, *, first: bool) -> str:
    unit = style.units(found.key.kind, found.field)
    values = [
        f"<code>{_text(shown(value, unit))}</code>" if found.field else ""
        for value in (found.now, found.wanted, found.applied)
    ]
    sentence = f"{SAYS[found.cause][0]} {SAYS[found.cause][2]}" + (
        f" (ignored: {found.ignored})" if found.ignored else ""
    )
    who = " ".join(filter(None, (_text(found.by), _time(found.at) if found.at else "")))
    cells = [
        f"<code>{_text(found.field)}</code>" if found.field else _text(found.why),
        *values,
        who,
        _time(found.since) if found.since and found.cause in ALARMING else "",
    ]
    anchor = f' id="{_id(found.key)}" tabindex="-1"' if first else ""
    return (
        f'<tr{anchor}><td class="{_class(found)}">{_text(sentence)}</td>'
        f'<th scope="row"><code>{_text(found.key)}</code></th>'
        + "".join(f"<td>{cell}</td>" for cell in cells)
        + "</tr>"
    )


def _lists(found: Report) -> list[str]:
    blind = [Problem(f"{where} can't be read", why=why) for where, why in found.unreadable.items()]
    parts = [
        ("Can't be read", blind),
        ("Problems", list(found.problems)),
        ("Warnings", [each.problem for each in found.warnings]),
        ("No longer", [Problem(each) for each in found.ended]),
    ]
    return [
        line
        for title, those in parts
        if those
        for line in (
            "<section>",
            f"<h2>{_text(title)}</h2>",
            "<ul>",
            *(
                f"<li>{_text('; '.join(filter(None, (str(p.where), p.what, p.why, p.next))))}</li>"
                for p in those
            ),
            "</ul>",
            "</section>",
        )
    ]


def _class(found: Drifted) -> str:
    return "quiet" if found.ignored else "alarm" if found.cause in ALARMING else "note"


def _id(key: Key) -> str:
    """An id that no other resource has, of letters that need no escape."""
    return "r-" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in str(key))


def _time(at: float) -> str:
    return f'<time datetime="{utc(at)}">{minute(at)}</time>'


def _text(words: object) -> str:
    return html.escape(safe(words))
