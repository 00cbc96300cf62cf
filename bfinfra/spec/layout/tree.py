"""A YAML document as a tree of nodes with the places of their text, and its comments beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import yaml

COMMENT = re.compile(r"#[^\n]*")
LOADER = yaml.SafeLoader
"""PyYAML's own scanner: its marks count characters, libyaml's don't everywhere."""


class Comment(NamedTuple):
    """One comment. `start`: its index; `column`: from 0; `own`: it has a line to itself."""

    start: int
    column: int
    own: bool
    text: str


class Node(NamedTuple):
    """A value and its place, from index to index. `properties`: its anchor as written; `items`: keys
    (of a mapping) and values; `style`: of a scalar, as PyYAML names it.
    """

    sort: str
    start: int
    end: int
    properties: str = ""
    flow: bool = False
    style: str = ""
    items: tuple[tuple[Node | None, Node], ...] = ()


def parse(text: str) -> tuple[Node | None, list[Comment], str]:
    """The root of the one document (None where it is empty), all comments in their order, and what is
    before it: directives and `---`. The text must be readable.
    """
    starts: dict[int, int] = {}
    found: list[Comment] = []
    header = end = 0
    for token in yaml.scan(text, Loader=LOADER):
        first, last = token.start_mark.index, token.end_mark.index
        if first > end:
            found += _comments(text, end, first)
        end = max(end, last)
        if isinstance(token, yaml.ScalarToken):
            starts[last] = first
        elif isinstance(token, yaml.DocumentStartToken):
            header = last
    events = (each for each in yaml.parse(text, Loader=LOADER) if not isinstance(each, _AROUND))
    root = _Builder(text, starts, events).root()
    return root, [each for each in found if each.start >= header], text[:header]


def _comments(text: str, start: int, end: int) -> Iterator[Comment]:
    for each in COMMENT.finditer(text, start, end):
        line = text.rfind("\n", 0, each.start()) + 1
        own = not text[line : each.start()].strip()
        yield Comment(each.start(), each.start() - line, own, each[0].rstrip())


_AROUND = (yaml.StreamStartEvent, yaml.StreamEndEvent, yaml.DocumentStartEvent, yaml.DocumentEndEvent)


class _Builder:
    """Events in, nodes out."""

    def __init__(self, text: str, starts: dict[int, int], events: Iterator[yaml.Event]) -> None:
        self.text, self.starts, self.events = text, starts, events

    def root(self) -> Node | None:
        first = next(self.events, None)
        return None if first is None else self.node(first)

    def node(self, event: yaml.Event) -> Node:
        start, end = _span(event)
        if isinstance(event, yaml.AliasEvent):
            return Node("alias", start, end)
        anchor = event.anchor if isinstance(event, yaml.NodeEvent) else None
        properties = f"&{anchor} " if anchor else ""
        if isinstance(event, yaml.ScalarEvent):
            return Node("scalar", self.starts.get(end, start), end, properties, style=event.style or "")
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        last = event
        items = []
        for last in self.events:
            if isinstance(last, yaml.CollectionEndEvent):
                break
            key = self.node(last) if is_mapping else None
            items.append((key, self.node(next(self.events) if is_mapping else last)))
        flow = isinstance(event, yaml.CollectionStartEvent) and bool(event.flow_style)
        return Node(
            "mapping" if is_mapping else "sequence",
            start,
            _span(last)[1],
            properties,
            flow,
            items=tuple(items),
        )


def _span(event: yaml.Event) -> tuple[int, int]:
    assert event.start_mark
    assert event.end_mark
    return event.start_mark.index, event.end_mark.index
