"""The result of an apply."""

from __future__ import annotations

from collections.abc import Mapping

from bfinfra.model.events import Ended, Ending
from bfinfra.model.plan import Plan
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key


@dataclass(frozen=True)
class Outcome:
    """`requests`: the number of requests; `writes`: how many of them wrote, plus what was written on this
    machine; `endings` by key, in the order of the plan.
    """

    plan: Plan
    endings: Mapping[Key, Ended]
    seconds: float
    requests: int = 0
    writes: int = 0
    declined: bool = False

    @property
    def ending(self) -> Ending:
        """The ending of the whole run: failed before stopped before still waiting before done."""
        found = {ended.ending for ended in self.endings.values()}
        order = (Ending.FAILED, Ending.BLOCKED, Ending.STOPPED, Ending.WAITING)
        worst = next((ending for ending in order if ending in found), Ending.DONE)
        return Ending.FAILED if worst is Ending.BLOCKED else worst
