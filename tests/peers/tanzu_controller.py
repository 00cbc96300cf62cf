"""What the supervisor's controller does to a cluster, small: creating → running → updating → running →
deleting; with the official client.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from kubernetes import client, config, watch

GROUP, VERSION, PLURAL = "run.tanzu.vmware.com", "v1alpha1", "tanzukubernetesclusters"
FINALIZER = "test.bfinfra.io/nodes"


class Controller:
    """Watches one namespace in a thread of its own until it is closed; `phases` are those that it set, in
    their order.
    """

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self._objects = client.CustomObjectsApi(config.new_client_from_config(str(kubeconfig)))
        self._namespace = namespace
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tanzu controller")
        self._runs: dict[str, Any] = {}
        self.phases: list[str] = []
        self.failing = ""
        """Why the next cluster fails; empty: it doesn't."""
        self._thread.start()

    def close(self) -> None:
        self._over.set()
        self._thread.join()
        self._objects.api_client.close()

    def _run(self) -> None:
        while not self._over.is_set():
            for event in watch.Watch().stream(
                self._objects.list_namespaced_custom_object,
                GROUP,
                VERSION,
                self._namespace,
                PLURAL,
                timeout_seconds=1,
            ):
                if event["type"] != "DELETED":
                    self._move(event["object"])

    def _move(self, cluster: dict[str, Any]) -> None:
        """One move; it makes the event that leads to the next one."""
        meta, phase = cluster["metadata"], (cluster.get("status") or {}).get("phase")
        if meta.get("deletionTimestamp"):
            if phase == "deleting":
                self._write(meta, {"metadata": {"finalizers": None}})
            else:
                self._phase(meta, {"phase": "deleting"})
        elif FINALIZER not in meta.get("finalizers", []):
            self._write(meta, {"metadata": {"finalizers": [FINALIZER]}})
        elif phase is None:
            self._phase(meta, {"phase": "creating"})
        elif self._runs.get(meta["uid"]) != cluster["spec"]:
            if phase == "running":
                self._phase(meta, {"phase": "updating"})
            else:
                self._runs[meta["uid"]] = cluster["spec"]
                self._settle(cluster)

    def _settle(self, cluster: dict[str, Any]) -> None:
        if self.failing:
            condition = {"type": "Ready", "status": "False", "severity": "Error", "message": self.failing}
            self._phase(cluster["metadata"], {"phase": "failed", "conditions": [condition]})
            return
        topology = cluster["spec"]["topology"]
        nodes = [
            f"{part}-{n}" for part in ("controlPlane", "workers") for n in range(topology[part]["count"])
        ]
        before = (cluster.get("status") or {}).get("nodeStatus") or {}
        self._phase(
            cluster["metadata"],
            {
                "phase": "running",
                "nodeStatus": dict.fromkeys(before, None) | dict.fromkeys(nodes, "ready"),
                "vmStatus": dict.fromkeys(before, None) | dict.fromkeys(nodes, "ready"),
                "clusterApiStatus": {
                    "phase": "Provisioned",
                    "apiEndpoints": [{"host": "192.0.2.10", "port": 6443}],
                },
            },
        )

    def _phase(self, meta: dict[str, Any], status: dict[str, Any]) -> None:
        self.phases.append(status["phase"])
        self._patch(self._objects.patch_namespaced_custom_object_status, meta, {"status": status})

    def _write(self, meta: dict[str, Any], body: dict[str, Any]) -> None:
        self._patch(self._objects.patch_namespaced_custom_object, meta, body)

    def _patch(self, call: Any, meta: dict[str, Any], body: dict[str, Any]) -> None:
        try:
            call(
                GROUP,
                VERSION,
                self._namespace,
                PLURAL,
                meta["name"],
                body,
                field_manager="supervisor",
                _content_type="application/merge-patch+json",
            )
        except client.ApiException as error:
            if error.status != 404:
                raise
