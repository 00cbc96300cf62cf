"""Puts FlexDirect in front of a container's command, with its configuration from the node. (FlexDirect guide,
steps 6 and 8.)
"""

from __future__ import annotations

import copy

from bfinfra.kinds.cluster.workload.manifests import Manifest
from bfinfra.kinds.cluster.workload.spec import Spec
from bfinfra.model.errors import Refusal

MOUNT = "/etc/bitfusionio"
VOLUME = "bitfusionio"
MB = 1_000_000


def attach(pod: Manifest, container: Manifest, spec: Spec, where: str) -> None:
    """Puts `flexdirect run` before the command, or before the args if the image has its own command, and
    mounts the node's folder if it isn't mounted.
    """
    field = "command" if container.get("command") else "args"
    words = container.get(field)
    if not words:
        raise Refusal(
            f"{where} has neither command nor args",
            field="by",
            why="`flexdirect run` goes before a command or args",
            next="write args: in its first container",
        )
    if "flexdirect run" in " ".join(map(str, words)):
        raise Refusal(
            f"{where} starts flexdirect already",
            field="by",
            next="remove it from the manifest, or remove gpus and by from the site",
        )
    share = ["-p", f"{spec.fraction:g}"] if spec.fraction is not None else []
    memory = ["-m", str(-(-spec.gpu_memory // MB))] if spec.gpu_memory is not None else []
    container[field] = ["flexdirect", "run", "-n", str(spec.gpus), *share, *memory, *words]
    mounts = container.get("volumeMounts") or []
    if any(str(mount.get("mountPath", "")).rstrip("/") == MOUNT for mount in mounts):
        return
    if any(volume.get("name") == VOLUME for volume in pod.get("volumes") or []):
        raise Refusal(
            f"{where} has a volume {VOLUME} that is not mounted at {MOUNT}",
            field="by",
            next="mount it there, or give it another name",
        )
    pod["volumes"] = [
        *copy.copy(pod.get("volumes") or []),
        {"name": VOLUME, "hostPath": {"path": MOUNT, "type": "Directory"}},
    ]
    container["volumeMounts"] = [*mounts, {"name": VOLUME, "mountPath": MOUNT}]
