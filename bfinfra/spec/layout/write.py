"""A tree of nodes → its text in the canonical layout."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from bfinfra.spec.layout.scalars import INDENT, keeps_blank_lines, lines_of
from bfinfra.spec.layout.tree import Comment, Node
from bfinfra.spec.merge import SETTINGS, VALUES

WIDTH = 110
"""Columns that a list or mapping on one line may end in; a longer one gets a line for each item."""
MODELINE = "# yaml-language-server:"
FIRST = (SETTINGS[0], VALUES, *SETTINGS[1:])
"""The keys that come before the kinds of resources."""
DASHES = re.compile(r"[\s-]*")


@dataclass
class _Chunk:
    """One entry of a collection: its comments, and its lines. `blank`: a blank line comes before it;
    `ends_in_block`: it ends in a block of text, which would take a comment in; `keeps`: and blank lines.
    """

    name: str = ""
    blank: bool = False
    lead: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    ends_in_block: bool = False
    keeps: bool = False


class _Behind(NamedTuple):
    """The place of a value behind a key or a dash: at which column that is written, at which index what
    follows begins, and the column of the collection.
    """

    label: str
    indent: int
    limit: int
    column: int


def written(text: str, root: Node | None, comments: Sequence[Comment], header: str) -> str:
    """The document's text. `header`: the text before it, which is kept."""
    lines = [line.rstrip() for line in header.splitlines()]
    lines += _Writer(text, comments).document(root)
    return "".join(f"{line}\n" for line in lines)


