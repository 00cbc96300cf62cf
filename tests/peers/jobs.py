"""What a kubelet does for the operator's Jobs, where none runs: a pod's command as a process, from the pod's
own template, and its last words into the pod's status.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from peers.found import Peers
from pods import Pod

LABEL = "app.kubernetes.io/managed-by=bfinfra-operator"


@dataclass
class Kubelet:
    """Runs each pod of a namespace once. kwok says that it started; the rest is done here."""

    peers: Peers
    namespace: str
    folder: Path
    ran: dict[str, Any] = field(default_factory=dict)

    def step(self) -> None:
        """Run whatever pod has started as far as kwok is concerned, and was not run here yet."""
        for pod in json.loads(
            self.peers.kubectl("get", "pods", "-n", self.namespace, "-l", LABEL, "-o", "json")
        )["items"]:
            name = pod["metadata"]["name"]
            if name not in self.ran and pod.get("status", {}).get("phase") == "Running":
                self.ran[name] = pod
                self._say(pod, self._run(pod))

    def _run(self, pod: dict[str, Any]) -> tuple[int, str]:
        made = Pod(pod, self._get, self.folder / pod["metadata"]["name"])
        made.prepare()
        return made.run()

    def _get(self, kind: str, name: str) -> Any:
        return json.loads(self.peers.kubectl("get", kind, name, "-n", self.namespace, "-o", "json"))

    def _say(self, pod: dict[str, Any], ended: tuple[int, str]) -> None:
        status = dict(pod["status"]["containerStatuses"][0])
        terminated = {
            "finishedAt": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "exitCode": ended[0],
            "reason": "Completed" if ended[0] == 0 else "Error",
            "message": ended[1],
        }
        end = {
            **status,
            "ready": False,
            "started": False,
            "state": {"running": None, "terminated": terminated},
        }
        body = {"status": {"phase": "Succeeded", "containerStatuses": [end]}}
        self.peers.kubectl(
            "patch",
            "pod",
            pod["metadata"]["name"],
            "-n",
            self.namespace,
            "--subresource=status",
            "--type=merge",
            "-p",
            json.dumps(body),
        )
