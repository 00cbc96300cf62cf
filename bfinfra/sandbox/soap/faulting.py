"""Where fault rules and the tally meet a SOAP call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bfinfra.sandbox.clock import Clock
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.soap.dispatch import Call

DOOR = "vcenter"


class Faulting:
    """Runs a call between the fault rules' `before` and `after`."""

    def __init__(self, faults: Any, tally: Any, clock: Clock) -> None:
        self.faults, self.tally, self.clock = faults, tally, clock

    @contextmanager
    def around(self, call: Call, this: Managed, *, writes: bool) -> Iterator[None]:
        """Count the call, apply the rules that match it, run it."""
        yield
