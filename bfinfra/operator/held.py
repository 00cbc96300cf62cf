"""A Site with what the keeper knows of it."""

from __future__ import annotations

from bfinfra.model.records import dataclass
from bfinfra.operator.desired import Desired
from bfinfra.operator.result import Result


@dataclass
class Held:
    """A Site, and what only this process knows. `recorded`: the check whose result is in the status;
    `misses`: transient failures in a row; `result`: the last result, of the check that started at `looked`;
    `refusals`: how often in a row the API server refused a write; `stuck`: why the pod of its check does not
    start.
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
