"""With --peers, who runs what: the long tests first (of machines, of playbooks, those marked thorough), spread
over the workers, so that no worker ends with one that takes minutes; tests that need the same part of a cluster
to themselves in one worker, so that none waits for another's.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

PLAYBOOKS = Path(__file__).parents[1] / "playbooks"
MACHINE, PLAYBOOK, ALONE, OTHER = 30, 20, 10, 1  # seconds of processor, roughly


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    if config.getoption("--peers") and workers > 1:
        items[:] = dealt(items, workers)


def dealt(items: list[Any], workers: int) -> list[Any]:
    """The tests in the order in which xdist's worksteal gives each worker its part: one run of them each, all
    of one length.
    """
    units: dict[str, list[Any]] = {}
    for item in items:
        units.setdefault(_unit(item), []).append(item)
    hands: list[list[Any]] = [[] for _ in range(workers)]
    weights = [0] * workers
    light: list[Any] = []
    for unit in sorted(units.values(), key=lambda unit: -sum(map(_weight, unit))):
        if (weight := sum(map(_weight, unit))) == OTHER:
            light += unit
        else:
            least = weights.index(min(weights))
            hands[least] += unit
            weights[least] += weight
    rest, left = iter(light), len(items)
    for nth, hand in enumerate(hands):
        size = left // (workers - nth)
        while len(hand) < size:
            hand.append(next(rest))
        left -= len(hand)
    return [item for hand in hands for item in hand]


def _unit(item: Any) -> str:
    return f"only one of {item.module.ONCE}" if "alone" in item.fixturenames else str(item.nodeid)


def _weight(item: Any) -> int:
    if item.get_closest_marker("packages") or item.get_closest_marker("thorough"):
        return MACHINE
    if PLAYBOOKS in item.path.parents:
        return PLAYBOOK
    return ALONE if "alone" in item.fixturenames else OTHER
