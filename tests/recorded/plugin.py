"""--recorded: the tests that judge bfinfra by what real systems answered; what held by source, and what was not
tried, at the end.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
COUNTED = "recorded"


def pytest_addoption(parser: Any) -> None:
    parser.addoption(
        "--recorded",
        action="store_true",
        help="run also tests/recorded, what real systems answered (script/recorded fetches it)",
    )


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "recorded: judged by what real systems answered; runs with --recorded")


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    here = {path for path in {item.path for item in items} if HERE in path.parents}
    chosen = [item for item in items if item.path in here]
    for item in chosen:
        item.add_marker(pytest.mark.recorded)
    if chosen and not config.getoption("--recorded"):
        items[:] = [item for item in items if item.path not in here]
        config.hook.pytest_deselected(items=chosen)


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    if not config.getoption("--recorded"):
        return
    counts: dict[str, list[int]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in (
                getattr(report, "user_properties", ()) if getattr(report, "when", "") == "call" else ()
            ):
                if name == COUNTED:
                    held, of = counts.setdefault(value[0], [0, 0])
                    counts[value[0]] = [held + value[1], of + value[2]]
    terminalreporter.section("what real systems answered")
    for source, (held, of) in sorted(counts.items()):
        terminalreporter.write_line(f"{source}: {held} of {of}")
    left = [
        r.longrepr[2]
        for r in terminalreporter.stats.get("skipped", ())
        if str(HERE.name) in r.nodeid and isinstance(r.longrepr, tuple)
    ]
    for why in sorted(set(left)):
        terminalreporter.write_line(f"not tried, {left.count(why)} tests: {why.removeprefix('Skipped: ')}")
