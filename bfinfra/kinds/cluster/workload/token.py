"""Puts a token's files where the Bitfusion client looks for them, in a pod whose image has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from posixpath import normpath

from bfinfra.kinds.cluster.workload.manifests import Manifest
from bfinfra.model.errors import Refusal

CLIENT, SECRET = "bitfusion-client", "bitfusion-token"
SHARED = {"ca.crt": "/etc/bitfusion/tls/ca.crt", "servers.conf": "/etc/bitfusion/servers.conf"}
FOLDERS = ("/etc/bitfusion", "/etc/bitfusion/tls")
COPY = ("/bitfusion-token", "/bitfusion-client")
"""The folder of the Secret in the init container, and the folder that it copies to."""
SHRINKABLE = ("cpu", "memory")


def home_of(pod: Manifest, container: Manifest, home: str | None, where: str) -> str:
    """The home folder of the container's user: from the site, else from HOME, else root's. Raises Refusal if
    it isn't known.
    """
    named = next(
        (each.get("value") for each in container.get("env") or [] if each.get("name") == "HOME"), None
    )
    if home or named:
        return str(home or named).rstrip("/") or "/"
    if _other_user(pod, container):
        raise Refusal(
            f"{where} doesn't run as root",
            field="token_secret",
            why=(
                "the client reads .bitfusion/client.yaml in its user's home, and the manifest doesn't say "
                "where that is"
            ),
            next="write home: with that folder",
        )
    return "/root"


def attach(
    pod: Manifest, container: Manifest, token: Mapping[str, Sequence[str]], home: str, where: str
) -> None:
    """Mounts a token. `token`: Secret → its keys.

    The client renames client.yaml and writes a new one beside it, and a Secret's volume is read-only: an init
    container copies it into memory. The other two files are mounted one by one, so that the image's own files
    beside them stay.
    """
    folder = f"{home.rstrip('/')}/.bitfusion"
    _check(pod, container, (folder, *SHARED.values()), where)
    sources = [
        {"secret": {"name": name, "items": [{"key": key, "path": key} for key in keys]}}
        for name, keys in token.items()
    ]
    mode = 0o444 if _other_user(pod, container) else 0o400  # a Secret's files belong to root
    pod["volumes"] = [
        *(pod.get("volumes") or []),
        {"name": SECRET, "projected": {"defaultMode": mode, "sources": sources}},
        {"name": CLIENT, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
    ]
    pod["initContainers"] = [_copying(container), *(pod.get("initContainers") or [])]
    container["volumeMounts"] = [
        *(container.get("volumeMounts") or []),
        {"name": CLIENT, "mountPath": folder},
        *(
            {"name": SECRET, "mountPath": path, "subPath": key, "readOnly": True}
            for key, path in SHARED.items()
        ),
    ]


def _copying(container: Manifest) -> Manifest:
    """An init container with the container's own image: it is pulled anyway, and has a shell."""
    source, target = COPY
    copying: Manifest = {
        "name": SECRET,
        "image": container["image"],
        "command": ["/bin/sh", "-c", f"cp {source}/client.yaml {target}/ && chmod 600 {target}/client.yaml"],
        "volumeMounts": [
            {"name": SECRET, "mountPath": source, "readOnly": True},
            {"name": CLIENT, "mountPath": target},
        ],
    }
    for name in ("imagePullPolicy", "securityContext"):
        if container.get(name):
            copying[name] = container[name]
    if resources := _resources(container):
        copying["resources"] = resources
    return copying


def _resources(container: Manifest) -> Manifest:
    """CPU and memory as the container has them, for namespaces whose quota requires them; no GPUs."""
    found = {
        each: {name: value for name, value in (given or {}).items() if name in SHRINKABLE}
        for each, given in (container.get("resources") or {}).items()
        if each in ("limits", "requests")
    }
    return {each: values for each, values in found.items() if values}


def _other_user(pod: Manifest, container: Manifest) -> bool:
    security = {**(pod.get("securityContext") or {}), **(container.get("securityContext") or {})}
    return bool(security.get("runAsUser")) or bool(security.get("runAsNonRoot"))


def _check(pod: Manifest, container: Manifest, places: Sequence[str], where: str) -> None:
    taken = {normpath(str(each.get("mountPath", "/"))) for each in container.get("volumeMounts") or []}
    for path in sorted(taken):
        if path in FOLDERS or any(path == place or path.startswith(f"{place}/") for place in places):
            raise Refusal(
                f"{where} mounts something at {path} already",
                field="token_secret",
                why=f"the token's files go to {', '.join(places)}",
                next="remove that mount, or remove token_secret",
            )
    taken = {each.get("name") for part in ("volumes", "initContainers") for each in pod.get(part) or []}
    if double := {CLIENT, SECRET} & taken:
        raise Refusal(
            f"{where} has a volume or an init container {min(double)} already",
            field="token_secret",
            next="rename it, or remove token_secret",
        )


def attach_as_before(pod: Manifest, container: Manifest, token: Mapping[str, Sequence[str]]) -> None:
    """Mounts a token as releases up to 0.1 did, so that pods which run or succeeded that way are left as they
    are.
    """
    paths = {"ca.crt": "tls/ca.crt", "client.yaml": "client.yaml", "servers.conf": "servers.conf"}
    sources = [
        {"secret": {"name": name, "items": [{"key": key, "path": paths[key]} for key in keys]}}
        for name, keys in token.items()
    ]
    pod["volumes"] = [
        *(pod.get("volumes") or []),
        {"name": CLIENT, "projected": {"defaultMode": 0o640, "sources": sources}},
    ]
    mount = {"name": CLIENT, "mountPath": "/etc/bitfusion", "readOnly": True}
    container["volumeMounts"] = [*(container.get("volumeMounts") or []), mount]
