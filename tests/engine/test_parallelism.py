"""So many resources are worked on at a time as the user says, and all of them in the end."""

from __future__ import annotations

import threading

import pytest
from engine.toys import BoxSpec, ToyWorld, applied, site
from kinds.of_several import of_several

from bfinfra.model.events import Event, Started
from bfinfra.model.step import Step

BOXES = 5


@of_several("--parallelism")
@pytest.mark.parametrize(("parallelism", "together"), [(1, 1), (2, 2), (4, 4), (10, BOXES)])
def test_no_more_resources_than_parallelism_are_worked_on_at_a_time(parallelism: int, together: int) -> None:
    """Each step waits until all have begun, and as many threads work as may."""
    threads: set[int] = set()
    begun: list[Event] = []
    moved = threading.Condition()

    def journal(event: Event) -> None:
        if isinstance(event, Started):
            with moved:
                begun.append(event)
                moved.notify_all()

    world = ToyWorld()

    def fail(_: Step) -> None:
        world.lock.release()  # which others need to come as far
        with moved:
            threads.add(threading.get_ident())
            moved.notify_all()
            assert moved.wait_for(lambda: len(begun) == BOXES and len(threads) >= together, 60)
        world.lock.acquire()

    world.fail = fail
    wanted = site(**{f"box__b{number}": BoxSpec() for number in range(BOXES)})
    endings, _ = applied(world, wanted, parallelism=parallelism, journal=journal)
    assert set(endings.values()) == {"done"}
    assert len(threads) == together
