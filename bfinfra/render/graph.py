"""The order of the resources: as a tree of text, DOT, Mermaid, SVG or a page of HTML."""

from __future__ import annotations

from collections.abc import Iterator

from bfinfra.formats import graphviz
from bfinfra.formats.mermaid import flowchart
from bfinfra.model.order import Before, Specs
from bfinfra.model.refs import Key
from bfinfra.render import html_page
from bfinfra.render.data import document
from bfinfra.render.html_style import STYLE
from bfinfra.render.safe import safe
from bfinfra.render.topology import Box, Drawing, parts_of


def tree(before: Before) -> str:
    """Resources that can start at once are at the left; below each is what waits for it. `(*)`: its subtree
    is printed above.

    A broken line and words give the reason if no field names it.
    """
    after: dict[Key, dict[Key, str]] = {key: {} for key in before}
    for key, first in before.items():
        for other, why in first.items():
            after.setdefault(other, {})[key] = why
    roots = [key for key in after if not before.get(key)]
    shown: set[Key] = set()
    return "\n".join(line for root in roots for line in (safe(root), *_below(root, after, shown, "")))


def _below(key: Key, after: Before, shown: set[Key], indent: str) -> Iterator[str]:
    shown.add(key)
    for number, (child, why) in enumerate(after[key].items(), 1):
        last = number == len(after[key])
        again = child in shown and bool(after[child])
        line = f"{'└' if last else '├'}{'┄' if why else '─'} "
        yield f"{indent}{line}{safe(child)}{' (*)' if again else ''}{f'  ({safe(why)})' if why else ''}"
        if not again:
            yield from _below(child, after, shown, indent + ("   " if last else "│  "))


def dot(before: Before, name: str = "site") -> str:
    """For Graphviz: an arrow from what must be done first to what waits for it; dashed and with words if no
    field names it.
    """
    edges = (
        (other, key, {"style": "dashed", "label": why} if why else {})
        for key, first in before.items()
        for other, why in first.items()
    )
    return graphviz.digraph(name, ("rankdir=LR", "node [shape=box, fontname=monospace]"), before, edges)


def mermaid(before: Before) -> str:
    """For Mermaid, which GitHub and GitLab draw in Markdown: an arrow from what must be done first to what
    waits for it; dotted and with words if no field names it.
    """
    names = {key: f"r{number}" for number, key in enumerate(before)}
    edges = (
        (names[other], names[key], why)
        for key, first in before.items()
        for other, why in first.items()
        if other in names
    )
    return flowchart({name: key for key, name in names.items()}, edges)


def svg(before: Before, resources: Specs) -> str:
    """A picture by itself, light or dark as the viewer is."""
    return Drawing(_boxes(resources), before).picture(f"{STYLE}svg {{ background: var(--paper); }}")


def page(before: Before, resources: Specs, name: str = "site") -> str:
    """The picture in a page of HTML."""
    return html_page.whole(
        name,
        [],
        [],
        Drawing(_boxes(resources), before),
        made="Made by bfinfra graph. Lines lead from what must be done first.",
    )


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


def _boxes(resources: Specs) -> list[Box]:
    return [Box(key, parts_of(spec), words="") for key, spec in resources.items()]
