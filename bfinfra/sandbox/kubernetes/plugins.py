"""The Bitfusion device plug-in's program on a node, after its main.go: it opens a socket in the kubelet's
folder, and ends at once where that is not there.
"""

from __future__ import annotations

from bfinfra.sandbox.kubernetes.objects import Object, dig

KUBELET_FOLDER = "/var/lib/kubelet"
SOCKETS = "/var/lib/kubelet/device-plugins"
"""The path at which the program looks for the kubelet's socket, inside of its container."""
CODE = 255


def advertised(container: Object) -> dict[str, str]:
    """The resource and number that a container is configured to advertise; empty for one that is no device
    plug-in.
    """
    env = {each["name"]: str(each.get("value", "")) for each in container.get("env") or []}
    name, number = env.get("RESOURCE_NAME"), env.get("RESOURCE_NUMS", "")
    return (
        {name: number}
        if dig(container, "securityContext", "privileged") and name and number.isdecimal()
        else {}
    )


def registers(pod: Object, container: Object, folder: str) -> bool:
    """Return whether the container has the node's own folder for kubelet plug-ins. `folder`: the path of that
    folder on the node.
    """
    return _on_node(pod, container) == f"{folder.rstrip('/')}/device-plugins"


def last_words(when: str) -> list[str]:
    """Return the output of glog.Fatal: the reason, then every goroutine."""
    clock = when[11:19]
    return [
        (
            f"I{when[5:7]}{when[8:10]} {clock}.000000       1 main.go:99] Device Plugin start server at: "
            f"{SOCKETS}/bitfusion.io"
        ),
        (
            f"F{when[5:7]}{when[8:10]} {clock}.000000       1 main.go:102] listen unix {SOCKETS}"
            "/bitfusion.io: bind: no such file or directory"
        ),
        "goroutine 19 [running]:",
        "github.com/golang/glog.stacks(0xc00013a000, 0xc00017e000, 0x9c, 0xeb)",
        "        /go/pkg/mod/github.com/golang/glog/glog.go:769 +0xb9",
    ]


def _on_node(pod: Object, container: Object) -> str:
    """The folder of the node that the container sees as SOCKETS."""
    paths = {
        each["name"]: dig(each, "hostPath", "path", default="").rstrip("/")
        for each in dig(pod, "spec", "volumes", default=[])
    }
    mounts = {
        each["mountPath"].rstrip("/"): paths.get(each["name"], "")
        + ("/" + each["subPath"] if each.get("subPath") else "")
        for each in container.get("volumeMounts") or []
        if paths.get(each["name"])
    }
    above = [path for path in mounts if path == SOCKETS or SOCKETS.startswith(f"{path}/")]
    nearest = max(above, key=len, default="")
    return mounts[nearest] + SOCKETS.removeprefix(nearest) if nearest else ""
