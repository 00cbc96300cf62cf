"""The result of an apply."""

from __future__ import annotations

from collections.abc import Mapping

from bfinfra.model.events import Ended, Ending
from bfinfra.model.plan import Plan
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key


@dataclass(frozen=True)
class OutOfService:
    """A resource that does not serve after a run that did not finish. `how`: `is off`, `is in maintenance
    mode`; `left`: the steps that are left to do, in words.
    """

    key: Key
    how: str
    left: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.key} {self.how}" + (f"; left to do: {', '.join(self.left)}" if self.left else "")


@dataclass(frozen=True)
class Outcome:
    """`requests`: the number of requests; `writes`: how many of them wrote, plus what was written on this
    machine; `endings` by key, in the order of the plan; `out_of_service`: what this run turned off, or left
    in maintenance mode, and what it was to start and did not.
    """

    plan: Plan
    endings: Mapping[Key, Ended]
    seconds: float
    requests: int = 0
    writes: int = 0
    declined: bool = False
    out_of_service: tuple[OutOfService, ...] = ()

    @property
    def ending(self) -> Ending:
        """The ending of the whole run: failed before stopped before still waiting before done."""
        found = {ended.ending for ended in self.endings.values()}
        order = (Ending.FAILED, Ending.BLOCKED, Ending.STOPPED, Ending.WAITING)
        worst = next((ending for ending in order if ending in found), Ending.DONE)
        return Ending.FAILED if worst is Ending.BLOCKED else worst
