from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Journal and locks of the test's own."""
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
