"""The Spec of a resource, which a user writes, and its State, which its server reports."""

import functools
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from bfinfra.model.conflict import Conflict, Inner, Taken
from bfinfra.model.errors import Problem
from bfinfra.model.mark import Mark
from bfinfra.model.order import Ordered, Specs
from bfinfra.model.records import dataclass
from bfinfra.model.refs import EDGES

Address = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*/\S{1,253}$")]  # kind/name

LEADS = "_leads"

BESIDE_FIELDS = frozenset({"_as_applied", EDGES, LEADS})
"""What is computed from a Spec, which never changes, and cached beside its fields: the fields as a mark holds
them, its references, its links to what is outside of the site.
"""


class Part(BaseModel):
    """A part of a Spec. Frozen; unknown keys are errors; the docstring under a field is its documentation."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


# Annotations are values in this file: pydantic would compile those of `protect` anew for each kind.
class Spec(Part, Ordered):
    """The desired state of one resource."""

    name_pattern: ClassVar[str] = r"[^\s/]{1,253}"
    """Pattern of the whole name."""
    name_rule: ClassVar[str] = "no blanks and no slash, at most 253 characters"
    """The pattern in words."""

    awaits: ClassVar[Mapping[str, str]] = {}
    """Files that need not exist yet: dotted field → how to get it. What needs one waits until it is there."""
    digested: ClassVar[str] = ""
    """The field whose secrets a mark holds salted digests of, or "". It needs the site's pepper."""
    unnoted: ClassVar[frozenset[str]] = frozenset()
    """Those of `awaits` without a digest in the mark: while they are missing, existing objects can't be
    compared with them.
    """
    protect: bool = False
    """Refuse to delete or replace this resource, whatever the command line allows."""
    after: Annotated[tuple[Address, ...], Field(exclude=True)] = ()
    """Addresses of resources, kind/name, that must be ready before this one is started, for reasons that
    bfinfra can't know. Deletion runs in the reverse order.
    """

    def warnings(self) -> Iterable[tuple[str, Problem]]:
        """Warnings about fields that are allowed: dotted field and problem."""
        return ()

    def parts(self) -> Iterable[str]:
        """Return the parts that a picture of the site draws inside of it, such as a host's cards."""
        return ()

    def answers_at(self) -> str:
        """Its address as in the file: host or host:port, or ""."""
        return ""

    def takes(self, name: str) -> Iterable[Taken]:
        """Return the values that no other resource of the site may have, from the file alone: addresses,
        names of objects.
        """
        return ()

    def inside(self) -> Iterable[Inner]:
        """Networks that exist only inside of it. No machine may have an address in one."""
        return ()

    def ways(self, addresses: Mapping[str, str]) -> Iterable[tuple[str, tuple[str, int]]]:
        """Yield the addresses that Linux machines must reach for it: machine's name, address and TCP port.

        `addresses`: of all machines of the site, by name.
        """
        return ()

    @staticmethod
    def conflicts(mine: Specs, site: Specs) -> Iterable[Conflict]:
        """Conflicts between resources, from the file alone. `mine`: the specs of this kind; `site`: all
        specs.
        """
        return ()

    def applied(self) -> dict[str, Any]:
        """The fields as a mark holds them: as written, without defaults, secrets as references. Cached: don't
        change it.
        """
        return self._as_applied

    @functools.cached_property
    def _as_applied(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_defaults=True)

    def model_copy(self, *, update: Mapping[str, object] | None = None, deep: bool = False) -> Self:
        """A copy with some fields changed, without the cached values."""
        copied = super().model_copy(update=update, deep=deep)
        for kept in BESIDE_FIELDS:
            vars(copied).pop(kept, None)
        return copied


RECONNECT = "connect it again, then run this again"
"""What helps where a server shows only what it last knew; see `State.last_known`."""


@dataclass(frozen=True, kw_only=True)
class State:
    """A resource as a server reports it. Fields that are compared have the Spec's names."""

    mark: Mark | None = None
    """None: it exists without anybody's mark."""
    contents: tuple[str, ...] = ()
    """Objects of others inside of it, which a deletion would delete too."""
    going: bool = False
    """Its server is deleting it."""
    copy: str = ""
    """What it was copied from, in words, if somebody copied an object of bfinfra with its mark; else "". A
    copy has no owner.
    """

    @property
    def applied(self) -> Mapping[str, Any]:
        """The fields that were last applied to it, by its mark; empty without one."""
        return (self.mark.applied if self.mark else None) or {}

    def answers_at(self) -> str:
        """Its address: host or host:port, or "" if it has none or it is unknown."""
        return ""

    def last_known(self) -> str:
        """Return why its fields are last known values: its server has lost it. "" if they are current."""
        return ""

    def out_of_service(self, spec: Spec | None) -> str:
        """Return in what way it does not serve now, after its name: `is off`, `is in maintenance mode`; "" if
        it serves, or isn't to. `spec`: its Spec, None if the site has it no more. A kind with steps that stop
        it, restart it or let it enter maintenance mode says it here.
        """
        return ""
