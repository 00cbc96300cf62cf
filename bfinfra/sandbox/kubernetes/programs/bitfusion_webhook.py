"""The webhook of the Bitfusion device plug-in, as its sources have it
(vmware/bitfusion-with-kubernetes-integration, main.go, webhook.go, util.go).

It reads its configuration when it starts: what a container answers follows what its volumes held then, and
the release that its image is.
"""

from __future__ import annotations

import base64
import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from bfinfra.sandbox.kubernetes.objects import Object, dig
from bfinfra.sandbox.kubernetes.programs import Container, Listening
from bfinfra.sandbox.kubernetes.programs.bitfusion_pods import Denied, Settings, patched

IMAGE = re.compile(r"(.*/)?bitfusion-webhook(:.*|@.*)?")
RELEASE = re.compile(r":v?(0\.[1-4])(?!\d)[^/]*$")
SYSTEM = ("kube-system", "kube-public")
SINGLE = ("bitfusion-secret",)
THREE = (
    "bitfusion-client-secret-ca.crt",
    "bitfusion-client-secret-client.yml",
    "bitfusion-client-secret-servers.conf",
)
SWITCH, STATUS = "auto-management/bitfusion", "auto-management/status"
ON, ALL = ("y", "yes", "true", "on"), ("y", "yes", "true", "on", "all", "injection")
PORT = 8443


@dataclass(frozen=True)
class Read:
    """The configuration that main.go has read. `clients`: by system and version; None where the release has
    no choice of them.
    """

    release: str
    sidecar: Object = field(default_factory=dict)
    clients: Mapping[tuple[str, str], Mapping[str, str]] | None = None
    total_memory: int = 0


class BitfusionWebhook:
    """/mutate and /validate."""

    def runs(self, image: str) -> bool:
        """By the name that upstream gives the image."""
        return bool(IMAGE.fullmatch(image))

    def listens(self, container: Container) -> Listening | None:
        """With the certificate that it read when it started; without one it does not serve."""
        flags = _flags(container)
        read = [container.files.get(flags.get(name, ""), b"") for name in ("tlsCertFile", "tlsKeyFile")]
        return Listening(PORT, *read) if all(read) else None

    def review(self, container: Container, path: str, review: Object) -> Object | None:
        """/mutate leaves apiVersion and kind out, /validate writes v1 into every answer."""
        request = review["request"]
        if path == "/mutate":
            return {"response": {"uid": request["uid"], **_mutated(container, request)}}
        if path != "/validate":
            return None
        fine = _notes(request["object"]).get(STATUS, "").lower() != "injected" or _advertised(
            container, request["object"]
        )
        response = {
            "uid": request["uid"],
            "allowed": fine,
            **({} if fine else {"status": {"message": "Resource validation failed"}}),
        }
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def _flags(container: Container) -> dict[str, str]:
    return dict(each.lstrip("-").split("=", 1) for each in container.spec.get("args") or [] if "=" in each)


def _notes(pod: Object) -> Mapping[str, str]:
    return pod["metadata"].get("annotations") or {}


@functools.lru_cache(maxsize=8)
def _loaded(text: bytes) -> Object:
    """What is in a file of its configuration, which it reads for each pod."""
    return yaml.safe_load(text) or {}


def _read(container: Container) -> Read:
    """The release is that of the image's tag; an image of another tag is taken for the newest that has the
    files it was given.
    """
    flags = _flags(container)
    sidecar, clients = (
        _loaded(container.files.get(flags.get(name, ""), b""))
        for name in ("sidecarCfgFile", "bitfusionClientConfig")
    )
    tag = RELEASE.search(container.spec["image"].partition("@")[0])
    single = any(dig(each, "secret", "secretName") in SINGLE for each in sidecar.get("volumes") or [])
    release = tag[1] if tag else "0.1" if "bitfusionClientConfig" not in flags else "0.2" if single else "0.4"
    env = {each["name"]: str(each.get("value", "")) for each in container.spec.get("env") or []}
    total = env.get("TOTAL_GPU_MEMORY", "")
    listed = {
        (each["OSVersion"], str(each["BitfusionVersion"])): each
        for each in clients.get("BitfusionClients") or []
    }
    return Read(release, sidecar, None if release == "0.1" else listed, int(total) if total.isdigit() else 0)


def _mutated(container: Container, request: Object) -> Object:
    pod, read = request["object"], _read(container)
    notes, switch = _notes(pod), _notes(pod).get(SWITCH, "").lower()
    space = pod["metadata"].get("namespace") or request["namespace"]
    if (
        space in SYSTEM
        or notes.get(STATUS, "").lower() == "injected"
        or switch not in (ON if read.release == "0.1" else ALL)
    ):
        return {"allowed": True}
    client = None
    if read.clients is not None:
        wanted = notes.get("bitfusion-client/os", ""), notes.get("bitfusion-client/version", "")
        if not all(wanted):
            return {"allowed": True}
        if (client := read.clients.get(wanted)) is None:
            return _denied("Could not find Bitfusion client info")
    try:
        filters = notes.get("bitfusion-client/filter") if read.release in ("0.3", "0.4") else None
        patch = patched(
            pod,
            read.sidecar,
            Settings(read.release, client, read.total_memory, filters, switch == "injection"),
        )
        _copy(container, request["namespace"], SINGLE if read.release in ("0.1", "0.2") else THREE)
    except Denied as why:
        return _denied(str(why))
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(json.dumps(patch).encode()).decode(),
    }


def _denied(why: str) -> Object:
    return {"allowed": False, "status": {"message": why}}


def _copy(container: Container, namespace: str, names: tuple[str, ...]) -> None:
    """The token's Secrets, where one of them is not there; what is there is never refreshed. Raises
    Denied.
    """
    if all(
        container.ask("GET", f"/api/v1/namespaces/{namespace}/secrets/{name}")[0] != 404 for name in names
    ):
        return
    for name in names:
        status, source = container.ask("GET", f"/api/v1/namespaces/kube-system/secrets/{name}")
        if status != 200:
            raise Denied(str(source.get("message", "")))
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": namespace},
            "type": source.get("type", "Opaque"),
            "data": source.get("data") or {},
        }
        container.ask("POST", f"/api/v1/namespaces/{namespace}/secrets", body)  # a failure is only logged


def _advertised(container: Container, pod: Object) -> bool:
    """Return whether some node has each of the resources that the pod requests."""
    status, nodes = container.ask("GET", "/api/v1/nodes")
    there = {
        name
        for each in (nodes["items"] if status == 200 else ())
        for name, number in dig(each, "status", "allocatable", default={}).items()
        if str(number) != "0"
    }
    return {
        name for each in pod["spec"]["containers"] for name in dig(each, "resources", "requests", default={})
    } <= there
