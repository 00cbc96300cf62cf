"""A host that never comes back after its reboot."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from kinds.lifecycle import EVERYTHING, EXAMPLES, QUICK

import bfinfra
from bfinfra import sandbox as sandboxes
from bfinfra.engine import readiness_wait
from bfinfra.engine.apply import Options
from bfinfra.model.events import Event, Settling
from bfinfra.render import summary
from bfinfra.sandbox import SMALL_WORLD, Running


@pytest.fixture
def gone(tmp_path: Path) -> Iterator[Running]:
    """A world whose hosts take eleven days for a reboot."""
    durations = "pace: 1\ndurations: {task: 0, boot: 0, shutdown: 0, reboot: 1000000}\n"
    (file := tmp_path / "world.yaml").write_text(SMALL_WORLD.read_text().replace("pace: 0\n", durations))
    yield sandboxes.start(file, tmp_path / "sandbox")
    sandboxes.stop(tmp_path / "sandbox")


@pytest.mark.parametrize("deadline", [600, None])
def test_the_end_names_the_host_its_maintenance_mode_and_the_command_that_goes_on(
    deadline: float | None, gone: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + ahead[0], time=time.time)
    monkeypatch.setattr(readiness_wait, "time", clock)

    def later(event: Event) -> None:
        if isinstance(event, Settling) and "restarting" in event.why:
            ahead[0] = 3600

    outcome = bfinfra.apply(
        bfinfra.load(EXAMPLES["gpu_host"], sandbox=gone),
        approve=lambda _: EVERYTHING,
        options=Options(retry=QUICK, deadline=deadline),
        on_event=later,
        context=bfinfra.RunContext(sandbox=gone, retry=QUICK),
    )
    assert outcome.ending == "still-waiting"
    said = " ".join(summary.outcome(outcome).split())
    assert "still waiting gpu_host/esx1.small.test" in said
    assert f"is not ready after {deadline or 1800} s" in said
    assert "why: the host is restarting" in said
    assert "gpu_host/esx1.small.test restarts in maintenance mode, and is not back; left to do: " in said
    assert "take host esx1.small.test out of maintenance mode" in said
    assert "Run the same command again" in said
