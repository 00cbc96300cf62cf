"""A Site as the keeper holds it."""

from __future__ import annotations

from bfinfra.model.records import dataclass
from bfinfra.operator.desired import Desired
from bfinfra.operator.result import Result


@dataclass
class Held:
    """A Site, and what this process alone knows of it. `recorded`: the look whose result stands in the
    status; `misses`: passing failures in a row; `result`: the last that there was, of the look that began
    at `looked`; `refusals`: how often in a row the API server did not take what was to be written;
    `stuck`: why the pod of its look does not start.
    """

    wanted: Desired
    due: float = 0
    busy: bool = False
    recorded: str = ""
    misses: int = 0
    result: Result | None = None
    looked: float = 0
    refusals: int = 0
    stuck: str = ""
