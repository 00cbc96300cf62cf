"""GPUs by the Bitfusion device plug-in: the annotations and resources that the webhook of the installed
release reads. Pure.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bfinfra.kinds.cluster.workload.manifests import Manifest, pod_spec
from bfinfra.kinds.cluster.workload.request import Request
from bfinfra.model.device_plugin import (
    CLIENT,
    FILTER,
    GROUP,
    MEMORY,
    OS,
    PERCENT,
    RELEASES,
    SWITCH,
    SYSTEM,
    Client,
    Release,
)
from bfinfra.model.errors import Refusal
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.kinds.cluster.bitfusion_device_plugin.spec import Spec as PlugIn

MB = 1_000_000


@dataclass(frozen=True)
class Installed:
    """The facts about the plug-in that a workload needs. `packages`: the clients that pods may choose;
    `total_memory`: bytes per GPU; None if it isn't known.
    """

    release: Release
    packages: tuple[Client, ...]
    total_memory: int | None = None
    shares: int | None = None
    namespaces: tuple[str, ...] = ()


def installed(version: str | None, plug_in: PlugIn | None) -> Installed | None:
    """The site's plug-in, or the release that the workload names."""
    if plug_in is not None:
        return Installed(
            plug_in.release, plug_in.packages, plug_in.total_gpu_memory, plug_in.shares, plug_in.namespaces
        )
    return Installed(RELEASES[version], RELEASES[version].clients) if version else None


def objections(spec: Request, there: Installed) -> Iterator[tuple[str, str, str]]:
    """Yield what the webhook of this release would refuse or ignore: field, what is wrong, what to write."""
    release, name = there.release, f"release {there.release.version} of the device plug-in"
    if spec.namespace in SYSTEM:
        yield (
            "namespace",
            f"pods in {spec.namespace} are skipped by the device plug-in",
            "use your own namespace",
        )
    elif there.namespaces and (spec.namespace or "default") not in there.namespaces:
        yield (
            "namespace",
            f"pods in {spec.namespace or 'default'} don't reach the device plug-in's webhook",
            "add it to the plug-in's namespaces",
        )
    yield from _client(spec, there, name)
    if spec.filters and not release.filters:
        yield "filters", f"{name} knows no filters", "remove them, or install 0.3 or later"
    counted = not release.counts_megabytes and there.total_memory is not None
    if counted and spec.gpu_memory is not None and not MB <= spec.gpu_memory < (there.total_memory or 0):
        known = (
            f"total_gpu_memory there is {there.total_memory // MB} MB"
            if there.total_memory
            else "total_gpu_memory isn't given there"
        )
        yield (
            "gpu_memory",
            f"the webhook would refuse {spec.gpu_memory // MB} MB: {known}",
            "write total_gpu_memory as the memory of each GPU, and less of it here",
        )
    if spec.fraction is not None and abs(spec.fraction * 100 - round(spec.fraction * 100)) > 1e-9:
        yield (
            "fraction",
            f"{PERCENT} is a whole number: {spec.fraction:g} is no hundredths of a GPU",
            "write two decimals, such as 0.25",
        )
    held = (spec.gpus or 0) * (round(spec.fraction * 100) if spec.fraction is not None else 100)
    if there.shares is not None and spec.gpu_memory is None and held > there.shares:
        yield (
            "gpus",
            f"it takes {held} hundredths of a GPU, and each node offers {there.shares}",
            "write more shares into the plug-in, or fewer GPUs",
        )


def _client(spec: Request, there: Installed, name: str) -> Iterator[tuple[str, str, str]]:
    known = sorted({f"{each.os} {each.version}" for each in there.packages})
    if not there.release.clients:
        if spec.client is not None:
            yield "client", f"{name} doesn't let pods choose a client", "remove client"
    elif spec.client is None:
        yield (
            "client",
            f"{name} ignores pods that don't say for which system their client is",
            f"write client: {{os: …, version: …}}; there are {', '.join(known)}",
        )
    elif not any((each.os, each.version) == (spec.client.os, spec.client.version) for each in there.packages):
        yield (
            "client",
            f"the plug-in has no client {spec.client.version} for {spec.client.os}",
            f"choose one of {', '.join(known)}",
        )


def attach(manifest: Manifest, spec: Request, there: Installed, where: str) -> None:
    """Annotates the pod and lets its first container ask for GPUs. Raises Refusal if the webhook would break
    it.
    """
    pod = pod_spec(manifest)
    assert pod is not None
    holder = manifest if manifest["kind"] == "Pod" else manifest["spec"]["template"]
    metadata = holder.setdefault("metadata", {})
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **_notes(spec)}
    first, *others = pod["containers"]
    if there.release.strict and (
        late := next((each["name"] for each in others if each.get("command")), None)
    ):
        raise Refusal(
            f"{where}: the container {late} has a command and requests no GPU",
            field="by",
            why="the webhook refuses such pods",
            next="leave its command to the image",
        )
    first["command"] = [_line(first, where)]
    first.pop("args", None)
    resources = first.setdefault("resources", {})
    for part in ("requests", "limits"):
        kept = {
            name: value
            for name, value in (resources.get(part) or {}).items()
            if not str(name).startswith(f"{GROUP}/")
        }
        resources[part] = {**kept, **(_asks(spec, there.release) if part == "limits" else {})}
    resources["requests"] = {**resources["requests"], **_asks(spec, there.release)}


def _notes(spec: Request) -> Mapping[str, str]:
    client = {OS: spec.client.os, CLIENT: spec.client.version} if spec.client is not None else {}
    return {SWITCH: "yes", **client, **({FILTER: " ".join(spec.filters)} if spec.filters else {})}


def _asks(spec: Request, release: Release) -> Mapping[str, str]:
    unit = "" if release.counts_megabytes else "M"
    part = (
        {MEMORY: f"{spec.gpu_memory // MB}{unit}"}
        if spec.gpu_memory is not None
        else {PERCENT: str(round(spec.fraction * 100))}
        if spec.fraction is not None
        else {}
    )
    return {release.count: str(spec.gpus), **part}


def _line(container: Manifest, where: str) -> str:
    """Command and args as one element: the webhook inserts its own words between elements, and drops args."""
    words: Sequence[str] = [
        str(each) for each in (*(container.get("command") or ()), *(container.get("args") or ()))
    ]
    if not container.get("command"):
        raise Refusal(
            f"{where} has no command",
            field="by",
            why="the webhook puts `bitfusion run` before a command; without a command the pod finds no node",
            next="write the image's command into the pod",
        )
    if words[0].rpartition("/")[2].startswith("bitfusion"):
        raise Refusal(
            f"{where} starts bitfusion already",
            field="by",
            next="remove it from the manifest, or remove gpus and by from the site",
        )
    return words[0] if len(words) == 1 else shlex.join(words)
