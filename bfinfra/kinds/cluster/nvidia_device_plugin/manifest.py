"""The DaemonSet of the plug-in as in upstream's manifest, and the parts of it that are compared. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from bfinfra.kinds.cluster.nvidia_device_plugin.spec import NAME as REPOSITORY_NAME
from bfinfra.kinds.cluster.nvidia_device_plugin.spec import Spec

NAME, CONTAINER = "nvidia-device-plugin-daemonset", "nvidia-device-plugin-ctr"
LABELS = {"name": "nvidia-device-plugin-ds"}
SOCKETS = "/var/lib/kubelet/device-plugins"
"""The folder in which the container finds the kubelet's sockets, wherever they are on the node."""
CONFIG, CONFIGS = "bfinfra.io/config", "/config"
"""The annotation with the plug-in's configuration file, and the folder in which the container finds it. So a
new configuration makes a new pod.
"""
CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
RESOURCE = "nvidia.com/gpu"
FLAGS = {
    "fail_on_init_error": "true",
    "mig_strategy": "none",
    "device_list_strategy": "envvar",
    "device_id_strategy": "uuid",
    "pass_device_specs": "false",
}
"""The fields that the plug-in reads from variables of the same names, with their defaults."""
IMAGE = re.compile(rf"(?P<registry>.+)/{re.escape(REPOSITORY_NAME)}[:@](?P<version>[^/]+)")
Manifest = dict[str, Any]
Live = Mapping[str, Any]


