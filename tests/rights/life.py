"""What a kind says of its life under printed rights, in `life.py` in its test folder: `LIFE`, a Life, and
`VARIANTS`, more lives by their names. A kind whose rights are all needed to create, plan and destroy its
example has none.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bfinfra.kinds import names
from bfinfra.model.refs import Key
from bfinfra.model.rights import Use
from bfinfra.sandbox import Running

KINDS = Path(__file__).parents[1] / "kinds"
Replacements = tuple[tuple[str, str], ...]
"""Texts of the kind's example, each with what replaces it."""


@dataclass(frozen=True)
class Life:
    """What a life has beside creation and deletion.

    `example`: what differs in its site from the kind's example. `prepare`: what somebody else does before,
    by the use that is tried. `adopted`: what the first apply adopts. `changes`: what the site changes then. `drifts`: what
    others change after that, each followed by an apply. `reads_inside`: whether a plan reads in what exists
    already, so that the administrator creates it first; `before_plan`: what somebody deletes then;
    `hidden`: the lists of objects, as paths, that somebody takes the site's label off before a plan and a destroy: no list
    has them, so that they are asked for by their names. `unused`: rights that this life does not take.
    """

    example: Replacements = ()
    prepare: Callable[[Running, Use], None] | None = None
    adopted: frozenset[Key] = frozenset()
    changes: Replacements = ()
    drifts: tuple[Callable[[Running], None], ...] = ()
    reads_inside: bool = False
    before_plan: Callable[[Running], None] | None = None
    hidden: tuple[str, ...] = ()
    unused: tuple[tuple[Use, str], ...] = ()


@functools.cache
def variants() -> Mapping[str, tuple[str, Life]]:
    """Name of each variant → its kind and its life."""
    found: dict[str, tuple[str, Life]] = {}
    for kind in names():
        found |= {name: (kind, life) for name, life in _from_tests(kind, "VARIANTS", {}).items()}
    return found


@functools.cache
def life_of(name: str) -> Life:
    """The life of a kind or a variant; an empty one for a kind that says nothing."""
    life = variants()[name][1] if name in variants() else _from_tests(name, "LIFE", Life())
    assert isinstance(life, Life), f"tests/kinds/{name}/life.py: LIFE is no Life"
    return life


def kind_of(name: str) -> str:
    """The kind of a variant; a kind itself."""
    return variants()[name][0] if name in variants() else name


def _from_tests(kind: str, word: str, default: Any) -> Any:
    if not (KINDS / kind / "life.py").exists():
        return default
    return vars(importlib.import_module(f"kinds.{kind}.life")).get(word, default)
