"""A plan or an outcome for a ticket or a pull request's comment: a table, and folded details."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from bfinfra.model.errors import Problem
from bfinfra.model.events import Ended, Event
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.unreadable import Unread, by_cause
from bfinfra.render import text
from bfinfra.render.data import Outcome, steps_run
from bfinfra.render.safe import safe
from bfinfra.render.style import DISRUPTIONS, ENDINGS, PLAIN, SYMBOLS, Style
from bfinfra.render.summary import DONE, OUT_OF_SERVICE, WORDS, advice, sum_of
from bfinfra.render.values import duration

SPECIAL = re.compile(
    r"([\\`*\[\]#!|<>~&$]|(?<![^\W_])_|_(?![^\W_])"
    r"|^[-+=]|:(?=//)|(?<=[wW]{3})\.)"
)
"""What means something in GitHub's Markdown: anywhere, at the beginning of a list's item, in an address."""
NUMBER = re.compile(r"^(\d{1,9})([.)])")  # begins a numbered list
REFERENCE = re.compile(r"@|[#!&](?=\d)|\b[Gg][Hh]-(?=\d)")
"""A mention tells somebody, a number leaves a note in another issue: @root, #1, !1, &1, GH-1."""
SPANNED = re.compile(r"(?!.*##)[^`|\s](?:[^`|]*[^`|\s])?")
APART = "&#8203;"  # a backslash does not prevent a mention, which is searched in the rendered text


def plan(found: Plan, style: Style = PLAIN) -> str:
    """A table of the changes; each item's steps and fields folded below; problems and warnings as a list."""
    rows = [row(f"{SYMBOLS[i.action][0]} {i.action}", code(i.key), _disrupts(i)) for i in found.pending]
    table = ["| action | resource | disruption |", "| --- | --- | --- |", *rows, ""] if rows else []
    waiting = [item.held for item in found.held if item.held]
    lists = [
        *listed("Problems", list(found.problems)),
        *listed("Waiting", waiting),
        *listed("Warnings", [w.problem for w in text.warned(found)]),
    ]
    return (
        "\n".join(
            [
                f"### bfinfra plan: {prose(found.site)}",
                "",
                f"**{prose(text.counts(found))}**",
                "",
                *([prose(text.part(found.partial)), ""] if found.partial else []),
                *table,
                *lists,
                *blind(found.unreadable),
                *(_details(found.pending, style) if rows else []),
            ]
        ).rstrip()
        + "\n"
    )


def outcome(found: Outcome, events: Sequence[Event] = ()) -> str:
    """A table of how each resource ended, with time and steps; problems as a list; what to do next."""
    ran = steps_run(events)
    rows = [_row(e, len(ran.get(e.key, ()))) for e in found.endings.values()]
    failed = [e.problem for e in found.endings.values() if e.problem]
    table = (
        ["| ending | resource | took | steps | note |", "| --- | --- | --- | --- | --- |", *rows, ""]
        if rows
        else []
    )
    return (
        "\n".join(
            [
                f"### bfinfra apply: {prose(found.plan.site)}",
                "",
                f"**{prose(sum_of(found))}**",
                "",
                *([prose(text.part(found.plan.partial)), ""] if found.plan.partial else []),
                *table,
                *listed("Problems", failed),
                *_out_of_service(found),
                prose(advice(found)),
            ]
        ).rstrip()
        + "\n"
    )


def _out_of_service(found: Outcome) -> list[str]:
    lines = [f"- {prose(each)}" for each in found.out_of_service]
    return [f"#### {OUT_OF_SERVICE.rstrip(':')}", *lines, ""] if lines else []


def problems(found: Sequence[Problem]) -> str:
    """Problems as a list under a heading."""
    return "\n".join(listed("Problems", found)).rstrip() + "\n"


def prose(words: object) -> str:
    """Text escaped for Markdown: it makes no emphasis, list, link, mention, reference, table cell or HTML."""
    escaped = SPECIAL.sub(r"\\\1", safe(words).strip())
    return REFERENCE.sub(rf"\g<0>{APART}", NUMBER.sub(r"\1\\\2", escaped))


def code(words: object) -> str:
    """The same as code. What a code span can't hold in a table, at its ends or in a CI system's log is
    written in HTML, where each character has an escape.
    """
    inner = safe(words)
    if SPANNED.fullmatch(inner):
        return f"`{inner}`"
    return f"<code>{''.join(map(_entity, inner))}</code>" if inner else ""


def row(*cells: object) -> str:
    """A row of a table; each cell is Markdown."""
    return f"| {' | '.join(map(str, cells))} |"


def fenced(lines: str, language: str) -> list[str]:
    """Safe text of several lines as a block of code, which no line in it ends."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", lines)), default=0))
    return [f"{fence}{language}", lines, fence]


def _entity(char: str) -> str:
    """A comment after an @ keeps GitHub from making it a link."""
    if not char.isascii() or char.isalnum() or char == " ":
        return char
    return f"&#{ord(char)};{'<!-- -->' if char == '@' else ''}"


def _disrupts(item: Item) -> str:
    return "" if item.action is Action.DELETE else DISRUPTIONS.get(item.disruption, "")


def _row(ended: Ended, steps: int) -> str:
    word = WORDS.get(ended.ending) or DONE[ended.action]
    note = "<br>".join(prose(line) for line in ended.note.splitlines())
    sign = ENDINGS[ended.ending][0]
    return row(f"{sign} {word}", code(ended.key), duration(ended.seconds), steps, note)


def blind(found: Mapping[str, str]) -> list[str]:
    """Return what could not be read, a line for each cause under a heading; nothing without causes."""
    lines = [_blind(each) for each in by_cause(found)]
    return ["#### Unreadable", *lines, ""] if lines else []


def _blind(found: Unread) -> str:
    named = ", ".join(code(where) for where in found.named)
    besides = f" {found.besides}" if found.besides else ""
    return f"- {named} can't be read: {prose(found.why)}{besides and '.'}{besides}"


def listed(title: str, found: Sequence[Problem]) -> list[str]:
    """Problems as a list under a heading; nothing without problems."""
    lines = [
        f"- {f'{code(p.where)}: ' if p.where else ''}{prose(p.what)}"
        + "".join(
            f"<br>{label}: {prose(words)}" for label, words in (("why", p.why), ("next", p.next)) if words
        )
        for p in found
    ]
    return [f"#### {title}", *lines, ""] if lines else []


def _details(items: Sequence[Item], style: Style) -> list[str]:
    body = "\n\n".join("\n".join(text.item(each, style)) for each in items)
    return ["<details><summary>Steps and fields</summary>", "", *fenced(body, "diff"), "", "</details>"]
