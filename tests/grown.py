"""Worlds and sites of any size, and what a survey of them asks of each server."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

import bfinfra
from bfinfra.backends import writes
from bfinfra.sandbox import SMALL_WORLD, Running

CARD = {
    "vendor": 0x10DE,
    "device": 0x1EB8,
    "class": 0x0302,
    "memory": "16GiB",
    "name": "TU104GL [Tesla T4]",
    "id": "0000:3b:00.0",
}
VCENTER = {
    "server": "vc.small.test",
    "username": "admin@small.test",
    "password": {"env": "VCENTER_PASSWORD"},
    "trust": {"ca_file": "ca.pem"},
}
OF_ALL = "RetrievePropertiesEx of all that there is"
SECRET = {"env": "VCENTER_PASSWORD"}
PROPERTIES = {"customer_password": SECRET, "vcenter_username": "admin@small.test", "vcenter_password": SECRET}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "pytorch-mock:latest", "command": ["true"]}],
    },
}


def world(folder: Path, hosts: int) -> Path:
    """The small world with this many hosts, each with a card."""
    given = yaml.safe_load(SMALL_WORLD.read_text())
    given["clusters"]["farm"]["hosts"] = {
        host(n): {"cores": 16, "memory": "128GiB", "pci": [CARD]} for n in range(hosts)
    }
    given["datastores"]["local"]["capacity"] = "400TiB"
    given["clusters"]["compute"]["supervisor"]["guests"] = ["10.1.1.1", "10.1.4.254"]
    return _written(folder / "world.yaml", given)


def host(number: int) -> str:
    return f"gpu{number}.small.test"


def servers(folder: Path, count: int) -> Path:
    """A site of this many GPU hosts, each with a Bitfusion server."""
    return _written(
        folder / f"servers-{count}.yaml",
        {
            "site": "servers",
            "vcenter": VCENTER,
            "gpu_host": {
                host(n): {"passthrough": [{"vendor": "0x10de", "device": "0x1eb8"}], "reboot": "if_needed"}
                for n in range(count)
            },
            "bitfusion_server": {
                f"bf-{n}": {
                    "ova": {"file": "server.ova"},
                    "host": host(n),
                    "gpus": 1,
                    "properties": {**PROPERTIES, "hostname": f"bf-{n}.small.test"},
                    "networks": {
                        "Network 1": {
                            "network": "VM Network",
                            "address": f"10.2.0.{n + 2}/24",
                            "gateway": "10.2.0.1",
                        }
                    },
                }
                for n in range(count)
            },
        },
    )


def in_a_cluster(folder: Path, count: int) -> Path:
    """A site of this many namespaces in one cluster, each with a token, an account and a workload."""
    for n in range(count):
        _written(folder / f"pod-{n}.yaml", {**POD, "metadata": {"name": f"pod-{n}"}})
    return _written(
        folder / f"cluster-{count}.yaml",
        {
            "site": "cluster",
            "kubernetes_cluster": {"other": {"kubeconfig": {"file": "other.kubeconfig"}}},
            "bitfusion_token": {"token": {"source": {"tar": "token.tar"}}},
            "namespace": {f"ns-{n}": {"cluster": "other"} for n in range(count)},
            "token_secret": {
                f"token-{n}": {"cluster": "other", "token": "token", "namespaces": [f"ns-{n}"]}
                for n in range(count)
            },
            "registry_credential": {
                f"pull-{n}": {
                    "cluster": "other",
                    "namespaces": [f"ns-{n}"],
                    "server": "10.1.0.3",
                    "username": "admin",
                    "password": SECRET,
                }
                for n in range(count)
            },
            "workload": {
                f"work-{n}": {"cluster": "other", "namespace": f"ns-{n}", "manifest": f"pod-{n}.yaml"}
                for n in range(count)
            },
        },
    )


def supervisor_namespaces(folder: Path, count: int) -> Path:
    """A site of this many supervisor namespaces."""
    each = {"cluster": "compute", "storage": {"gold": "1GiB"}, "vm_classes": ["best-effort-small"]}
    return _written(
        folder / f"spaces-{count}.yaml",
        {
            "site": "spaces",
            "vcenter": VCENTER,
            "supervisor_namespace": {f"space-{n}": each for n in range(count)},
        },
    )


def vks_clusters(folder: Path, count: int) -> Path:
    """A site of this many VKS clusters with an autoscaled pool each, twenty in a namespace."""
    space = {"cluster": "compute", "storage": {"gold": "1TiB"}, "vm_classes": ["best-effort-small"]}
    each = {
        "cluster_class": "builtin-generic-v3.6.0",
        "version": "v1.34",
        "vm_class": "best-effort-small",
        "storage_class": "gold",
        "control_plane": {"count": 1},
        "workers": {"cpu": {"count": 1}, "more": {"autoscale": {"min": 0, "max": 2}}},
    }
    return _written(
        folder / f"clusters-{count}.yaml",
        {
            "site": "clusters",
            "vcenter": VCENTER,
            "supervisor_namespace": {f"team-{n}": space for n in range((count + 19) // 20)},
            "vks_cluster": {f"ml-{n}": {**each, "namespace": f"team-{n // 20}"} for n in range(count)},
        },
    )


def reads(path: Path, sandbox: Running) -> tuple[bfinfra.Plan, dict[str, Counter[str]]]:
    """The plan of a site, and what it asked of each server: {host: {what: how often}}."""
    asked: dict[str, Counter[str]] = {}
    site = bfinfra.load(path, sandbox=sandbox)
    return bfinfra.plan(
        site, context=bfinfra.RunContext(sandbox=sandbox, middleware=(counting(asked),))
    ), asked


def counting(asked: dict[str, Counter[str]]) -> Callable[[Any], Any]:
    """A filling that notes what is asked of each server."""

    class Counting:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def handle_request(self, request: Any) -> Any:
            name = writes.name(request)
            everything = name == "RetrievePropertiesEx" and b"ContainerView" in request.content
            asked.setdefault(request.url.host, Counter())[OF_ALL if everything else name] += 1
            return self._inner.handle_request(request)

        def close(self) -> None:
            self._inner.close()

    return Counting


def _written(path: Path, given: Mapping[str, Any]) -> Path:
    path.write_text(json.dumps(given))  # JSON is YAML
    return path
