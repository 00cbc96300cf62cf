"""Reads YAML that others wrote (kubeconfigs, manifests, tokens) as plain JSON values. It is measured before
anything is built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

LARGEST = 1 << 20  # bytes
DEEPEST = 64  # nested collections
MOST = 100_000  # values, with aliases expanded
TAGS = frozenset(
    {
        None,
        "!",
        *(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")),
    }
)
QUOTED = re.compile(r"""['"].*?['"]""")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Unfit(ValueError):
    """A text can't be read; the message says why, with its line if known. Never quotes the text, which may
    contain secrets.
    """


def documents(text: str | bytes, largest: int = LARGEST) -> list[Any]:
    """Every document, as dicts with text keys, lists, text, numbers, booleans and None. Dates stay text.
    Raises Unfit, also for a text of more than `largest` bytes.
    """
    if len(text) > largest:
        raise Unfit(f"it is larger than {largest >> 20} MiB")
    try:
        _check(text)
        found = list(yaml.load_all(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f": line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        if "nesting depth" in str(error.problem):  # PyYAML 6.0.4 reads 1,000 levels ahead, and stops there
            raise Unfit(f"more than {DEEPEST} nested collections{at}") from None
        reason = QUOTED.sub("…", error.problem or "")
        raise Unfit(f"it is not YAML{at}{f' ({reason})' if reason else ''}") from None
    except Unfit:
        raise
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise Unfit(f"it contains something that can't be read as YAML ({type(error).__name__})") from None
    if not all(isinstance(key, str) for key in _keys(found)):
        raise Unfit("one of its keys is not text")
    return found


_Loader = type(
    "_Loader",
    (LOADER,),
    {
        "yaml_implicit_resolvers": {
            first: [(tag, form) for tag, form in known if not tag.endswith((":timestamp", ":value"))]
            for first, known in LOADER.yaml_implicit_resolvers.items()
        }
    },
)


def _check(text: str | bytes) -> None:
    """Raises Unfit for what would grow, recurse or construct objects, from the parser's events alone."""
    counter = _Counter()
    for event in yaml.parse(text, Loader=LOADER):
        if why := counter.take(event):
            raise Unfit(f"{why}, in line {event.start_mark.line + 1 if event.start_mark else 0}")


class _Counter:
    """Counts values, with aliases expanded."""

    def __init__(self) -> None:
        self._total, self._weights, self._open = 0, dict[str | None, int](), list[tuple[str | None, int]]()

    def take(self, event: yaml.Event) -> str:
        """Return why to stop reading, or ""."""
        if getattr(event, "tag", None) not in TAGS:
            return "it has a tag that is not allowed"
        if isinstance(event, yaml.AliasEvent) and event.anchor not in self._weights:
            return "an alias is inside of its own anchor, or has no anchor"
        self._count(event)
        if len(self._open) > DEEPEST:
            return f"more than {DEEPEST} nested collections"
        return f"it contains more than {MOST:,} values, with aliases expanded" if self._total > MOST else ""

    def _count(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.AliasEvent):
            self._total += self._weights[event.anchor]
        elif isinstance(event, yaml.CollectionEndEvent):
            self._name(*self._open.pop())
        elif isinstance(event, yaml.CollectionStartEvent):
            self._open.append((event.anchor, self._total))
            self._total += 1
        elif isinstance(event, yaml.ScalarEvent):
            self._total += 1
            self._name(event.anchor, self._total - 1)

    def _name(self, anchor: str | None, before: int) -> None:
        if anchor:
            self._weights[anchor] = self._total - before


def _keys(value: object) -> Iterator[object]:
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            yield from item
            stack += item.values()
        elif isinstance(item, list):
            stack += item
