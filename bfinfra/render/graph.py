"""What waits for what, as a tree of text or as DOT."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from bfinfra.model.refs import Key
from bfinfra.render.data import document
from bfinfra.render.safe import safe

Before = Mapping[Key, tuple[Key, ...]]
"""Each resource and what must be done before it."""


def tree(before: Before) -> str:
    """What can start at once stands at the left, below each what waits for it; `(*)` stands above with all that follows."""
    after: dict[Key, list[Key]] = {key: [] for key in before}
    for key, first in before.items():
        for other in first:
            after.setdefault(other, []).append(key)
    roots = [key for key in after if not before.get(key)]
    seen: set[Key] = set()
    return "\n".join(line for root in roots for line in (safe(root), *_below(root, after, seen, "")))


def _below(key: Key, after: Mapping[Key, list[Key]], seen: set[Key], indent: str) -> Iterator[str]:
    seen.add(key)
    for number, child in enumerate(after[key], 1):
        last = number == len(after[key])
        again = child in seen and bool(after[child])
        yield f"{indent}{'└─ ' if last else '├─ '}{safe(child)}{' (*)' if again else ''}"
        if not again:
            yield from _below(child, after, seen, indent + ("   " if last else "│  "))


def dot(before: Before, name: str = "site") -> str:
    """For Graphviz: an arrow from what must be done first to what waits for it."""
    lines = [f"digraph {_quoted(name)} {{", "  rankdir=LR;", "  node [shape=box, fontname=monospace];"]
    lines += [f"  {_quoted(key)};" for key in before]
    lines += [f"  {_quoted(other)} -> {_quoted(key)};" for key, first in before.items() for other in first]
    return "\n".join([*lines, "}"])


def data(before: Before, site: str = "") -> dict[str, object]:
    """For programs."""
    resources = [{"address": str(key), "waits_for": [str(other) for other in first]} for key, first in before.items()]
    return document("graph", site=site, resources=resources)


def _quoted(words: object) -> str:
    return json.dumps(safe(words), ensure_ascii=False)
