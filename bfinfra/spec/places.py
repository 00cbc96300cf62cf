"""Looks up where each part of a site is written. Most runs never do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bfinfra.model.errors import Place
from bfinfra.model.refs import Key
from bfinfra.model.yaml import Node
from bfinfra.spec.merge import Block, Blocks

Spot = tuple[Key | None, str]


class SourcePlaces(Mapping[Spot, Place]):
    """(key, dotted field) → place. Field "" is the name itself; key None is for settings such as
    `vcenter.server`.
    """

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks

    def __getitem__(self, spot: Spot) -> Place:
        key, field = spot
        if key is not None:
            return _find(self.blocks.resources[key], field)[spot[1]]
        head, _, rest = field.partition(".")
        return _find(self.blocks.settings[head], rest)[rest]

    def __iter__(self) -> Iterator[Spot]:
        for name, block in self.blocks.settings.items():
            yield from ((None, f"{name}.{field}" if field else name) for field in _flat(block))
        for key, block in self.blocks.resources.items():
            yield from ((key, field) for field in _flat(block))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def place_in(block: Block, field: str) -> Place:
    """The place of a dotted field; where it isn't written, of the nearest field that contains it."""
    known = _flat(block)
    while field not in known:
        field = field.rpartition(".")[0]
    return known[field]


def _find(block: Block, field: str) -> dict[str, Place]:
    return {"": block.entry.at} if not field else _flat(block)


def _flat(block: Block) -> dict[str, Place]:
    """Every dotted field of a block. Names with dots in them are kept as they are."""
    return {"": block.entry.at, **dict(_inside(block.entry.node, ""))}


def _inside(node: Node, above: str) -> Iterator[tuple[str, Place]]:
    inner: list[tuple[str, Place, Node]] = []
    if isinstance(node.value, dict):
        inner = [(name, entry.place, entry.node) for name, entry in node.value.items()]
    elif isinstance(node.value, list):
        inner = [(str(index), item.at, item) for index, item in enumerate(node.value)]
    for name, place, below in inner:
        path = f"{above}.{name}" if above else name
        yield path, place
        yield from _inside(below, path)
