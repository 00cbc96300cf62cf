"""The JSON patch by which the Bitfusion webhook makes a pod one that runs below `bitfusion run`: createPatch
and what it calls, by release.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from bfinfra.sandbox.kubernetes.objects import Object, copied, dig
from bfinfra.sandbox.kubernetes.quantity import amount

GPU, PERCENT, MEMORY = "bitfusion.io/gpu", "bitfusion.io/gpu-percent", "bitfusion.io/gpu-memory"
COUNTS = {"0.1": "bitfusion.io/gpu-num"}
COUNT = "bitfusion.io/gpu-amount"
MB = 1_000_000
LIBRARIES = "LD_LIBRARY_PATH"


class Denied(Exception):
    """The webhook's own words."""


@dataclass(frozen=True)
class Settings:
    """The inputs of a patch besides the pod. `client`: its paths; `total_memory`: MB of a GPU; `filters`: as
    annotated; `only_files`: no `bitfusion run`.
    """

    release: str
    client: Mapping[str, str] | None
    total_memory: int
    filters: str | None
    only_files: bool

    @property
    def count(self) -> str:
        """The resource names with which a pod requests GPUs."""
        return COUNTS.get(self.release, COUNT)


def patched(pod: Object, sidecar: Object, settings: Settings) -> list[Object]:
    """The operations. Raises Denied."""
    spec, targets = pod["spec"], [copied(each) for each in pod["spec"]["containers"]]
    init = [_init(each, spec["containers"], settings.client) for each in sidecar.get("initContainers") or []]
    return [
        *_added(spec.get("initContainers"), init, "/spec/initContainers"),
        *_added(spec.get("volumes"), sidecar.get("volumes") or [], "/spec/volumes"),
        {
            "op": "add",
            "path": "/metadata/annotations",
            "value": {"auto-management/status": "injected"},
        },  # the others are lost, as in the sources
        *_files(targets, sidecar["containers"][0], settings),
        *(_first if settings.release == "0.1" else _later)(targets, settings),
    ]


def _added(there: list[Object] | None, new: list[Object], path: str) -> Iterator[Object]:
    for number, each in enumerate(new):
        first = not there and number == 0
        yield {"op": "add", "path": path if first else f"{path}/-", "value": [each] if first else each}


def _init(container: Object, others: list[Object], client: Mapping[str, str] | None) -> Object:
    if client is None:
        return container
    made: Object = copied(container)
    folder = client["EnvVariable"].partition("/opt/bitfusion")[0]
    made["command"][2] = made["command"][2].replace(
        "BITFUSION_CLIENT_OPT_PATH", f"{folder}/opt/bitfusion/*", 1
    )
    made["resources"] = {
        part: {name: _most(others, part, name) for name in ("cpu", "memory")}
        for part in ("limits", "requests")
    }
    return made


def _most(containers: list[Object], part: str, name: str) -> str:
    values = [
        str(value)
        for each in containers
        if (value := dig(each, "resources", part, default={}).get(name)) is not None
    ]
    return max(values, key=amount, default="0")


def _files(targets: list[Object], source: Object, settings: Settings) -> Iterator[Object]:
    """Mounts and LD_LIBRARY_PATH for containers that ask for GPUs; what was made of a later one is above
    the first, as in the sources.
    """
    for number, container in enumerate(targets):
        if not amount(_asks(container).get(settings.count)):
            continue
        container["volumeMounts"] = [*(container.get("volumeMounts") or []), *source["volumeMounts"]]
        container["env"] = _environment(container.get("env") or [], source.get("env") or [], settings.client)
        for name in ("volumeMounts", "env"):
            yield {"op": "replace", "path": f"/spec/containers/{number}/{name}", "value": container[name]}
        targets[0] = container


