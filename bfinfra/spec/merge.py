"""Documents → one site's blocks: its settings, and the block of each kind and name."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import field
from pathlib import Path
from typing import Any

from bfinfra.model.errors import Place, Problem
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.suggest import nearest
from bfinfra.model.yaml import Entry, SourceText
from bfinfra.spec.files import SiteDocument

SETTINGS = ("site", "vcenter", "pepper", "drift")
VALUES = "values"
"""The key that declares values. It is a setting until they are filled in."""
ANCHORS = "x-"  # keys with this prefix may hold anything, such as anchors


@dataclass(frozen=True, slots=True)
class Block:
    """One entry of a file, read as one model. `folder`: where its relative paths start; `sources`: the texts
    that it comes from.
    """

    folder: Path
    entry: Entry
    sources: tuple[SourceText, ...]

    def data(self) -> Any:
        """The plain value."""
        return self.entry.node.plain()


@dataclass(frozen=True, slots=True)
class Blocks:
    """The contents of the files, in their order."""

    settings: dict[str, Block] = field(default_factory=dict)
    resources: dict[Key, Block] = field(default_factory=dict)


def merge(documents: list[SiteDocument], kinds: Collection[str], problems: list[Problem]) -> Blocks:
    """The blocks of all documents. `kinds`: every kind's name."""
    blocks = Blocks()
    for document in documents:
        for key, entry in _top(document, problems):
            block = _block(document, entry)
            if key in SETTINGS or key == VALUES:
                _put(blocks.settings, key, block, problems)
            elif key in kinds:
                for name, inner in _names(key, entry, problems):
                    _put(blocks.resources, Key(key, name), _block(document, inner), problems)
            elif not key.startswith(ANCHORS):
                problems.append(_unknown(key, entry.at, kinds, document))
    return blocks


def _block(document: SiteDocument, entry: Entry) -> Block:
    return Block(document.folder, entry, (entry.node.source,))


def _top(document: SiteDocument, problems: list[Problem]) -> Iterator[tuple[str, Entry]]:
    root = document.root
    if root is None or root.value is None:
        return
    if isinstance(root.value, dict):
        yield from root.value.items()
        return
    problems.append(
        Problem(
            "a site file begins with keys such as site: and vcenter:", root.at, f"found {noun(root.value)}"
        )
    )


def _names(kind: str, entry: Entry, problems: list[Problem]) -> Iterator[tuple[str, Entry]]:
    if isinstance(entry.node.value, dict):
        yield from entry.node.value.items()
    elif entry.node.value is not None:
        problems.append(names_expected(kind, entry, f"write {kind}: {{a-name: {{…}}}}"))


def names_expected(key: str, entry: Entry, advice: str, each: str = "fields") -> Problem:
    """The problem of an entry that is no mapping of names. `each`: what a name has; `advice`: what to do."""
    value = entry.node.value
    return Problem(
        f"{key}: expected names, each with its {each}",
        entry.at if value is None else entry.place,
        f"found {noun(value)}",
        advice,
    )


def _put(held: dict[Any, Block], key: object, block: Block, problems: list[Problem]) -> None:
    if first := held.get(key):
        problems.append(
            Problem(
                f"{key} is defined twice", block.entry.at, f"first at {first.entry.at}", "keep one of them"
            )
        )
    else:
        held[key] = block


def _unknown(key: str, at: Place, kinds: Collection[str], document: SiteDocument) -> Problem:
    root = document.root.value if document.root else {}
    if {"apiVersion", "kind"} <= set(root):
        return Problem(
            f"the key {key} belongs to a Kubernetes manifest",
            at,
            "a site file contains only kinds of bfinfra",
            "keep manifests in a folder of their own and name them from a workload",
        )
    return Problem(f"there is no kind {key}", at, next=nearest(key, [*SETTINGS, VALUES, *kinds]))


def noun(value: object) -> str:
    """Return the word by which messages name a node's value that is no mapping."""
    return "nothing" if value is None else "a list" if isinstance(value, list) else "text"
