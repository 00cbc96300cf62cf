from __future__ import annotations

from pathlib import Path

import pytest
from file_server import files  # noqa: F401 - a fixture
from kube_api import api, clock, cluster, clusters, kubelet_folders, pki, sandbox_api, server_version, space  # noqa: F401 - fixtures


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a machine remembers of a site is the test's own."""
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
