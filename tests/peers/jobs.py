"""What a kubelet does for the operator's Jobs, where none runs: a pod's command as a process, from the pod's
own template, and its last words into the pod's status.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from peers.found import Peers

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
        container = pod["spec"]["containers"][0]
        here = self.folder / pod["metadata"]["name"]
        mounts = {each["mountPath"]: here / each["name"] for each in container["volumeMounts"]} | {
            "/dev": here / "dev"
        }
        for place in mounts.values():
            place.mkdir(parents=True)
        self._fill(pod, here)
        args = [self._there(word, mounts) for word in container["args"]]
        env = {each["name"]: self._there(self._value(each), mounts) for each in container.get("env", ())}
        done = subprocess.run(
            [sys.executable, "-m", "bfinfra", *args],
            env={"PATH": os.environ["PATH"], **env},
            cwd=here,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        result = Path(self._there(container["terminationMessagePath"], mounts))
        return done.returncode, (
            result.read_text() if result.exists() else (done.stdout + done.stderr)[-2048:]
        )[:4096]

    def _fill(self, pod: dict[str, Any], here: Path) -> None:
        """The projected volume."""
        for volume in pod["spec"]["volumes"]:
            for source in volume.get("projected", {}).get("sources", ()):
                for path, text in self._files(pod, source).items():
                    file = here / volume["name"] / path
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(text)

    def _files(self, pod: dict[str, Any], source: dict[str, Any]) -> dict[str, bytes]:
        if "downwardAPI" in source:
            return {
                each["path"]: pod["metadata"]["annotations"][
                    each["fieldRef"]["fieldPath"].split("'")[1]
                ].encode()
                for each in source["downwardAPI"]["items"]
            }
        if "secret" in source:
            return {
                each["path"]: base64.b64decode(
                    self._get("secret", source["secret"]["name"])["data"][each["key"]]
                )
                for each in source["secret"]["items"]
            }
        return {
            each["path"]: self._get("configmap", source["configMap"]["name"])["data"][each["key"]].encode()
            for each in source["configMap"]["items"]
        }

    def _value(self, each: dict[str, Any]) -> str:
        if "value" in each:
            return str(each["value"])
        ref = each["valueFrom"]["secretKeyRef"]
        return base64.b64decode(self._get("secret", ref["name"])["data"][ref["key"]]).decode()

    def _get(self, kind: str, name: str) -> Any:
        return json.loads(self.peers.kubectl("get", kind, name, "-n", self.namespace, "-o", "json"))

    def _there(self, text: str, mounts: dict[str, Path]) -> str:
        for path, place in mounts.items():
            if text == path or text.startswith(f"{path}/"):
                return f"{place}{text.removeprefix(path)}"
        return text

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
