"""A step: one write as data, and what it disrupts."""

from __future__ import annotations

import enum
from dataclasses import field
from typing import ClassVar

from bfinfra.model.compare import Change, touches
from bfinfra.model.documentation import summary
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Right, Use


class Disruption(enum.StrEnum):
    """The effect of a step on running work."""

    NONE = "none"
    RESTART = "restart"
    REBOOT = "reboot"
    POWER_CYCLE = "power-cycle"
    REPLACE = "replace"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One write as data: printed, compared and journalled before it runs. Contains references, never secrets.

    A subclass's docstring is its title; `{name}` in it stands for a field.
    """

    destructive: ClassVar[bool] = False
    """Whether it destroys something that can't be recovered."""
    disruption: ClassVar[Disruption] = Disruption.NONE
    why: ClassVar[str] = ""
    """Why it disrupts."""
    preapproved: ClassVar[bool] = False
    """Whether the site itself asks for the disruption (`reboot: if_needed`), so that nothing more need be
    allowed.
    """
    waits_ready: ClassVar[bool] = False
    """Whether the next step waits until the resource is ready again."""
    rights: ClassVar[tuple[Right, ...]]
    """The rights that running it needs; each class declares them."""
    uses: ClassVar[tuple[Use, ...]] = (Use.APPLY,)
    """The uses of a site that need these rights."""

    changes: tuple[Change, ...] = ()

    @property
    def exclusive(self) -> bool:
        """Whether it fails with Exists or Conflict if its object has changed since it was last read, so that
        no read is needed just before it.
        """
        return False

    @property
    def way_back(self) -> Step | None:
        """The step that gives back what this one took from service, run if one after it is refused; None if
        it took nothing.
        """
        return None

    def writes(self, field: str) -> bool:
        """Return whether it writes this field: one of its changes is in it. All others stay as they are."""
        return touches(self.changes, field)

    def title(self) -> str:
        """One line for people."""
        return (summary(type(self)) or type(self).__name__).rstrip(".").format(**vars(self))


@dataclass(frozen=True, kw_only=True)
class Versioned(Step):
    """A change of an object that its server counts the versions of.

    `version`: the one that was decided on. The write fails with Conflict if the object has another one by
    then, and is decided anew; so it is no part of what a plan announces.
    """

    version: str = field(default="", repr=False, compare=False)
