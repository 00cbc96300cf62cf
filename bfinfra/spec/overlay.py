"""Applies an overlay to a site: its values replace the site's values, field by field."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from bfinfra.model.errors import Place, Problem
from bfinfra.model.refs import Key
from bfinfra.model.secret import WAYS
from bfinfra.model.suggest import nearest
from bfinfra.model.yaml import Entry, Node
from bfinfra.spec.merge import Block, Blocks
from bfinfra.spec.values import VALUE

REFERENCES = frozenset({*WAYS, VALUE})
"""The keys of references. A reference replaces another as a whole."""


def overlaid(base: Blocks, over: Blocks, home: Path, problems: list[Problem]) -> Blocks:
    """`base` with the overlay `over` applied. `home`: where relative paths of resources that `over` adds
    start.
    """
    return Blocks(
        _laid(base.settings, over.settings, home, problems),
        _laid(base.resources, over.resources, home, problems),
    )


def _laid(
    base: dict[Any, Block], over: dict[Any, Block], home: Path, problems: list[Problem]
) -> dict[Any, Block]:
    found = dict(base)
    for name, block in over.items():
        if block.entry.node.value is None:
            if found.pop(name, None) is None:
                alike = [str(each) for each in base if not isinstance(name, Key) or each.kind == name.kind]
                problems.append(_nothing(str(name), "", block.entry.at, alike))
        elif name in found:
            under = found[name]
            entry = _entry(under.entry, block.entry, _Where(str(name), "", problems))
            found[name] = Block(under.folder, entry, (*under.sources, *block.sources))
        else:
            found[name] = replace(block, folder=home)
    return found


class _Where:
    """The field that is merged, and the list of problems."""

    def __init__(self, topic: str, path: str, problems: list[Problem]) -> None:
        self.topic, self.path, self.problems = topic, path, problems

    def inside(self, name: str) -> _Where:
        """A field inside of this one."""
        return _Where(self.topic, f"{self.path}.{name}" if self.path else name, self.problems)


def _entry(base: Entry, over: Entry, where: _Where) -> Entry:
    if not (isinstance(base.node.value, dict) and isinstance(over.node.value, dict)):
        return over
    if _is_reference(base.node) and _is_reference(over.node):
        return over
    fields = dict(base.node.value)
    for name, entry in over.node.value.items():
        inside = where.inside(name)
        if entry.node.value is None:
            if fields.pop(name, None) is None:
                where.problems.append(_nothing(where.topic, inside.path, entry.at, base.node.value))
        else:
            fields[name] = _entry(fields[name], entry, inside) if name in fields else entry
    return Entry(base.mark, base.node._replace(value=fields))


def _is_reference(node: Node) -> bool:
    return len(node.value) == 1 and node.value.keys() <= REFERENCES


def _nothing(topic: str, path: str, at: Place, there: Iterable[str]) -> Problem:
    near = nearest(path.rpartition(".")[2] or topic, there)
    add = "" if path else f"{'; ' if near else ''}to add it without fields, write {{}}"
    return Problem(
        f"{topic}: {path} does not exist, and can't be removed"
        if path
        else f"{topic} does not exist, and can't be removed",
        at,
        "an overlay removes a field or resource that it sets to null",
        f"{near}{add}",
    )
