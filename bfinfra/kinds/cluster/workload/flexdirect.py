"""FlexDirect in front of a container's command, and its configuration from the node. (FlexDirect guide, steps
6 and 8.)
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
    """`flexdirect run` goes before the command, or before the args where the image has its own; the node's
    folder is mounted unless it is already.
    """
    field = "command" if container.get("command") else "args"
    words = container.get(field)
    if not words:
        raise Refusal(
            f"{where} has neither command nor args",
            field="by",
            why="`flexdirect run` goes before what a container starts",
            next="write args: in its first container",
        )
    if "flexdirect run" in " ".join(map(str, words)):
        raise Refusal(
            f"{where} starts flexdirect already",
            field="by",
            next="take it out of the manifest, or gpus and by out of the site",
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
            next="mount it there, or call it something else",
        )
    pod["volumes"] = [
        *copy.copy(pod.get("volumes") or []),
        {"name": VOLUME, "hostPath": {"path": MOUNT, "type": "Directory"}},
    ]
    container["volumeMounts"] = [*mounts, {"name": VOLUME, "mountPath": MOUNT}]
