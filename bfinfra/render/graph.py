"""What waits for what, as a tree of text or as DOT."""

from __future__ import annotations

import json
from collections.abc import Iterator

from bfinfra.model.order import Before
from bfinfra.model.refs import Key
from bfinfra.render.data import document
from bfinfra.render.safe import safe


def tree(before: Before) -> str:
    """What can start at once stands at the left, below each what waits for it; `(*)` stands above with all
    that follows.

    A broken line and words say why where no field names it.
    """
    after: dict[Key, dict[Key, str]] = {key: {} for key in before}
    for key, first in before.items():
        for other, why in first.items():
            after.setdefault(other, {})[key] = why
    roots = [key for key in after if not before.get(key)]
    seen: set[Key] = set()
    return "\n".join(line for root in roots for line in (safe(root), *_below(root, after, seen, "")))


def _below(key: Key, after: Before, seen: set[Key], indent: str) -> Iterator[str]:
    seen.add(key)
    for number, (child, why) in enumerate(after[key].items(), 1):
        last = number == len(after[key])
        again = child in seen and bool(after[child])
        line = f"{'└' if last else '├'}{'┄' if why else '─'} "
        yield f"{indent}{line}{safe(child)}{' (*)' if again else ''}{f'  ({safe(why)})' if why else ''}"
        if not again:
            yield from _below(child, after, seen, indent + ("   " if last else "│  "))


def dot(before: Before, name: str = "site") -> str:
    """For Graphviz: an arrow from what must be done first to what waits for it, broken and with words where
    no field names it.
    """
    lines = [f"digraph {_quoted(name)} {{", "  rankdir=LR;", "  node [shape=box, fontname=monospace];"]
    lines += [f"  {_quoted(key)};" for key in before]
    lines += [
        f"  {_quoted(other)} -> {_quoted(key)}{f' [style=dashed, label={_quoted(why)}]' if why else ''};"
        for key, first in before.items()
        for other, why in first.items()
    ]
    return "\n".join([*lines, "}"])


def data(before: Before, site: str = "") -> dict[str, object]:
    """A site's resources as JSON, each with what it comes after."""
    resources = [
        {
            "address": str(key),
            "waits_for": [str(other) for other in first],
            "because": {str(other): why for other, why in first.items() if why},
        }
        for key, first in before.items()
    ]
    return document("graph", site=site, resources=resources)


def _quoted(words: object) -> str:
    return json.dumps(safe(words), ensure_ascii=False)
