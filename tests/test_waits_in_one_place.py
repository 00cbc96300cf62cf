"""Whatever a step waits for, it waits for in bfinfra/model/waits.py, which knows the deadline; no other module of
what runs in a step has a clock or a pause of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "bfinfra"
IN_A_STEP = ("backends", "engine", "kinds", "model")
ONE_PLACE = "model/waits.py"
ELSEWHERE = {
    ("backends/ansible/connection.py", "communicate"): "a logout, after all steps",
    ("backends/ansible/connection.py", "select"): "as long as a Wait has left",
    ("backends/ansible/connection.py", "wait"): "for a program that has closed its output",
    ("backends/ansible/agent.py", "wait"): "for the agent's end, after all steps",
    ("backends/ansible/folder.py", "wait"): "a thread of its own, which ends with its block",
    ("backends/credentials.py", "time.monotonic"): "for how long a refused password is remembered",
    ("backends/kubernetes/access.py", "time.time"): "when a token ends, which says so by the calendar",
    ("backends/limits.py", "time.monotonic"): "of one answer, whose limit waits.capped has shortened",
    ("backends/outages.py", "time.monotonic"): "how long a server is away; nobody rests beyond waits.left",
    ("backends/outages.py", "time.sleep"): "the default of its pause, not called",
    ("backends/outages.py", "wait"): "as long as waits.left says, at most",
    ("backends/vcenter/keepalive.py", "time.monotonic"): "a thread that reports, and ends with its block",
    (
        "backends/vcenter/keepalive.py",
        "wait",
    ): "the same; the pause of an upload is as long as waits.left says",
    (
        "backends/vcenter/leases.py",
        "time.monotonic",
    ): "how long another's lease stands still; it waits for none",
    ("backends/vcenter/leases.py", "wait"): "a thread that renews, until the run ends",
    ("backends/vcenter/tasks.py", "wait"): "the one for tasks, which has a Wait",
    ("backends/vcenter/upload.py", "wait"): "as long as waits.left says, at most",
    ("backends/webhook.py", "time.time"): "when a message was sent",
    ("engine/apply.py", "get"): "a turn of the run's own loop",
    ("engine/apply.py", "time.monotonic"): "how long a resource took",
    ("engine/apply.py", "time.time"): "when an event was",
    ("engine/apply.py", "wait"): "a turn of the run's own loop",
    ("engine/checks.py", "time.time"): "when something was noted",
    ("engine/readiness_wait.py", "time.monotonic"): "between steps: it has the deadline itself",
    ("engine/readiness_wait.py", "time.time"): "when an event was",
    ("engine/reconciler.py", "time.monotonic"): "how long a step took",
    ("engine/reconciler.py", "time.time"): "when an event was",
    ("engine/retry.py", "time.monotonic"): "how long it is tried; nothing is tried beyond waits.left",
    ("engine/retry.py", "time.sleep"): "the default of its pause, not called",
    ("engine/retry.py", "wait"): "as long as waits.left says, at most",
    ("model/redact.py", "time.monotonic"): "for how long what entered is hidden",
    ("model/subprocesses.py", "select"): "as long as a Wait has left",
    ("model/subprocesses.py", "wait"): "the same, and for a killed program",
}
"""(file, call) → why it isn't a wait of a step."""
CLOCKS = {"monotonic", "time", "perf_counter", "process_time", "sleep", "monotonic_ns", "time_ns"}
PAUSES = {"wait", "wait_for", "select", "poll", "communicate"}


def pauses(tree: ast.AST) -> Iterator[str]:
    """The clocks and pauses that a module uses: `time.…`, also where it is only handed on, and what blocks for
    a time.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("time", "asyncio"):
            yield from (f"{node.module}.{each.name}" for each in node.names)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            full = f"{node.value.id}.{node.attr}"
            yield from [full] if node.value.id in ("time", "asyncio") and node.attr in CLOCKS else []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, timed = node.func.attr, any(each.arg in ("timeout", "limit") for each in node.keywords)
            if (name in PAUSES and (node.args or timed or name == "wait")) or (
                name in ("get", "acquire", "join") and timed
            ):
                yield name


def used() -> set[tuple[str, str]]:
    return {
        (str(file.relative_to(ROOT)), each)
        for package in IN_A_STEP
        for file in (ROOT / package).rglob("*.py")
        for each in pauses(ast.parse(file.read_text()))
    }


def test_nothing_that_runs_in_a_step_waits_by_a_clock_of_its_own() -> None:
    found = {each for each in used() if each[0] != ONE_PLACE}
    assert found - ELSEWHERE.keys() == set(), "wait with bfinfra.model.waits.Wait, or say here why not"
    assert ELSEWHERE.keys() - found == set(), "no longer there: take it off the list"


@pytest.mark.parametrize(
    "text",
    [
        "import time\nwhile True: time.sleep(1)",
        "import time\nend = time.monotonic() + 3600",
        "from time import sleep\nsleep(1)",
        "import time\ndef read(pause=time.sleep): ...",
        "import threading\nthreading.Event().wait(5)",
        "lock.acquire(timeout=3600)",
        "done.get(timeout=3600)",
        "process.communicate(timeout=3600)",
    ],
)
def test_each_way_to_wait_is_seen(text: str) -> None:
    assert [*pauses(ast.parse(text))] != []
