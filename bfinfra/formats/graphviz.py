"""Graphs in DOT, the language of Graphviz."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bfinfra.formats.visible import visible

Attributes = Mapping[str, str]


def digraph(
    name: object,
    settings: Iterable[str],
    nodes: Iterable[object],
    edges: Iterable[tuple[object, object, Attributes]],
) -> str:
    """A directed graph. `settings`: statements of our own; an edge has the attributes that DOT knows."""
    lines = [f"digraph {quoted(name)} {{", *(f"  {each};" for each in settings)]
    lines += [f"  {quoted(each)};" for each in nodes]
    lines += [f"  {quoted(tail)} -> {quoted(head)}{_attributes(given)};" for tail, head, given in edges]
    return "\n".join([*lines, "}"])


def quoted(text: object) -> str:
    r"""A node or a label: one visible line. Backslashes are doubled: `\N` in a label is the node's name. A
    `%` at the beginning is escaped: Graphviz gives such a node a name of its own.
    """
    plain = visible(text)
    plain = f"\\x25{plain[1:]}" if plain.startswith("%") else plain
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _attributes(given: Attributes) -> str:
    return f" [{', '.join(f'{name}={quoted(value)}' for name, value in given.items())}]" if given else ""