def _environment(own: list[Object], added: list[Object], client: Mapping[str, str] | None) -> list[Object]:
    if client is None:
        return [*own, *added]
    before = next((each for each in own if each["name"] == LIBRARIES), None)
    value = client["EnvVariable"] + (f":{before.get('value', '')}" if before else "")
    return [*([each for each in own if each is not before]), {"name": LIBRARIES, "value": value}]


def _asks(container: Object) -> Object:
    found: Object = dig(container, "resources", "requests", default={}) or {}
    return found


def _first(targets: list[Object], settings: Settings) -> Iterator[Object]:
    """Release 0.1: all other requests and limits are lost; memory is what `bitfusion run -m` gets, unread."""
    for number, container in enumerate(targets):
        asks, at = _asks(container), f"/spec/containers/{number}"
        count, percent, memory = (amount(asks.get(name)) for name in (settings.count, PERCENT, MEMORY))
        if not container.get("command") or (not count and not percent):
            continue
        if not count:
            raise Denied("No gpu num was provided but found percent ")
        share = int(percent or 100)
        if share > 100:
            raise Denied(f"Invalid {PERCENT} quantity: {share} ")
        run = f"bitfusion run -n {int(count)} " + (f"-m {int(memory)}" if memory else f"-p {share / 100:f}")
        yield from _command(container, run, " ", at, settings)
        yield {
            "op": "replace",
            "path": f"{at}/resources",
            "value": {"limits": {GPU: str(share * int(count))}},
        }


def _later(targets: list[Object], settings: Settings) -> Iterator[Object]:
    """Since 0.2: a container with a command asks for GPUs, or the pod is refused."""
    for number, container in enumerate(targets):
        if not container.get("command"):
            continue
        asks, at = _asks(container), f"/spec/containers/{number}"
        count, percent, memory = (amount(asks.get(name)) for name in (settings.count, PERCENT, MEMORY))
        if count <= 0:
            raise Denied("gpuNum.Value() Error ")
        share = int(percent or 100)
        if not 0 < share <= 100:
            raise Denied(f"Invalid {PERCENT} quantity: {share} ")
        yield from _command(
            container,
            _run(count, share, memory, settings),
            " " if settings.release == "0.2" else " -- ",
            at,
            settings,
        )
        gone = (settings.count, *((PERCENT,) if percent else ()), *((MEMORY,) if memory else ()))
        held = (
            math.ceil((memory // MB) / settings.total_memory * int(count) * 100)
            if memory
            else share * int(count)
        )
        parts = {
            part: {
                **{
                    name: value
                    for name, value in (dig(container, "resources", part, default={}) or {}).items()
                    if name not in gone
                },
                GPU: str(held),
            }
            for part in ("limits", "requests")
        }
        yield {"op": "replace", "path": f"{at}/resources", "value": {"limits": parts["limits"]}}
        yield {"op": "replace", "path": f"{at}/resources/requests", "value": parts["requests"]}


def _run(count: Decimal, share: int, memory: Decimal, settings: Settings) -> str:
    binary = (settings.client or {})["BinaryPath"]
    filters = (
        "".join(f" --filter {each}" for each in settings.filters.split())
        if settings.filters is not None
        else ""
    )
    if not memory:
        return f"{binary} run -n {int(count)} -p {share / 100:f}" + (
            "" if settings.release == "0.2" else f" {filters}"
        )
    if not 0 < memory // MB < settings.total_memory:
        raise Denied("Memory value Error ")
    return f"{binary} run -n {int(count)} -m {int(memory // MB)}" + (
        f"  {filters}" if settings.filters is not None else ""
    )


def _command(container: Object, run: str, glue: str, at: str, settings: Settings) -> Iterator[Object]:
    words = [each for each in container["command"] if each.lower() not in ("/bin/bash", "-c")]
    if settings.only_files or any(each.strip().startswith("bitfusion") for each in words):
        return
    yield {
        "op": "replace",
        "path": f"{at}/command",
        "value": ["/bin/bash", "-c", run + "".join(f"{glue}{each}" for each in words)],
    }
