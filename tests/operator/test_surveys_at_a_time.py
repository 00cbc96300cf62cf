"""A watcher surveys so many Sites at a time, before it follows them."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kinds.of_several import of_several

from bfinfra.app.context import RunContext
from bfinfra.app.listener import Listener
from bfinfra.model.site import Site
from bfinfra.operator.desired import Desired
from bfinfra.operator.watcher import contents, follower
from bfinfra.operator.watcher.running import WatcherOptions, made
from bfinfra.operator.watching import Watching

SITES = 5


@of_several("--surveys")
@pytest.mark.parametrize("surveys", [1, 2, 4])
def test_no_more_sites_than_surveys_are_surveyed_at_a_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, surveys: int
) -> None:
    """Each survey waits for its end, which comes only once so many have begun."""
    lock, full, end = threading.Lock(), threading.Event(), threading.Event()
    surveying, most = 0, 0

    def watch(*_: object, **__: object) -> None:
        nonlocal surveying, most
        with lock:
            surveying, most = surveying + 1, max(most, surveying + 1)
            if surveying >= surveys:
                full.set()
        assert end.wait(60)
        with lock:
            surveying -= 1

    read: Any = SimpleNamespace(digest=b"d", load=lambda *_: Site("s", None, {}))
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(contents, "read", lambda *_: read)
    monkeypatch.setattr(follower, "recall", lambda *_, **__: None)
    monkeypatch.setattr(follower, "watch", watch)
    options = WatcherOptions(("", 0), surveys=surveys, name="w")
    desk = made(options, SimpleNamespace(), "ns", tmp_path, RunContext()).desk  # type: ignore[arg-type]  # nobody asks it
    wanted: Any = SimpleNamespace(
        uid="u", name="s", namespace="ns", generation=1, watching=Watching(), known=(), existed=()
    )
    found: list[follower.Follower] = []
    for _ in range(SITES):
        one: Desired = wanted
        found.append(follower.Follower(one, desk, follower.Gap(0, ""), Listener(), lambda _: None))
        found[-1].start()
    assert full.wait(60)
    assert not desk.slots.acquire(blocking=False), "no survey more may begin"
    assert most == surveys
    for each in found:
        each.end()
    end.set()
    for each in found:
        each.join(60)
    assert most == surveys
