"""Problems as a compiler prints them: place, the line with a caret, why, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from bfinfra.model.errors import Place, Problem, Warned
from bfinfra.render.safe import safe, safe_lines, width
from bfinfra.render.style import PLAIN, Style

WINDOW = 120  # characters of an offending line


def problem(found: Problem, style: Style = PLAIN, word: str = "error") -> str:
    """`site.yaml:12:5: error: …`, the line, the caret, `why:` and `next:`."""
    where = style.paint(f"{safe(found.where)}: ", "bold") if found.where else ""
    head, *more = safe_lines(found.what) or [""]
    lines = [
        f"{where}{style.paint(word + ':', 'bold', 'red' if word == 'error' else 'yellow')} {head}",
        *(f"  {line}" for line in more),
    ]
    if isinstance(found.where, Place) and found.where.text.strip():
        lines += _excerpt(found.where, style)
    return "\n".join([*lines, *notes(found, style, "  ")])


def problems(found: Iterable[Problem], style: Style = PLAIN) -> str:
    """Each problem once, separated by blank lines. Problems with the same reason and remedy share them."""
    alike: dict[object, list[Problem]] = {}
    for each in dict.fromkeys(found):
        alike.setdefault(
            (each.why, each.next) if each.why and not isinstance(each.where, Place) else each, []
        ).append(each)
    return "\n\n".join(
        "\n".join(
            [*(problem(replace(p, why="", next=""), style) for p in group[:-1]), problem(group[-1], style)]
        )
        for group in alike.values()
    )


def warnings(found: Iterable[Warned], style: Style = PLAIN) -> str:
    """The same for warnings."""
    return "\n".join(problem(each.problem, style, "warning") for each in dict.fromkeys(found))


def notes(found: Problem, style: Style, indent: str) -> list[str]:
    """The lines `why:` and `next:`, if known."""
    lines = []
    for label, text in (("why", found.why), ("next", found.next)):
        for number, line in enumerate(safe_lines(text)):
            lines.append(
                indent
                + (style.paint(f"{label}:", "cyan") if number == 0 else " " * (len(label) + 1))
                + " "
                + line
            )
    return lines


def _excerpt(place: Place, style: Style) -> list[str]:
    text, column = place.text.rstrip("\r\n"), max(place.column, 1) - 1
    start = max(0, min(column - WINDOW // 2, len(text) - WINDOW))
    before, after = safe(text[start:column]), safe(text[column : start + WINDOW])
    length = max(1, width(safe(_word(text[column : start + WINDOW]))))
    return [f"  {before}{after}", "  " + " " * width(before) + style.paint("^" * length, "green")]


def _word(text: str) -> str:
    """Return the underlined word: a quoted text, or a word."""
    found = re.match(r"""\"[^"]*\"|'[^']*'|[^\s:,\[\]{}#]+""", text)
    return found[0] if found else ""
