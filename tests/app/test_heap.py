"""What stays in memory after a survey."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from bfinfra.app import heap


class Ring:
    """Refers to itself, so that only the garbage collector can free it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_the_garbage_collector_leaves_alone_what_a_survey_read() -> None:
    heap.settle(own_process=True)
    assert gc.get_freeze_count()


def test_what_an_earlier_survey_read_and_nobody_uses_is_freed() -> None:
    ring = Ring()
    gone = weakref.ref(ring)
    heap.settle(own_process=True)
    del ring
    assert gone()
    heap.settle(own_process=True)
    assert not gone()


def test_in_a_process_of_others_the_garbage_collector_is_left_as_it_is() -> None:
    heap.settle(own_process=False)
    assert not gc.get_freeze_count()
