"""The manifests to send, with namespace, GPUs, token and pull secret filled in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from bfinfra.backends.kubernetes.marks import SITE, marked
from bfinfra.kinds.cluster.base.rendered.objects import RENDERED
from bfinfra.kinds.cluster.workload import flexdirect, plugin, token
from bfinfra.kinds.cluster.workload.manifests import Manifest, identity, pod_spec
from bfinfra.kinds.cluster.workload.plugin import Installed
from bfinfra.kinds.cluster.workload.spec import Spec
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass


@dataclass(frozen=True)
class Rendered:
    """One object to send. `digest`: of everything that bfinfra decides, without the mark; `earlier`: the
    digest of an earlier release's rendering.
    """

    name: str
    manifest: Mapping[str, Any]
    digest: str
    earlier: str = ""

    def matches(self, digest: str) -> bool:
        """Return whether an object with this digest is up to date."""
        return digest in (self.digest, self.earlier or self.digest)

    def marked_with(self, mark: Mark) -> dict[str, Any]:
        """The manifest with the mark and the digest."""
        manifest = marked(self.manifest, mark)
        manifest["metadata"]["annotations"][RENDERED] = self.digest
        return manifest


@dataclass(frozen=True)
class Values:
    """The values for every manifest. `token`: Secret → its keys, to mount; `pull`: image pull Secret;
    `plugin`: the device plug-in.
    """

    namespace: str
    site: str
    token: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pull: str = ""
    plugin: Installed | None = None


def render(documents: Sequence[Manifest], spec: Spec, values: Values) -> tuple[Rendered, ...]:
    """The objects to send, in the order of the documents. Raises Refusal."""
    if spec.gpus and not any(pod_spec(document) for document in documents):
        raise Refusal(
            "there is nothing to give GPUs to",
            field="gpus",
            why="the manifest holds no Pod and no Job",
            next="remove gpus",
        )
    return tuple(_one(document, spec, values) for document in documents)


def _one(document: Manifest, spec: Spec, values: Values) -> Rendered:
    manifest = json.loads(
        json.dumps(document, default=str)
    )  # a copy without aliases; dates become text, as JSON has none
    own = manifest["metadata"].get("namespace")
    if own not in (None, values.namespace):
        raise Refusal(
            f"{identity(manifest)} names the namespace {own}",
            field="manifest",
            why=f"the workload's is {values.namespace}",
            next="remove it from the manifest, or make them agree",
        )
    manifest["metadata"]["namespace"] = values.namespace
    if pod := pod_spec(manifest):
        container = pod["containers"][0]
        if spec.gpus and spec.by == "flexdirect":
            flexdirect.attach(pod, container, spec, identity(manifest))
        elif spec.gpus and values.plugin is not None:
            plugin.attach(manifest, spec, values.plugin, identity(manifest))
        elif spec.gpus:
            _gpus(container, spec, identity(manifest))
        if values.pull:
            others = [s for s in pod.get("imagePullSecrets") or [] if s != {"name": values.pull}]
            pod["imagePullSecrets"] = [*others, {"name": values.pull}]
    if manifest["kind"] == "Job":
        metadata = manifest["spec"]["template"].setdefault("metadata", {})
        metadata["labels"] = {**(metadata.get("labels") or {}), SITE: values.site}
    earlier = ""
    if pod and values.token:
        before = json.loads(json.dumps(manifest))
        token.attach_as_before(*_first(before), values.token)
        earlier = _digest(before)
        pod, container = _first(manifest)
        home = token.home_of(pod, container, spec.home, identity(manifest))
        token.attach(pod, container, values.token, home, identity(manifest))
    return Rendered(identity(manifest), manifest, _digest(manifest), earlier)


def _first(manifest: Manifest) -> tuple[Manifest, Manifest]:
    """The pod's spec and its first container."""
    pod = pod_spec(manifest)
    assert pod is not None
    return pod, pod["containers"][0]


def _digest(manifest: Manifest) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _gpus(container: Manifest, spec: Spec, where: str) -> None:
    share = f"{spec.fraction:g}" if spec.fraction is not None else ""
    if spec.by == "env":
        values = {"NUM_GPUS": str(spec.gpus)} | ({"PARTIAL_GPU": share} if share else {})
        kept = [e for e in container.get("env") or [] if e.get("name") not in values]
        container["env"] = [*kept, *({"name": name, "value": value} for name, value in values.items())]
        return
    command = container.get("command")
    if not command:
        raise Refusal(
            f"{where} has no command",
            field="by",
            why="`bitfusion run` goes before a command, and bfinfra doesn't know the image's own",
            next="write command: in its first container",
        )
    if command[0] == "bitfusion":
        raise Refusal(
            f"{where} starts bitfusion already",
            field="by",
            next="remove it from the manifest, or remove gpus and by from the site",
        )
    container["command"] = [
        "bitfusion",
        "run",
        "-n",
        str(spec.gpus),
        *(["-p", share] if share else []),
        "--",
        *command,
    ]
