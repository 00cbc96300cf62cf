"""Flowcharts of Mermaid, which GitHub and GitLab draw in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bfinfra.formats.visible import visible

PLAIN = frozenset(" /.-_,")


def flowchart(nodes: Mapping[str, object], edges: Iterable[tuple[str, str, str]]) -> str:
    """From left to right. `nodes`: id → text; `edges`: two ids, and the words of a dotted arrow, or ""."""
    lines = ["flowchart LR", *(f"  {node}[{quoted(words)}]" for node, words in nodes.items())]
    for tail, head, words in edges:
        arrow = f"-. {quoted(words)} .->" if words else "-->"
        lines.append(f"  {tail} {arrow} {head}")
    return "\n".join(lines)


def quoted(text: object) -> str:
    """Text in quotes: each character with a meaning is replaced by its number."""
    return '"' + "".join(c if c.isalnum() or c in PLAIN else f"#{ord(c)};" for c in visible(text)) + '"'
