"""A guest cluster that bfinfra made in the sandbox, as clients of others reach it: by the kubeconfig that
bfinfra writes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from kinds.lifecycle import apply, endings, made, run_context

import bfinfra
from bfinfra.sandbox import Running

SITE = Path(__file__).with_name("guest.yaml")
CLUSTER, SPACE = "tanzu_cluster/cluster-01", "supervisor_namespace/team-a"


def kubeconfig(sandbox: Running, address: str = CLUSTER) -> dict[str, Any]:
    """Applies the site; then `bfinfra kubeconfig`, which leads where the sandbox listens."""
    done = apply(SITE, sandbox)
    assert made(done), endings(done)
    given: dict[str, Any] = yaml.safe_load(
        bfinfra.kubeconfig(bfinfra.load(SITE, sandbox=sandbox), address, context=run_context(sandbox))
    )
    return given


def written(given: dict[str, Any], folder: Path) -> Path:
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(given))
    return path
