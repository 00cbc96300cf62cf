"""One side effect as data, and what it does to what runs."""

from __future__ import annotations

import enum
from typing import ClassVar

from bfinfra.model.compare import Change
from bfinfra.model.documentation import summary
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Right, Use


class Disruption(enum.StrEnum):
    """What a step does to what runs."""

    NONE = "none"
    REBOOT = "reboot"
    POWER_CYCLE = "power-cycle"
    REPLACE = "replace"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One side effect as data: printed, compared and journalled before it runs. Carries references, never
    secrets.

    A subclass's docstring is its title; `{name}` in it stands for a field.
    """

    destructive: ClassVar[bool] = False
    """It destroys something that can't be had back."""
    disruption: ClassVar[Disruption] = Disruption.NONE
    why: ClassVar[str] = ""
    """Why it disrupts."""
    preapproved: ClassVar[bool] = False
    """The site itself asks for the disruption (`reboot: if_needed`): no further allowance is needed."""
    settles: ClassVar[bool] = False
    """The next step waits until the resource is ready again."""
    rights: ClassVar[tuple[Right, ...]]
    """What it takes to run it; each class says so itself."""
    uses: ClassVar[tuple[Use, ...]] = (Use.APPLY,)
    """Which of a site's rights these are."""

    changes: tuple[Change, ...] = ()

    @property
    def exclusive(self) -> bool:
        """It fails with Exists or Conflict where its object is not as it was last seen: nobody needs to look
        just before it.
        """
        return False

    def title(self) -> str:
        """One line for people."""
        return (summary(type(self)) or type(self).__name__).rstrip(".").format(**vars(self))
