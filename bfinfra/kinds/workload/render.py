"""What is sent: the manifests with namespace, GPUs, token and pull secret filled in."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from bfinfra.backends.kubernetes.marks import SITE, marked
from bfinfra.kinds.workload import flexdirect
from bfinfra.kinds.workload.manifests import Manifest, identity, pod_spec
from bfinfra.kinds.workload.spec import Spec
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass

RENDERED = "bfinfra.io/rendered"
VOLUME = "bitfusion-client"
MOUNT = "/etc/bitfusion"
PATHS = {"ca.crt": "tls/ca.crt", "client.yaml": "client.yaml", "servers.conf": "servers.conf"}
MODE = 0o640


@dataclass(frozen=True)
class Rendered:
    """One object to send. `digest`: of all that bfinfra decides, the mark aside."""

    name: str
    manifest: Mapping[str, Any]
    digest: str

    def sealed(self, mark: Mark) -> dict[str, Any]:
        """The manifest with the mark and the digest on it."""
        manifest = marked(self.manifest, mark)
        manifest["metadata"]["annotations"][RENDERED] = self.digest
        return manifest


@dataclass(frozen=True)
class Filling:
    """What goes into every manifest. `token`: Secret → its keys, to mount; `pull`: image pull Secret."""

    namespace: str
    site: str
    token: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pull: str = ""


def render(documents: Sequence[Manifest], spec: Spec, filling: Filling) -> tuple[Rendered, ...]:
    """The objects to send, in the order of the documents. Refusal."""
    if spec.gpus and not any(pod_spec(document) for document in documents):
        raise Refusal("there is nothing to give GPUs to", field="gpus", why="the manifest holds no Pod and no Job", next="take gpus out")
    return tuple(_one(document, spec, filling) for document in documents)


def _one(document: Manifest, spec: Spec, filling: Filling) -> Rendered:
    manifest = json.loads(json.dumps(document, default=str))  # a copy without aliases; dates become text, as JSON has none
    own = manifest["metadata"].get("namespace")
    if own not in (None, filling.namespace):
        raise Refusal(f"{identity(manifest)} names the namespace {own}", field="manifest", why=f"the workload's is {filling.namespace}",
                      next="take it out of the manifest, or make them agree")
    manifest["metadata"]["namespace"] = filling.namespace
    if pod := pod_spec(manifest):
        container = pod["containers"][0]
        if spec.gpus and spec.by == "flexdirect":
            flexdirect.attach(pod, container, spec, identity(manifest))
        elif spec.gpus:
            _gpus(container, spec, identity(manifest))
        if filling.token:
            _mount(pod, container, filling.token, identity(manifest))
        if filling.pull:
            others = [s for s in pod.get("imagePullSecrets") or [] if s != {"name": filling.pull}]
            pod["imagePullSecrets"] = [*others, {"name": filling.pull}]
    if manifest["kind"] == "Job":
        metadata = manifest["spec"]["template"].setdefault("metadata", {})
        metadata["labels"] = {**(metadata.get("labels") or {}), SITE: filling.site}
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    return Rendered(identity(manifest), manifest, hashlib.sha256(text.encode()).hexdigest())


def _gpus(container: Manifest, spec: Spec, where: str) -> None:
    share = f"{spec.fraction:g}" if spec.fraction is not None else ""
    if spec.by == "env":
        values = {"NUM_GPUS": str(spec.gpus)} | ({"PARTIAL_GPU": share} if share else {})
        kept = [e for e in container.get("env") or [] if e.get("name") not in values]
        container["env"] = [*kept, *({"name": name, "value": value} for name, value in values.items())]
        return
    command = container.get("command")
    if not command:
        raise Refusal(f"{where} has no command", field="by", why="`bitfusion run` goes before a command, and the image's own isn't known here",
                      next="write command: in its first container")
    if command[0] == "bitfusion":
        raise Refusal(f"{where} starts bitfusion already", field="by", next="take it out of the manifest, or gpus and by out of the site")
    container["command"] = ["bitfusion", "run", "-n", str(spec.gpus), *(["-p", share] if share else []), "--", *command]


def _mount(pod: Manifest, container: Manifest, token: Mapping[str, Sequence[str]], where: str) -> None:
    mounts = container.get("volumeMounts") or []
    if any(str(m.get("mountPath", "")).rstrip("/").startswith(MOUNT) for m in mounts) or any(v.get("name") == VOLUME for v in pod.get("volumes") or []):
        raise Refusal(f"{where} mounts something at {MOUNT} already", field="token_secret", next="take that out, or token_secret")
    sources = [{"secret": {"name": name, "items": [{"key": key, "path": PATHS[key]} for key in keys]}} for name, keys in token.items()]
    pod["volumes"] = [*copy.copy(pod.get("volumes") or []), {"name": VOLUME, "projected": {"defaultMode": MODE, "sources": sources}}]
    container["volumeMounts"] = [*mounts, {"name": VOLUME, "mountPath": MOUNT, "readOnly": True}]
