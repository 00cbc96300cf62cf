"""A page of HTML without scripts, fonts or external addresses. Shared by the pages of drift, plan, apply and
graph.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

from bfinfra.model.errors import Problem
from bfinfra.model.order import Before
from bfinfra.model.refs import Key
from bfinfra.render.safe import safe
from bfinfra.render.topology import Box, picture
from bfinfra.render.values import minute, utc

STYLE = """
:root {
  color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --soft: #57606a; --line: #c4cbd3;
  --box: #f6f8fa; --alarm: #b3261e; --note: #0b5cad; --quiet: #57606a; --good: #1a6b35;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #0f1318; --ink: #e8ecf1; --soft: #a5b0bd; --line: #46505c; --box: #1a2129;
    --alarm: #ff8f85; --note: #86bdff; --quiet: #a5b0bd; --good: #79d192;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink); font: 16px/1.5 system-ui, sans-serif;
}
header, main, footer { max-width: 90rem; margin: 0 auto; padding: 1rem 1.5rem; }
h1 { margin: 0; font-size: 1.5rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
main { padding-top: 0; }
main > :first-child h2 { margin-top: .5rem; }
.skip { position: absolute; left: -100rem; }
.skip:focus { position: static; }
.verdict { font-weight: 600; }
.verdict.alarm { color: var(--alarm); }
.verdict.good { color: var(--good); }
.scroll { overflow: auto; border: 1px solid var(--line); border-radius: 6px; }
svg { display: block; font: 13px system-ui, sans-serif; }
.edges path { fill: none; stroke: var(--line); stroke-width: 1.5; }
.box > rect:first-child { fill: var(--box); stroke: var(--line); stroke-width: 1.5; }
.box .kind { fill: var(--soft); font-size: 12px; }
.box .name { fill: var(--ink); font-weight: 600; }
.box .sign { font-size: 20px; font-weight: 700; text-anchor: middle; }
.part { fill: var(--soft); opacity: .55; }
.alarm > rect:first-child { stroke: var(--alarm); stroke-width: 3; }
.alarm .sign { fill: var(--alarm); }
.note > rect:first-child { stroke: var(--note); stroke-width: 2; stroke-dasharray: 6 3; }
.note .sign { fill: var(--note); }
.quiet > rect:first-child { stroke-dasharray: 2 3; }
.quiet .sign { fill: var(--quiet); }
:focus-visible { outline: 3px solid var(--note); outline-offset: 2px; }
a.box:focus-visible, g.box:focus-visible { outline: none; }
a.box:focus-visible > rect:first-child, g.box:focus-visible > rect:first-child {
  stroke: var(--note); stroke-width: 4;
}
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; color: var(--soft); padding: .25rem .75rem; }
th, td {
  text-align: left; vertical-align: top; padding: .4rem .75rem;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; min-width: 7rem;
}
th[scope=col], time { white-space: nowrap; }
@media (min-width: 80rem) { th[scope=row] code, th + td code { white-space: nowrap; } }
tr:target { background: var(--box); }
code { font: .9em ui-monospace, monospace; }
td.alarm { color: var(--alarm); font-weight: 600; }
td.note { color: var(--note); }
td.quiet { color: var(--quiet); }
.lines { list-style: none; margin: 0; padding: 0; }
@media print { .scroll { overflow: visible; } }
"""


def whole(  # noqa: PLR0913 - what a page is made of
    site: str, header: Iterable[str], main: Iterable[str], *, made: str, skip: str = "", renewed: int = 0
) -> str:
    """A whole document. `header` and `main`: lines of HTML; `made`: the command that made it, and how to read
    it; `skip`: the id and the words of a skip link, such as `findings To what drifted`; `renewed`: seconds
    until a browser reads it again, 0 for never.
    """
    command = made.partition(".")[0].removeprefix("Made by bfinfra ")
    anchor, _, words = skip.partition(" ")
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
            *([f'<meta http-equiv="refresh" content="{renewed}">'] if renewed else []),
            f"<title>{text(site)}: {command}</title>",
            f"<style>{STYLE}</style>",
            "</head>",
            "<body>",
            *([f'<a class="skip" href="#{anchor}">{text(words)}</a>'] if skip else []),
            "<header>",
            f"<h1>{text(site)}</h1>",
            *header,
            "</header>",
            "<main>",
            *main,
            "</main>",
            f"<footer><p>{text(made)}</p></footer>",
            "</body>",
            "</html>",
            "",
        ]
    )


def verdict(words: str, *, alarm: bool) -> str:
    """The sentence with the result."""
    return f'<p class="verdict {"alarm" if alarm else "good"}" role="status">{text(words)}</p>'


def table(label: str, caption: str, heads: Sequence[str], rows: Sequence[str]) -> list[str]:
    """A table that scrolls by itself on a narrow page. `rows`: lines of HTML."""
    head = "".join(f'<th scope="col">{each}</th>' for each in heads)
    return [
        f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">',
        "<table>",
        f"<caption>{caption}</caption>",
        f"<thead><tr>{head}</tr></thead>",
        "<tbody>",
        *rows,
        "</tbody>",
        "</table>",
        "</div>",
    ]


def topology(boxes: Sequence[Box], before: Before) -> list[str]:
    """The picture of the site as a section."""
    return [
        '<section aria-labelledby="topology">',
        '<h2 id="topology">Topology</h2>',
        '<div class="scroll" tabindex="0" role="region" aria-labelledby="topology">',
        picture(boxes, before),
        "</div>",
        "</section>",
    ]


def problems(title: str, found: Sequence[Problem]) -> list[str]:
    """Problems as a section with a list; nothing without problems."""
    if not found:
        return []
    return [
        "<section>",
        f"<h2>{text(title)}</h2>",
        "<ul>",
        *(f"<li>{text('; '.join(filter(None, (str(p.where), p.what, p.why, p.next))))}</li>" for p in found),
        "</ul>",
        "</section>",
    ]


def unreadable(found: Mapping[str, str]) -> list[str]:
    """Return what could not be read, and why."""
    return problems(
        "Can't be read", [Problem(f"{where} can't be read", why=why) for where, why in found.items()]
    )


def identifier(key: Key) -> str:
    """An id for a resource, unique and of letters that need no escape."""
    return "r-" + "".join(c if c.isascii() and c.isalnum() else f"_{ord(c):x}_" for c in str(key))


def moment(at: float) -> str:
    """A time, for people and for programs."""
    return f'<time datetime="{utc(at)}">{minute(at)}</time>'


def text(words: object) -> str:
    """Escaped text."""
    return html.escape(safe(words))
