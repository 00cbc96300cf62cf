"""What a user writes for one resource, its Spec, and what its server says of it, its State."""

from __future__ import annotations

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

Address = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*/[^\s/]{1,253}$")]  # kind/name

LEADS = "_leads"

BESIDE_FIELDS = frozenset({"_as_applied", EDGES, LEADS})
"""What is worked out of a Spec, which never changes, once, and kept beside its fields: as a mark keeps it,
its references, what leads outside of the site.
"""


class Part(BaseModel):
    """A piece of a Spec. Frozen; unknown keys are errors; a docstring under a field is its documentation."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Spec(Part, Ordered):
    """What a user writes for one resource."""

    name_pattern: ClassVar[str] = r"[^\s/]{1,253}"
    """What its name must match in whole."""
    name_rule: ClassVar[str] = "no blanks and no slash, at most 253 characters"
    """The same, for people."""

    awaits: ClassVar[Mapping[str, str]] = {}
    """Files that needn't be there when a site begins: dotted field → where one gets it. What needs one waits
    until it is there.
    """
    digested: ClassVar[str] = ""
    """The field with secrets of which salted digests are noted, if there is one: it takes the site's
    pepper.
    """
    unnoted: ClassVar[frozenset[str]] = frozenset()
    """Those of them of which nothing is noted: what stands can't be compared with them while they are
    away.
    """
    protect: bool = False
    """Refuse to delete or replace this resource, whatever the command line allows."""
    after: Annotated[tuple[Address, ...], Field(exclude=True)] = ()
    """Addresses of resources, kind/name, that must be ready before this one is begun, for reasons that
    bfinfra can't know; on the way down they go after it.
    """

    def warnings(self) -> Iterable[tuple[str, Problem]]:
        """What is allowed but better known before: dotted field and what to say of it."""
        return ()

    def parts(self) -> Iterable[str]:
        """What is drawn inside of it in a picture of the site: a host's cards."""
        return ()

    def answers_at(self) -> str:
        """Where it will answer, as far as the file says: host or host:port, "" where it doesn't."""
        return ""

    def takes(self, name: str) -> Iterable[Taken]:
        """What no other resource of the site may have: addresses, names of objects. By the file alone."""
        return ()

    def inside(self) -> Iterable[Inner]:
        """Networks that are there inside of it only, where no machine may have an address."""
        return ()

    def ways(self, addresses: Mapping[str, str]) -> Iterable[tuple[str, tuple[str, int]]]:
        """What Linux machines must reach for it: the machine's name, and an address and TCP port.
        `addresses`: of all machines of the site, by name.
        """
        return ()

    @staticmethod
    def conflicts(mine: Specs, site: Specs) -> Iterable[Conflict]:
        """What several resources can't be together, by the file alone. `mine`: the specs of this kind;
        `site`: all of them.
        """
        return ()

    def applied(self) -> dict[str, Any]:
        """The fields as a mark keeps them: what was written, defaults left out, secrets as references. Worked
        out once: not to be changed.
        """
        return self._as_applied

    @functools.cached_property
    def _as_applied(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_defaults=True)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy that differs in some fields; what was worked out of the original is not taken along."""
        copied = super().model_copy(update=update, deep=deep)
        for kept in BESIDE_FIELDS:
            vars(copied).pop(kept, None)
        return copied


@dataclass(frozen=True, kw_only=True)
class State:
    """What the world says of one resource; fields are named as in the Spec where they compare."""

    mark: Mark | None = None
    """None: it stands there, but nobody's mark is on it."""
    contents: tuple[str, ...] = ()
    """Other people's objects inside: what a deletion would take along."""
    copy: str = ""
    """Whose copy it is, in words, where somebody copied an object of ours with its mark; such a one is
    nobody's that we know of.
    """

    def answers_at(self) -> str:
        """Where it answers: host or host:port, "" where it doesn't or where nobody says."""
        return ""
