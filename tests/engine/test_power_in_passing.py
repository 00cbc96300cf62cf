"""Another run of the site in the middle of a power cycle that the plan announced is nothing new; power that
changed without one is.
"""

from __future__ import annotations

import pytest

from bfinfra.engine.reconciler import _beyond
from bfinfra.model.compare import Change
from bfinfra.model.plan import Action, Item
from bfinfra.model.refs import Key
from bfinfra.model.step import Disruption, Step

MEMORY, OFF = Change("memory", 1, 2), Change("power", "off", "on")


class Cycle(Step):
    """shut it down"""

    disruption = Disruption.POWER_CYCLE


class Plain(Step):
    """change it"""


@pytest.mark.parametrize(("announced", "told"), [(Cycle, False), (Plain, True)])
def test_power_that_is_off_is_told_unless_a_power_cycle_was_announced(
    announced: type[Step], told: bool
) -> None:
    item = Item(Key("machine", "a"), Action.UPDATE, (announced(changes=(MEMORY,)),))
    found = _beyond(item, (Plain(changes=(MEMORY, OFF)),), first=True, wanted=True)
    assert ("power is off" in found) is told


def test_another_field_is_told_in_any_case() -> None:
    item = Item(Key("machine", "a"), Action.UPDATE, (Cycle(changes=(MEMORY,)),))
    other = Plain(changes=(MEMORY, Change("cpus", 1, 2)))
    assert "cpus is 1" in _beyond(item, (other,), first=True, wanted=True)
