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
    threads: set[int] = set()
    begun: list[Event] = []
    all_begun = threading.Event()

    def journal(event: Event) -> None:
        if isinstance(event, Started):
            begun.append(event)
            if len(begun) == BOXES:
                all_begun.set()

    world = ToyWorld()

    def fail(_: Step) -> None:
        assert all_begun.wait(60)  # what may start has started
        threads.add(threading.get_ident())

    world.fail = fail
    wanted = site(**{f"box__b{number}": BoxSpec() for number in range(BOXES)})
    endings, _ = applied(world, wanted, parallelism=parallelism, journal=journal)
    assert set(endings.values()) == {"done"}
    assert len(threads) == together
