"""The site in a real kube-apiserver, with names of its own; and what of it is there."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Iterator
from pathlib import Path

from peers.found import Peers
from peers.site_files import SiteFile, kubernetes_site


@contextlib.contextmanager
def in_kubernetes(peers: Peers, folder: Path) -> Iterator[SiteFile]:
    """specs/peers/kubernetes.yaml with a site name and namespaces of its own, which go afterwards."""
    site = kubernetes_site(folder, uuid.uuid4().hex[:8])
    site.put("admin.kubeconfig", peers.kubeconfig.read_text())
    yield site
    spaces = [space["namespace"] for space in site.given["namespace"].values()]
    peers.kubectl("delete", "namespace", *spaces, "--ignore-not-found", "--wait=false")


def names(peers: Peers, site: SiteFile) -> set[str]:
    """Everything in the whole cluster that carries the site's label, the Jobs' pods aside."""
    found = json.loads(
        peers.kubectl(
            "get",
            "namespaces,secrets,jobs,pods",
            "-A",
            "-l",
            f"bfinfra.io/site={site.given['site']}",
            "-o",
            "json",
        )
    )["items"]
    return {
        f"{each['kind']}/{each['metadata']['name']}"
        for each in found
        if "ownerReferences" not in each["metadata"]
    }
