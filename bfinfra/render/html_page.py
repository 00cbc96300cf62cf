"""A page of HTML without scripts, fonts or external addresses. Shared by the pages of drift, plan, apply and
graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bfinfra.model.errors import Problem
from bfinfra.model.refs import Key
from bfinfra.render.html_style import STYLE
from bfinfra.render.html_text import broken, text
from bfinfra.render.topology import Box, Drawing
from bfinfra.render.values import minute, utc

LEGIBLE = 0.8
"""A picture is not drawn smaller than this; a narrower screen shows it as a list."""
MARGIN = 50  # pixels at both sides of a picture


def whole(  # noqa: PLR0913 - what a page is made of
    site: str,
    header: Iterable[str],
    main: Iterable[str],
    drawing: Drawing,
    *,
    made: str,
    skip: str = "",
    renewed: int = 0,
) -> str:
    """A whole document. `header` and `main`: lines of HTML; `drawing`: the picture of the site, below them;
    `made`: the command that made it, and how to read it; `skip`: the id and the words of a skip link, such as
    `findings To what drifted`; `renewed`: seconds until a browser reads it again, 0 for never.
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
            f"<style>{STYLE}{_sizes(drawing.width)}</style>",
            "</head>",
            "<body>",
            *([f'<a class="skip" href="#{anchor}">{text(words)}</a>'] if skip else []),
            "<header>",
            f"<h1>{text(site)}</h1>",
            *header,
            "</header>",
            "<main>",
            *main,
            *_topology(drawing),
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
    """A table; on a narrow screen each row is a block of lines. `rows`: what `row` makes. Its roles are
    written, as a table that is shown as blocks has none of its own.
    """
    head = "".join(f'<th scope="col" role="columnheader">{each}</th>' for each in heads)
    return [
        '<div class="frame">',
        f'<table role="table" aria-label="{label}">',
        f"<caption>{caption}</caption>",
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>',
        '<tbody role="rowgroup">',
        *rows,
        "</tbody>",
        "</table>",
        "</div>",
    ]


def row(anchor: str, style: str, heads: Sequence[str], cells: Sequence[str]) -> str:
    """A row of a table. `anchor`: its id, or ""; `style`: class of the first cell; `heads`: of all columns;
    `cells`: HTML of each cell, the second one names the resource.
    """
    what, resource, *others = cells
    target = f' id="{anchor}" tabindex="-1"' if anchor else ""
    return "".join(
        [
            f'<tr role="row"{target}>',
            f'<td role="cell" class="{style}">{what}</td>',
            f'<th role="rowheader" scope="row" aria-label="{resource.replace("<wbr>", "")}">',
            f"<code>{resource}</code></th>",
            *(
                f'<td role="cell" data-head="{head}">{f"<div>{cell}</div>" if cell else ""}</td>'
                for head, cell in zip(heads[2:], others, strict=True)
            ),
            "</tr>",
        ]
    )


def _sizes(width: int) -> str:
    """Return the part of the style that depends on the width of the picture, in pixels."""
    narrow = int(LEGIBLE * width) + MARGIN
    return (
        f":root {{ --picture: {width + MARGIN}px; }}\n"
        f"@media (max-width: {narrow}px) {{\n"
        "  .frame svg { display: none; }\n  .listed { display: block; }\n}\n"
    )


def _topology(drawing: Drawing) -> list[str]:
    """The picture of the site as a section, and the same as a list."""
    return [
        '<section aria-labelledby="topology">',
        '<h2 id="topology">Topology</h2>',
        '<div class="frame">',
        drawing.picture(),
        '<ol class="listed">',
        *(_listed(box, drawing.comes_after(box)) for box in drawing.boxes),
        "</ol>",
        "</div>",
        "</section>",
    ]


def _listed(box: Box, after: Sequence[Key]) -> str:
    key = f"<code>{broken(box.key)}</code>"
    words = " ".join(filter(None, (box.sign, box.words)))
    return "".join(
        [
            f'<li class="{box.cause}">' if box.cause else "<li>",
            f'<a href="#{text(box.link)}">{key}</a>' if box.link else key,
            f' <span class="words">{text(words)}</span>' if words else "",
            f'<span class="after">holds {text(", ".join(box.parts))}</span>' if box.parts else "",
            f'<span class="after">after {text(", ".join(map(str, after)))}</span>' if after else "",
            "</li>",
        ]
    )


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
