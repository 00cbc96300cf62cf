"""A chart's rendering with hooks on kube-apiserver, for kills at each write."""

from __future__ import annotations

import contextlib
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from peers.found import Peers
from peers.site_files import RETRY, SPECS, SiteFile, all_are, everything

import bfinfra
from bfinfra.backends.transport import Middleware
from bfinfra.engine.apply import Options

HOOKS = ("first", "second", "last", "drain", "sweep")


def hook(name: str, when: str, **annotations: str) -> dict[str, Any]:
    """A Job as a chart has it; `annotations` of hooks, such as weight."""
    notes = {"helm.sh/hook": when, **{f"helm.sh/hook-{key}": value for key, value in annotations.items()}}
    pod = {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "tool:1", "command": ["go", name]}],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": notes},
        "spec": {"backoffLimit": 0, "template": {"spec": pod}},
    }


@contextlib.contextmanager
def placed(peers: Peers, folder: Path) -> Iterator[SiteFile]:
    """The site in a namespace of its own. Its definition is the cluster's: one at a time."""
    own = uuid.uuid4().hex[:8]
    site = SiteFile(SPECS / "peers/manifests.yaml", folder)
    site.put("admin.kubeconfig", peers.kubeconfig.read_text())
    shutil.copytree(SPECS / "manifests/queues", folder / "queues")
    hooks = [
        hook("first", "pre-install", weight="-1"),
        hook("second", "pre-install,pre-upgrade", weight="2", **{"delete-policy": "hook-succeeded"}),
        hook("last", "post-install,post-upgrade"),
        hook("drain", "pre-delete"),
        hook("sweep", "post-delete"),
    ]
    (folder / "queues/hooks.yaml").write_text(yaml.safe_dump_all(hooks))
    site.given["site"] = f"hooked-{own}"
    site.given["namespace"] = {f"hooked-{own}": {"cluster": "k"}}
    it = site.given["manifests"]["it"]
    it |= {"namespace": f"hooked-{own}", "files": ["queues"], "run_hooks": [f"Job/{each}" for each in HOOKS]}
    del it["chart"]
    yield site
    all_are(site.apply(destroy=True, deadline=120), "done", "kept")
    assert there(peers, site) == []


def removed(folder: Path, given: dict[str, Any], filling: Middleware) -> None:
    """Its objects are deleted, in a process of its own. `given`: the site without them."""
    site = SiteFile(SPECS / "peers/manifests.yaml", folder)
    site.given = given
    bfinfra.apply(
        site.load(),
        approve=everything,
        options=Options(retry=RETRY, deadline=120),
        context=bfinfra.RunContext(retry=RETRY, middleware=(filling,)),
    )


def there(peers: Peers, site: SiteFile) -> list[str]:
    """What has the site's label, without its own ending; hooks' Jobs too, not their pods."""
    kinds = (
        "namespaces,serviceaccounts,clusterroles,clusterrolebindings,configmaps,deployments,jobs,"
        "customresourcedefinitions"
    )
    label = f"bfinfra.io/site={site.given['site']}"
    found = peers.kubectl("get", kinds, "-A", "-l", label, "-o", "name", "--ignore-not-found").split()
    own = site.given["site"].rpartition("-")[2]
    return sorted(each.replace(f"-{own}", "") for each in found)
