"""Without --peers (or --backend=live) the tests marked `peers` are left out, and the summary says how many and how to run them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
COUNT = pytest.StashKey[int]()


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "peers: needs the real peers of script/peers; runs with --peers")


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.peers)
    if config.getoption("--peers") or "live" in config.getoption("--backend"):
        return
    out = [item for item in items if item.get_closest_marker("peers")]
    items[:] = [item for item in items if not item.get_closest_marker("peers")]
    config.stash[COUNT] = len(out)
    if out:
        config.hook.pytest_deselected(items=out)


def pytest_sessionfinish(session: Any) -> None:
    """A worker of xdist tells its controller, which collects nothing itself."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left out"] = session.config.stash.get(COUNT, 0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every worker collects the same tests: the count is any one's."""
    count = getattr(node, "workeroutput", {}).get("left out", 0)
    node.config.stash[COUNT] = max(count, node.config.stash.get(COUNT, 0))


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    if count := config.stash.get(COUNT, 0):
        tests = "test with real peers was" if count == 1 else "tests with real peers were"
        terminalreporter.write_line(f"{count} {tests} left out; to run them: script/peers up && script/test --peers")
