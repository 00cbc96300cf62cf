"""A guest cluster that bfinfra made in the sandbox, as clients of others reach it: by the kubeconfig that bfinfra writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from kinds.lifecycle import apply, endings, made, setting

import bfinfra.app as app
from bfinfra.sandbox import Running

SITE = Path(__file__).with_name("guest.yaml")
CLUSTER, SPACE = "tanzu_cluster/cluster-01", "supervisor_namespace/team-a"


def kubeconfig(sandbox: Running, address: str = CLUSTER) -> dict[str, Any]:
    """Applies the site; then `bfinfra kubeconfig`, with the loopback port in the place of the address that only the sandbox's users know."""
    done = apply(SITE, sandbox)
    assert made(done), endings(done)
    given: dict[str, Any] = yaml.safe_load(app.kubeconfig(app.load(SITE, sandbox=sandbox), address, around=setting(sandbox)))
    for each in given["clusters"]:
        url = urlsplit(each["cluster"]["server"])
        there = sandbox.lookup(str(url.hostname), url.port or 443)
        assert there
        each["cluster"]["server"] = f"https://{there[0]}:{there[1]}"  # in the certificate besides the real address
    return given


def written(given: dict[str, Any], folder: Path) -> Path:
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(given))
    return path