def manifest(spec: Spec, namespace: str, pull: str = "") -> Manifest:
    """The DaemonSet, without a mark. `namespace`: its name in the cluster; `pull`: the Secret to pull its
    image with, or "".
    """
    volumes, mounts = _mounted(spec)
    config = _config(spec)
    notes = {"annotations": {CONFIG: config}} if config else {}
    container = {
        "name": CONTAINER,
        "image": spec.image,
        "env": [{"name": name, "value": value} for name, value in _environment(spec).items()],
        "securityContext": _security(spec),
        "volumeMounts": mounts,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    given: Manifest = {
        "runtimeClassName": spec.runtime_class,
        "nodeSelector": spec.node_selector,
        "imagePullSecrets": [{"name": pull}] if pull else [],
    }
    pod = {
        "tolerations": _tolerations(spec),
        "priorityClassName": spec.priority_class,
        "containers": [container],
        "volumes": volumes,
    }
    template = {
        "metadata": {"labels": LABELS, **notes},
        "spec": pod | {name: value for name, value in given.items() if value},
    }
    body = {
        "selector": {"matchLabels": LABELS},
        "updateStrategy": {"type": "RollingUpdate"},
        "template": template,
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": body,
    }


def fields(daemon_set: Live) -> Manifest:
    """The compared parts of a DaemonSet, by the site's field names if they have one. Leaves out what the
    server fills in.
    """
    template = daemon_set["spec"]["template"]
    pod = template.get("spec") or {}
    containers: dict[str, Manifest] = {str(each.get("name")): each for each in pod.get("containers") or ()}
    own = containers.pop(CONTAINER, {})
    image = str(own.get("image") or "")
    named = IMAGE.fullmatch(image)
    found: Manifest = {
        **(named.groupdict() if named else {"image": image}),
        **_variables(own),
        "command": own.get("command"),
        "args": own.get("args"),
        "node_selector": pod.get("nodeSelector"),
        "tolerations": pod.get("tolerations"),
        "runtime_class": pod.get("runtimeClassName"),
        "priority_class": pod.get("priorityClassName"),
        "affinity": pod.get("affinity"),
        "security": own.get("securityContext"),
        "pull_secrets": [each.get("name") for each in pod.get("imagePullSecrets") or ()],
        "mounts": {
            str(each.get("mountPath")): _source(pod, str(each.get("name")))
            for each in own.get("volumeMounts") or ()
        },
        "config": ((template.get("metadata") or {}).get("annotations") or {}).get(CONFIG),
        "other_containers": [
            *containers,
            *(str(each.get("name")) for each in pod.get("initContainers") or ()),
        ],
    }
    return {name: value for name, value in found.items() if value}


def replacing(wanted: Manifest, live: Live) -> Manifest:
    """The merge patch that makes a DaemonSet's pods exactly the desired ones, but keeps annotations of
    others.
    """
    template, before = wanted["spec"]["template"], live["spec"]["template"]
    pod = {**dict.fromkeys(before.get("spec") or {}), **template["spec"]}
    pod["nodeSelector"] = {
        **dict.fromkeys((before.get("spec") or {}).get("nodeSelector") or {}),
        **(template["spec"].get("nodeSelector") or {}),
    } or None
    annotations = {CONFIG: None, **(template["metadata"].get("annotations") or {})}
    metadata = {key: wanted["metadata"][key] for key in ("labels", "annotations")}
    patch = {
        "template": {"metadata": {"labels": LABELS, "annotations": annotations}, "spec": pod},
        "updateStrategy": {"type": "RollingUpdate"},
    }
    return {"metadata": metadata, "spec": patch}


def _environment(spec: Spec) -> dict[str, str]:
    """The plug-in's settings as environment variables, also those that are upstream's defaults today."""
    found: dict[str, str] = {name.upper(): str(getattr(spec, name)).lower() for name in FLAGS}
    config = {"CONFIG_FILE": f"{CONFIGS}/config.yaml"} if spec.time_slicing else {}
    return {
        **found,
        **config,
        **({"NVIDIA_MIG_MONITOR_DEVICES": "all"} if spec.mig_strategy != "none" else {}),
    }


def _mounted(spec: Spec) -> tuple[list[Manifest], list[Manifest]]:
    """Volumes and their mounts: the kubelet's sockets, the configuration and, for CDI, the folder of its
    descriptions.
    """
    item = {"path": "config.yaml", "fieldRef": {"fieldPath": f"metadata.annotations['{CONFIG}']"}}
    sources: dict[str, tuple[str, Manifest]] = {
        "kubelet-device-plugins-dir": (
            SOCKETS,
            {"hostPath": {"path": f"{spec.kubelet_folder.rstrip('/')}/device-plugins", "type": "Directory"}},
        )
    }
    if spec.time_slicing:
        sources["config"] = (CONFIGS, {"downwardAPI": {"items": [item]}})
    if spec.device_list_strategy.startswith("cdi-"):
        sources["cdi-root"] = (
            "/var/run/cdi",
            {"hostPath": {"path": "/var/run/cdi", "type": "DirectoryOrCreate"}},
        )
        sources["driver-root"] = ("/driver-root", {"hostPath": {"path": "/", "type": "Directory"}})
    volumes = [{"name": name, **source} for name, (_, source) in sources.items()]
    return volumes, [
        {"name": name, "mountPath": path, **({"readOnly": True} if name == "driver-root" else {})}
        for name, (path, _) in sources.items()
    ]


def _security(spec: Spec) -> Manifest:
    """As few privileges as upstream's chart gives: MIG devices and volume mounts need SYS_ADMIN, device nodes
    a privileged pod.
    """
    if spec.pass_device_specs:
        return {"privileged": True}
    if spec.mig_strategy != "none" or spec.device_list_strategy == "volume-mounts":
        return {"capabilities": {"add": ["SYS_ADMIN"]}}
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def _variables(container: Live) -> Manifest:
    """The container's variables: those of fields by the field's name, with the default if they
    are missing.
    """
    given = {
        str(each.get("name")): each.get("value", each.get("valueFrom") or "")
        for each in container.get("env") or ()
    }
    known = {name: given.pop(name.upper(), value) for name, value in FLAGS.items()}
    return {**known, "env": given}


def _config(spec: Spec) -> str:
    """The plug-in's configuration file in JSON, which is YAML, too; "" for none."""
    if not spec.time_slicing:
        return ""
    shared = {"resources": [{"name": RESOURCE, "replicas": spec.time_slicing}]}
    return json.dumps({"version": "v1", "sharing": {"timeSlicing": shared}}, sort_keys=True)


def _tolerations(spec: Spec) -> list[Manifest]:
    given: list[Manifest] = [{"key": RESOURCE, "operator": "Exists", "effect": "NoSchedule"}]
    given += [
        {"key": key, "operator": "Exists", "effect": "NoSchedule"}
        for key in CONTROL_PLANE
        if spec.control_plane
    ]
    return given + [
        {name: value for name, value in each.model_dump().items() if value} for each in spec.tolerations
    ]


def _source(pod: Live, volume: str) -> str:
    """Return the source of a mount: a folder of the node by its path, anything else by its kind."""
    found: Manifest = next((each for each in pod.get("volumes") or () if each.get("name") == volume), {})
    return str(
        (found.get("hostPath") or {}).get("path") or next((name for name in found if name != "name"), "")
    )