class _Writer:
    """`comments`: those that aren't written yet, in their order."""

    def __init__(self, text: str, comments: Sequence[Comment]) -> None:
        self.text, self.comments = text, list(comments)

    def document(self, root: Node | None) -> list[str]:
        """All lines."""
        if root is None:
            return self._lead(self._take(len(self.text)), 0)
        first = _first(root)
        head = self._lead(self._head(first), 0)
        if root.items:
            chunks = self._collection(root, 0, len(self.text))
            if not _has_alias(root):  # an anchor comes before what names it
                chunks = _settings_first(chunks)
                chunks[0].blank = False
            for before, after in itertools.pairwise(chunks):
                apart = len(before.lines) > 1 or len(after.lines) > 1
                after.blank = after.blank or (apart and bool(after.lines))
        else:
            chunks = [_Chunk()]
            self._fill(chunks[0], _Behind("", 0, len(self.text), -1), root)
        lines = _joined(chunks)
        rest = self._lead(self._take(len(self.text)), 0)
        return [*head, *([""] if head and self.parted else []), *lines, *rest]

    def _head(self, first: int) -> list[Comment]:
        """Comments of the whole file: a blank line parts them from the first key, or editors read them."""
        found = [each for each in self.comments if each.start < first]
        places = [*(each.start for each in found), first]
        border = 0
        for number, place in enumerate(places):
            if number and (self._blank(place) or found[number - 1].text.startswith(MODELINE)):
                border = number
        self.parted = self._blank(places[border])
        return self._take(places[border])

    def _collection(self, node: Node, indent: int, until: int, *, inset: int = 0) -> list[_Chunk]:
        """The entries of a mapping or list. `until`: where what follows it begins; `inset`: how much further
        to the right comments behind its last entry are, where its dashes are below a key's first letter.
        """
        inside = node.end if node.flow else until
        starts = [(key or value).start for key, value in node.items]
        column = self._column(node)
        chunks = []
        for number, (key, value) in enumerate(node.items):
            limit = starts[number + 1] if number + 1 < len(starts) else inside
            lead = self._take(starts[number])
            begin = lead[0].start if lead and lead[0].own else starts[number]
            chunk = _Chunk(blank=self._blank(begin), lead=self._lead(lead, indent))
            if lead and self._blank(starts[number]):
                chunk.lead.append("")
            label = "-"
            if key is not None:
                name = "\n".join(self._scalar(key, column, indent))
                chunk.name, label = name.strip("\"'"), f"{name}:"
            self._fill(chunk, _Behind(label, indent, limit, column), value)
            chunks.append(chunk)
        chunks[0].blank = False
        tail: list[Comment] = []
        while (
            not (inset and chunks[-1].ends_in_block)
            and self.comments
            and self.comments[0].start < inside
            and (node.flow or self.comments[0].column >= column + bool(inset))
        ):
            tail.append(self.comments.pop(0))
        if tail:
            chunks.append(_Chunk(blank=self._blank(tail[0].start), lead=self._lead(tail, indent + inset)))
        return chunks

    def _fill(self, chunk: _Chunk, after: _Behind, value: Node) -> None:
        """Write the value of a key or a dash."""
        label, indent, limit, column = after
        margin = indent * " "
        if value.sort not in ("mapping", "sequence"):
            first, *more = self._scalar(value, column, indent)
            text = f"{value.properties}{first}"
            block = value.style in ("|", ">")
            comments = self._take(value.start if block else min(self._line_end(value.end), limit))
            chunk.ends_in_block, chunk.keeps = block, keeps_blank_lines(value, self.text)
            chunk.lines = [" ".join(filter(None, (f"{margin}{label}", text))), *more]
            self._behind(chunk, comments, margin, len(more) if not block else 0)
            return
        line = self._on_one_line(value)
        if line is not None and (not value.items or self._fits(value, f"{margin}{label} {line}")):
            chunk.lines = [f"{margin}{label} {line}"]
            self._behind(chunk, self._take(min(self._line_end(value.end), limit)), margin, 0)
            return
        self._below(chunk, after, value)

    def _below(self, chunk: _Chunk, after: _Behind, value: Node) -> None:
        """Write a mapping or list on lines of its own."""
        label, indent, limit, _ = after
        margin, first = indent * " ", _first(value)
        comments = []
        while self.comments and self.comments[0].start < first and not self.comments[0].own:
            comments.append(self.comments.pop(0))
        if value.flow:
            end = min(self._line_end(value.end), limit)
            behind = [each for each in self.comments if value.end <= each.start < end]
            self.comments = [each for each in self.comments if each not in behind]
            comments += behind
        beside = value.sort == "sequence" and label != "-"
        if beside:
            inner = self._collection(value, indent, limit, inset=INDENT)
        else:
            inner = self._collection(value, indent + INDENT, limit)
        body = _joined(inner)
        chunk.ends_in_block, chunk.keeps = inner[-1].ends_in_block, inner[-1].keeps
        if label == "-":
            chunk.lead += [f"{margin}{each.text}" for each in comments]
            comments = []
            if not value.properties:
                chunk.lead += [f"{margin}{line.lstrip()}".rstrip() for line in inner[0].lead]
                body = body[len(inner[0].lead) :]
                chunk.lines = [f"{margin}- {body[0].lstrip()}", *body[1:]]
                return
        chunk.lines = [f"{margin}{label} {value.properties}".rstrip(), *body]
        self._behind(chunk, comments, margin, 0)

    def _behind(self, chunk: _Chunk, comments: Sequence[Comment], margin: str, line: int) -> None:
        """The last comment goes behind a line, those before it above the entry."""
        if comments:
            chunk.lead += [f"{margin}{each.text}" for each in comments[:-1]]
            chunk.lines[line] += f"  {comments[-1].text}"

    def _fits(self, node: Node, line: str) -> bool:
        noted = any(node.start <= each.start < node.end for each in self.comments)
        return len(line) <= WIDTH and not noted

    def _on_one_line(self, node: Node) -> str | None:
        """None where it takes several."""
        if node.sort not in ("mapping", "sequence"):
            lines = self._scalar(node, 0, 0)
            several = len(lines) > 1 or node.style in ("|", ">")
            return None if several else f"{node.properties}{lines[0]}"
        if node.items and not node.flow:
            return None
        parts = []
        for key, value in node.items:
            name = None if key is None else self._on_one_line(key)
            text = self._on_one_line(value)
            if text is None:
                return None
            parts.append(text if name is None else f"{name}: {text or 'null'}")
        inner = ", ".join(parts)
        return f"{node.properties}{{{inner}}}" if node.sort == "mapping" else f"{node.properties}[{inner}]"

    def _scalar(self, node: Node, column: int, indent: int) -> list[str]:
        return lines_of(node, self.text, column=column, indent=indent)

    def _take(self, until: int) -> list[Comment]:
        """The comments that begin before an index."""
        count = next((n for n, each in enumerate(self.comments) if each.start >= until), len(self.comments))
        taken, self.comments = self.comments[:count], self.comments[count:]
        return taken

    def _lead(self, comments: Sequence[Comment], indent: int) -> list[str]:
        lines: list[str] = []
        for each in comments:
            if lines and self._blank(each.start):
                lines.append("")
            lines.append(f"{indent * ' '}{each.text}")
        return lines

    def _blank(self, index: int) -> bool:
        """Return whether the line before that of an index is blank, and only dashes come before it there."""
        start = self.text.rfind("\n", 0, index) + 1
        if start == 0 or not DASHES.fullmatch(self.text, start, index):
            return False
        return not self.text[self.text.rfind("\n", 0, start - 1) + 1 : start].strip()

    def _line_end(self, index: int) -> int:
        found = self.text.find("\n", index)
        return len(self.text) if found < 0 else found

    def _column(self, node: Node) -> int:
        """Return the column of a collection's keys or dashes."""
        first = _first(node)
        if node.sort == "sequence" and not node.flow:
            first = self.text.rfind("-", 0, first)
        return first - (self.text.rfind("\n", 0, first) + 1)


def _first(node: Node) -> int:
    """Return where the first key or item of a node begins."""
    key, value = node.items[0] if node.items else (None, node)
    return (key or value).start


def _has_alias(node: Node) -> bool:
    return node.sort == "alias" or any(_has_alias(value) for _, value in node.items)


def _settings_first(chunks: list[_Chunk]) -> list[_Chunk]:
    """The site's settings in their order, then the kinds in the order of the file."""
    return sorted(chunks, key=lambda each: FIRST.index(each.name) if each.name in FIRST else len(FIRST))


def _joined(chunks: Sequence[_Chunk]) -> list[str]:
    lines: list[str] = []
    for number, chunk in enumerate(chunks):
        lines += [""] if chunk.blank and not chunks[number - 1].keeps else []
        lines += [*chunk.lead, *chunk.lines]
    return lines
