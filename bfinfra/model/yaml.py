"""YAML text → nodes with their places. Scalars stay text, no objects are constructed, everything is
bounded.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import yaml

from bfinfra.model.errors import Place, Problem
from bfinfra.model.records import dataclass

LARGEST = 4 << 20  # bytes of one file
DEEPEST = 64  # nested collections
MOST = 250_000  # nodes, with aliases expanded
LONGEST_KEY = 512  # characters
SHOWN = 160  # characters of a line, after its place, that an error shows
LITERAL = re.compile(
    r"(?i)(\b[\w-]*(?:pass|pas?w|pwd|_pw|secret|pepper)[\w-]*[\"']?\s*:\s+)(?![{&*\[|>#])\S[^,}]*"
)  # a password typed in
HINT = re.compile(
    r"pas|paw|pwd|_pw|secret|pepper"
)  # a quick test for what LITERAL needs, which almost no line has
# No part of a name or an address. The zero comes first: a literal is found far faster.
ZEROS = re.compile(r"0(?<![\w.:/]0)(?<![\w.:/-]-0)\d+(?![\w.:/-])")
VALUES = re.compile(r"value[\"']?\s*:")
NULLS = frozenset({"", "~", "null", "Null", "NULL"})
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Unreadable(Exception):
    """The rest of the file can't be read."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class Position(Protocol):
    """A place that PyYAML reports, counted from 0."""

    line: int
    column: int


class SourceText:
    """The text of a file, which turns PyYAML's marks (counted from 0) into places."""

    def __init__(self, file: Path, text: str) -> None:
        self.file, self.text = file, text

    @functools.cached_property
    def lines(self) -> list[str]:
        """The lines as they are written."""
        return self.text.splitlines()

    @functools.cached_property
    def zeros(self) -> bool:
        """True if it may contain a number with a leading zero, which is rare. Else no check is needed."""
        return bool(ZEROS.search(self.text))

    @functools.cached_property
    def names_values(self) -> bool:
        """True if it may contain `{value: NAME}`."""
        return bool(VALUES.search(self.text))

    def place(self, mark: Position) -> Place:
        """The place of a mark, with its line as an error shows it, without control characters and possible
        passwords.
        """
        line, lines = mark.line, self.lines
        text = _shown(lines[line][: mark.column + SHOWN]) if line < len(lines) else ""
        return Place(self.file, line + 1, mark.column + 1, text)


class Node(NamedTuple):
    """A value and its place. `value`: text, None, a list of nodes, or a dict of text → Entry.

    `plainly`: text without quotes, which YAML may read as a number or boolean.
    """

    source: SourceText
    mark: Position
    value: Any
    weight: int = 1
    plainly: bool = False

    @property
    def at(self) -> Place:
        """Its place."""
        return self.source.place(self.mark)

    def plain(self) -> Any:
        """The value as dicts, lists, text and None."""
        if isinstance(self.value, dict):
            return {key: entry.node.plain() for key, entry in self.value.items()}
        return [node.plain() for node in self.value] if isinstance(self.value, list) else self.value


class Entry(NamedTuple):
    """One key of a mapping: its place, and its value."""

    mark: Position
    node: Node

    @property
    def at(self) -> Place:
        """The key's place."""
        return self.node.source.place(self.mark)

    @property
    def place(self) -> Place:
        """The place to show: the value's if it is a scalar, else the key's."""
        return self.at if isinstance(self.node.value, (dict, list)) else self.node.at


@dataclass(slots=True)
class Frame:
    """A collection under construction. `key`: the key whose value is next, None if a key is next."""

    mark: Position
    value: Any
    anchor: str | None
    key: tuple[str, Position] | None = None
    weight: int = 1
    merges: list[tuple[Position, Node]] = field(default_factory=list)


def compose(file: Path, text: str) -> tuple[Node | None, list[Problem]]:
    """The root of the one document in `text` (None if it is empty), and the problems. Raises Unreadable."""
    composer = _composed(_Composer(file, text))
    return composer.root, composer.problems


def compose_all(file: Path, text: str) -> tuple[list[Node], list[Problem]]:
    """The roots of all documents in `text`, and the problems. Raises Unreadable."""
    composer = _composed(_Composer(file, text, several=True))
    return composer.roots, composer.problems


def unfit_key(key: str) -> str:
    """Return why a text can't be a key, such as the name of a resource, or ""."""
    if not key.isprintable():
        return "contains an invisible character"
    return f"has {len(key)} characters" if len(key) > LONGEST_KEY else ""


