"""A site as one YAML document, with overlays merged and values filled in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from bfinfra.formats.yaml import Dumper, comment
from bfinfra.model.errors import Place
from bfinfra.model.yaml import Node, compose
from bfinfra.render.data import document
from bfinfra.render.safe import quoted

TEXT, NOTHING = "tag:yaml.org,2002:str", "tag:yaml.org,2002:null"
WIDEST = 1 << 30  # columns; one line for each value leaves a place for its origin


def text(root: Node, *, origins: bool = False) -> str:
    """The document. With `origins`, a comment after each value says where it comes from."""
    written: str = yaml.serialize(
        _node(root), Dumper=_AsWritten, width=WIDEST, allow_unicode=True, encoding=None
    )
    return _with_origins(written, root) if origins else written


def data(site: str, root: Node) -> dict[str, Any]:
    """The merged site as data. `origins`: path → where the value comes from."""
    found = [{"path": list(path), "origin": origin(node.at)} for path, node in _leaves(root, ())]
    return document("site", site=site, merged=root.plain(), origins=found)


def origin(place: Place) -> str:
    """`overlays/prod.yaml:3`, or the argument."""
    return f"{place.file}:{place.line}" if place.line else str(place.file)


class _AsWritten(Dumper):
    """Text without quotes stays without quotes: the site's author wrote it so."""

    quotes_lookalikes = False


def _node(node: Node) -> yaml.Node:
    """The node for PyYAML. Text without quotes stays without quotes."""
    if isinstance(node.value, dict):
        pairs = [(_text(name), _node(entry.node)) for name, entry in node.value.items()]
        return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=not pairs)
    if isinstance(node.value, list):
        items = [_node(each) for each in node.value]
        return yaml.SequenceNode("tag:yaml.org,2002:seq", items, flow_style=not items)
    if node.value is None:
        return yaml.ScalarNode(NOTHING, "")
    tag = _tag(node.value) if node.plainly else TEXT
    return _text(node.value, tag)


def _text(value: str, tag: str = TEXT) -> yaml.ScalarNode:
    """Double quotes only where `printed` would change it otherwise."""
    style = '"' if quoted(value) else "|" if "\n" in value else None
    return yaml.ScalarNode(TEXT if style == '"' else tag, value, style=style)


def _tag(plainly: str) -> str:
    """The tag that YAML gives it without quotes."""
    read = yaml.compose(plainly, Loader=yaml.SafeLoader)
    return read.tag if isinstance(read, yaml.ScalarNode) else TEXT


def _with_origins(written: str, root: Node) -> str:
    """Reads the written document again: its values are in the same order, each with its line."""
    again, _ = compose(Path("site.yaml"), written)
    lines = written.split("\n")
    if again is not None:
        for (_, node), (_, mine) in zip(_leaves(root, ()), _leaves(again, ()), strict=True):
            lines[mine.mark.line] += f"  {comment(origin(node.at))}"
    return "\n".join(lines)


def _leaves(node: Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Each scalar or empty value with its path."""
    if isinstance(node.value, dict) and node.value:
        for name, entry in node.value.items():
            yield from _leaves(entry.node, (*path, name))
    elif isinstance(node.value, list) and node.value:
        for number, each in enumerate(node.value):
            yield from _leaves(each, (*path, str(number)))
    else:
        yield path, node
