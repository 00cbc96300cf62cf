from __future__ import annotations

import pytest
from kinds.gpu_operator.at_gpus import A100

from bfinfra.sandbox.kubernetes.nvidia import Gpus


@pytest.fixture
def node_gpus() -> dict[str, Gpus]:
    """The nodes of the cluster that have GPUs; a test's own to change."""
    return {"g1": A100, "g2": A100}