def _composed(composer: _Composer) -> _Composer:
    try:
        # as `yaml.parse` does, which asks for each event twice
        for event in iter(LOADER(composer.source.text).get_event, None):
            if take := _TAKES.get(type(event)):
                take(composer, event)
    except yaml.MarkedYAMLError as error:
        raise Unreadable(composer.syntax(error)) from None
    except yaml.reader.ReaderError as error:
        raise Unreadable(composer.character(error.position)) from None
    return composer


def _advice(error: yaml.MarkedYAMLError, began: str) -> str:
    """Advice for the most common errors of this sort."""
    context, problem = str(error.context), str(error.problem)
    if "block" in context or "mapping values" in problem:
        return "begin the fields of one block in the same column, and those inside of it further to the right"
    if "flow" in context:
        return f"close the bracket{began}, or add a comma between two items"
    if "quoted" in context:
        return f"close the quotation mark{began}"
    return "correct it here or in the lines above; put text with special characters in quotation marks"


def _shown(line: str) -> str:
    visible = (line if line.isprintable() else "".join(c if c.isprintable() else " " for c in line)).rstrip()
    return LITERAL.sub(r"\1…", visible) if HINT.search(visible.casefold()) else visible


class _Composer:
    """Turns events into nodes, without recursion."""

    def __init__(self, file: Path, text: str, *, several: bool = False) -> None:
        self.source, self.several = SourceText(file, text), several
        self.roots: list[Node] = []
        self.problems: list[Problem] = []
        self.frames: list[Frame] = []
        self.anchors: dict[str, Node] = {}
        self.documents = 0
        self.total = 0

    @property
    def root(self) -> Node | None:
        """The last document's root, or None."""
        return self.roots[-1] if self.roots else None

    def syntax(self, error: yaml.MarkedYAMLError) -> Problem:
        """The parser's message. Its own place is where it failed, its context where the trouble began."""
        if "nesting depth" in str(error.problem):  # PyYAML 6.0.4 reads 1,000 levels ahead, and stops there
            return Problem(
                f"more than {DEEPEST} nested collections", self.source.place(error.problem_mark or _START)
            )
        started = error.context_mark
        here = started is None or started.index == getattr(error.problem_mark, "index", None)
        began = "" if started is None or here else f" (opened in line {started.line + 1})"
        why = "" if here else f"{error.context}{began}"
        tab = any(
            "\t" in line[: len(line) - len(line.lstrip())]
            for line in self.source.text.splitlines()[: (error.problem_mark or _START).line + 1]
        )
        return Problem(
            f"this is not YAML: {error.problem}",
            self.source.place(error.problem_mark or _START),
            why,
            "indent with blanks, not tabs" if tab else _advice(error, began),
        )

    def character(self, position: int) -> Problem:
        """The problem of a control character, which YAML doesn't allow."""
        before = self.source.text.encode()[:position].decode(errors="ignore")
        last = before.rpartition("\n")[2]
        return Problem(
            "found a control character",
            self.source.place(_At(before.count("\n"), len(last))),
            "YAML allows none",
            "delete it",
        )

    def _say(self, what: str, mark: Position, why: str, next: str) -> None:
        self.problems.append(Problem(what, self.source.place(mark), why, next))

    def _refuse(self, what: str, mark: Position, why: str = "", next: str = "") -> None:
        raise Unreadable(Problem(what, self.source.place(mark), why, next))

    def begin(self, event: Any) -> None:
        """Start the document, or report a second one."""
        self.documents += 1
        self.anchors.clear()
        if self.documents > 1 and not self.several:
            self._refuse(
                "a second document starts here",
                event.start_mark,
                "a site file is one document",
                "delete the line ---, or make it a file of its own",
            )

    def alias(self, event: Any) -> None:
        """Add the anchor's node once more."""
        mark = event.start_mark
        if any(frame.anchor == event.anchor for frame in self.frames):
            self._refuse(f"*{event.anchor} is inside of its own anchor", mark)
        if event.anchor not in self.anchors:
            self._refuse(f"there is no &{event.anchor} before this *{event.anchor}", mark)
        self._count(self.anchors[event.anchor].weight, mark)
        self._add(self.anchors[event.anchor], mark)

    def scalar(self, event: Any) -> None:
        """Add a key or a value."""
        mark, value, plainly = event.start_mark, event.value, event.implicit[0]
        if event.tag is not None:
            self._no_tag(event)
        self._count(1, mark)
        frame = self.frames[-1] if self.frames else None
        if frame and frame.key is None and type(frame.value) is dict:
            self._check_key(value, mark)
            frame.key = ("<<" if plainly else "\0<<", mark) if value == "<<" else (value, mark)
            return
        if "\0" in value:
            self._say("a value has a NUL in it", mark, "no program, file or server takes one", "delete it")
        null = plainly and value in NULLS and event.style in (None, "")
        self._finish(_node((self.source, mark, None if null else value, 1, plainly)), event.anchor)

    def mapping(self, event: object) -> None:
        """Start a mapping."""
        self._open(event, {})

    def sequence(self, event: object) -> None:
        """Start a list."""
        self._open(event, [])

    def _open(self, event: Any, value: Any) -> None:
        mark = event.start_mark
        self._no_tag(event)
        self._count(1, mark)
        if len(self.frames) >= DEEPEST:
            self._refuse(f"more than {DEEPEST} nested collections", mark)
        if self.frames and isinstance(self.frames[-1].value, dict) and self.frames[-1].key is None:
            self._refuse("a key must be text", mark, next="quote it if it begins with { or [")
        self.frames.append(Frame(mark, value, event.anchor))

    def mapping_end(self, _: object) -> None:
        """End a mapping. Merged mappings add the keys that it does not have itself."""
        frame = self.frames.pop()
        for mark, merged in frame.merges:
            for source in _mappings(merged):
                if source is None:
                    self._say(
                        "<<: takes a mapping, or a list of mappings",
                        mark,
                        "",
                        "name an anchor of a mapping, such as <<: *defaults",
                    )
                    continue
                for key, entry in source.items():
                    frame.value.setdefault(key, entry)
        self._finish(Node(self.source, frame.mark, frame.value, frame.weight), frame.anchor)

    def sequence_end(self, _: object) -> None:
        """End a list."""
        frame = self.frames.pop()
        self._finish(Node(self.source, frame.mark, frame.value, frame.weight), frame.anchor)

    def _finish(self, node: Node, anchor: str | None) -> None:
        if anchor:
            self.anchors[anchor] = node
        self._add(node, node.mark)

    def _add(self, node: Node, mark: Position) -> None:
        """Add a finished node to its collection. `mark`: where it is written, or where an alias names it."""
        if not self.frames:
            self.roots.append(node)
            return
        frame = self.frames[-1]
        frame.weight += node.weight
        if type(frame.value) is list:
            frame.value.append(node)
        elif frame.key is None:
            self._refuse("a key must be text", mark, "found an alias")
        else:
            self._set(frame, *frame.key, node)
            frame.key = None

    def _set(self, frame: Frame, key: str, mark: Position, node: Node) -> None:
        if key == "<<":
            frame.merges.append((mark, node))
            return
        key = key.removeprefix("\0")
        if (first := frame.value.get(key)) is not None:
            self._say(
                f"the key {key} is defined twice", mark, f"first in line {first.at.line}", "keep one of them"
            )
            return
        frame.value[key] = _entry((mark, node))

    def _count(self, values: int, mark: Position) -> None:
        self.total += values
        if self.total > MOST:
            self._refuse(
                f"the file contains more than {MOST:,} values up to here",
                mark,
                "aliases count as the values that they repeat",
            )

    def _check_key(self, key: str, mark: Position) -> None:
        if why := unfit_key(key):
            self._refuse(
                f"a key {why}", mark, f"allowed are {LONGEST_KEY} printable characters", "write a short name"
            )

    def _no_tag(self, event: Any) -> None:
        if event.tag not in (None, "!"):
            self._say(
                f"the tag {event.tag} is not allowed",
                event.start_mark,
                "a site contains only plain values",
                "write the value itself, or a reference such as {env: NAME}",
            )


def _mappings(node: Node) -> Iterator[dict[str, Entry] | None]:
    for source in node.value if isinstance(node.value, list) else [node]:
        yield source.value if isinstance(source.value, dict) else None


_node: Callable[[tuple[Any, ...]], Node] = functools.partial(
    tuple.__new__, Node
)  # reading a site is mostly making these, which is twice as fast this way
_entry: Callable[[tuple[Any, ...]], Entry] = functools.partial(tuple.__new__, Entry)


class _At:
    def __init__(self, line: int, column: int) -> None:
        self.line, self.column = line, column


_START = _At(0, 0)

_TAKES: Mapping[type[yaml.Event], Callable[[_Composer, Any], None]] = {
    yaml.DocumentStartEvent: _Composer.begin,
    yaml.AliasEvent: _Composer.alias,
    yaml.ScalarEvent: _Composer.scalar,
    yaml.MappingStartEvent: _Composer.mapping,
    yaml.MappingEndEvent: _Composer.mapping_end,
    yaml.SequenceStartEvent: _Composer.sequence,
    yaml.SequenceEndEvent: _Composer.sequence_end,
}
