"""A small language for the tests of the reader: three kinds that refer to each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field

from bfinfra.model import kind, resource
from bfinfra.model.errors import Place, Problem, SiteError
from bfinfra.model.names import DNS_LABEL, DNS_LABEL_RULE
from bfinfra.model.refs import Ref
from bfinfra.model.resource import Part
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site
from bfinfra.model.sources import LocalFile, LocalOutput
from bfinfra.model.units import Bytes, PciId
from bfinfra.spec.load import load


class Branch(Part):
    """A part of a tree."""

    length: int = Field(1, ge=1, le=9)
    """In metres."""
    leaves: Bytes = 0
    """How many."""


class TreeSpec(resource.Spec):
    """A tree."""

    name_pattern: ClassVar[str] = DNS_LABEL
    name_rule: ClassVar[str] = DNS_LABEL_RULE

    grows: Literal["fast", "slow"] = "slow"
    """How it grows."""
    evergreen: bool = False
    """Whether it keeps its leaves."""
    label: str = ""
    """Free text."""
    device: PciId | None = None
    """A PCI id."""
    branches: dict[str, Branch] = Field(default_factory=dict)
    """Name → branch."""
    rings: tuple[int, ...] = ()
    """One a year."""
    key: Secret | None = None
    """Opens the trunk."""
    keys: dict[str, Secret] = Field(default_factory=dict)
    """Name → what opens something else."""
    picture: LocalFile | None = None
    """A picture."""
    drawing: LocalOutput | None = None
    """Where to draw."""
    trunk: Branch = Branch()
    """The thick one."""
    size: int | Literal["any"] = "any"
    """Metres."""
    near: Annotated[str, Ref("tree")] | None = None
    """The tree beside it."""
    code: Annotated[str, Field(pattern="^[a-z]+$")] | None = None
    """Lower-case letters, such as oak."""
    codes: dict[Annotated[str, Field(pattern="^[a-z]+$")], int] = Field(default_factory=dict)
    """Codes as lower-case letters → how many."""

    def warnings(self) -> Iterator[tuple[str, Problem]]:
        """Some things are allowed but unwise."""
        if self.evergreen and self.grows == "fast":
            yield "evergreen", Problem("fast evergreens fall", next="let it grow slow")


class NestSpec(resource.Spec):
    """A nest."""

    tree: Annotated[str, Ref("tree", "pole")]
    """What carries it."""
    friends: tuple[Annotated[str, Ref("nest")], ...] = ()
    """Other nests."""
    over: Annotated[str, Ref("pole", optional=True)] | None = None
    """A pole under it, perhaps one of somebody else."""


class PoleSpec(resource.Spec):
    """A pole: everything has a default."""

    height: int = 3
    """Metres."""


class Tree(kind.Source[TreeSpec, resource.State]):
    """A tree."""


class Nest(kind.Source[NestSpec, resource.State]):
    """A nest."""


class Pole(kind.Source[PoleSpec, resource.State]):
    """A pole."""


GROVE: dict[str, Any] = {"tree": Tree, "nest": Nest, "pole": Pole}


def site(
    folder: Path,
    /,
    text: str = "",
    *,
    env: dict[str, str] | None = None,
    stand_ins: Path | None = None,
    **files: str,
) -> Site:
    """Load `text` as site.yaml, with further files by name."""
    for name, content in {"site": text, **files}.items():
        (folder / f"{name}.yaml").write_text(content)
    return load([folder], env=env or {}, stand_ins=stand_ins, kinds=GROVE)


def problems(folder: Path, /, text: str = "", **files: str) -> tuple[Problem, ...]:
    """What is wrong with the text."""
    with pytest.raises(SiteError) as caught:
        site(folder, text, **files)
    return caught.value.problems


def only(folder: Path, /, text: str, **files: str) -> str:
    """The one problem, as `line:column what; why; next`."""
    found = problems(folder, text, **files)
    assert len(found) == 1, found
    at = found[0].where
    assert isinstance(at, Place)
    return f"{at.line}:{at.column} " + "; ".join(
        part for part in (found[0].what, found[0].why, found[0].next) if part
    )
