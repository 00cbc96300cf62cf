"""The site of tests/torture/watched.yaml, as much of it as is in a Kubernetes cluster, on a real kube-apiserver."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import yaml
from kinds.lifecycle import EVERYTHING, SPECS
from peers.site_files import RETRY, RUN_CONTEXT, all_are
from torture.hands import IN_CLUSTERS, QUEUE, Hands, replicas
from torture.own_cluster import Cluster

import bfinfra
from bfinfra.engine.apply import Options
from bfinfra.model.drift import Report
from bfinfra.sandbox.factories.token import make_token

SOURCE = Path(__file__).with_name("watched.yaml")
KINDS = ("site", "kubernetes_cluster", "namespace", "bitfusion_token", "token_secret")
SETTINGS = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "queues"},
    "data": {"policy": "fair"},
}


def written(folder: Path, config: dict[str, Any]) -> Path:
    """The site's file, with its token and its objects; it enters the cluster by this kubeconfig."""
    whole = yaml.load(SOURCE.read_text(), yaml.BaseLoader)
    found = {kind: whole[kind] for kind in KINDS}
    objects = folder / "objects"
    objects.mkdir()
    for each in (SPECS / "manifests/queues").iterdir():
        if "operator" not in each.name:
            shutil.copy(each, objects)
    (objects / "settings.yaml").write_text(yaml.safe_dump(SETTINGS))
    found["manifests"] = {"queues": {"cluster": "other", "files": ["objects"]}}
    make_token(folder / "token.tar")
    enter(folder, config)
    (folder / "site.yaml").write_text(yaml.safe_dump(found, sort_keys=False))
    return folder / "site.yaml"


def enter(folder: Path, config: dict[str, Any]) -> None:
    """From now on the site's kubeconfig is this one."""
    fresh = folder / "fresh.kubeconfig"
    fresh.write_text(json.dumps(config))
    fresh.replace(folder / "other.kubeconfig")


def applied(site: Path) -> None:
    """Everything is there again. Raises AssertionError."""
    options = Options(retry=RETRY, deadline=60)
    made = bfinfra.apply(
        bfinfra.load(site), approve=lambda _: EVERYTHING, options=options, context=RUN_CONTEXT
    )
    all_are(made, "done", "kept")


def drift(site: Path) -> Report:
    """What a fresh check says."""
    return bfinfra.drift(bfinfra.load(site), context=RUN_CONTEXT)


def cleared(cluster: Cluster) -> None:
    """Nothing is left of what has the names of the site's objects."""
    quietly = ("--ignore-not-found", "--wait=true", "--timeout=50s")
    cluster.kubectl("delete", "namespace", "training", *quietly)
    cluster.kubectl("delete", "secrets,configmaps", "--all", "-n", "default", *quietly)
    cluster.kubectl("delete", "crd", "queues.sched.example.com", *quietly)


def relabelled(hands: Hands) -> None:
    """By kubectl."""
    hands.kubectl("label", "namespace", "training", f"team={hands.chance.choice('abc')}", "--overwrite")


def noted(hands: Hands) -> None:
    """An annotation, which is nothing to the site."""
    hands.kubectl("annotate", "configmap", "queues", f"note={hands.chance.random()}", "--overwrite")


def deleted(hands: Hands) -> None:
    """The settings, by kubectl; the next apply makes them again."""
    hands.kubectl("delete", "configmap", "queues", "--wait=false")


def weighed(hands: Hands) -> None:
    """The object of a type of its own, by kubectl."""
    patch = json.dumps({"spec": {"weight": hands.chance.randrange(4)}})
    hands.kubectl("patch", "--type=merge", "-p", patch, QUEUE.rpartition("/")[2])


CHANGES = (
    *(each for each in IN_CLUSTERS if each is not replicas),
    *(relabelled, noted, weighed) * 2,
    deleted,
)
"""Half of them by kubectl. No scheduler runs, so no Deployment would ever be ready: the site has none here."""
