"""Adds NVIDIA's runtime to a container runtime's configuration and removes it again. Everything else in the
file stays. Pure.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, MutableMapping
from dataclasses import field
from typing import Any

from bfinfra.kinds.machine.nvidia_container_toolkit.spec import Spec
from bfinfra.model.errors import Refusal
from bfinfra.model.records import dataclass

FILES = {"docker": "/etc/docker/daemon.json", "containerd": "/etc/containerd/config.toml"}
UNITS = {"docker": "docker.service", "containerd": "containerd.service"}
CRI = {2: "io.containerd.grpc.v1.cri", 3: "io.containerd.cri.v1.runtime"}
"""The name of containerd's plug-in for Kubernetes, by the version of its configuration."""
Values = Mapping[tuple[str, ...], Any]
"""Path of keys → value; None if there is none."""


@dataclass(frozen=True, slots=True)
class Before:
    """The values of bfinfra's keys before it set them, and whether the file existed."""

    values: Values = field(default_factory=dict)
    made: bool = False

    def encode(self) -> str:
        """One line of JSON."""
        return json.dumps(
            {"values": [[list(path), value] for path, value in self.values.items()], "made": self.made},
            sort_keys=True,
        )

    @classmethod
    def decode(cls, text: str) -> Before:
        """The values in such a line; nothing if it is damaged."""
        try:
            found = json.loads(text)
            return cls({tuple(path): value for path, value in found["values"]}, bool(found["made"]))
        except (ValueError, KeyError, TypeError):
            return cls()


def wanted(spec: Spec, text: str | None) -> Values:
    """The desired values in the configuration. Raises Refusal if that can't be read."""
    if spec.runtime == "docker":
        own: dict[tuple[str, ...], Any] = {("runtimes", "nvidia", "path"): spec.program}
        return own | ({("default-runtime",): "nvidia"} if spec.default else {})
    config = parsed("containerd", text)
    top = ("plugins", _cri(config), "containerd")
    runc = get(config, (*top, "runtimes", "runc")) or {}
    options = {**(runc.get("options") or {}), "BinaryName": spec.program}
    at = (*top, "runtimes", "nvidia")
    found: dict[tuple[str, ...], Any] = {(*at, "options", name): value for name, value in options.items()}
    found[(*at, "runtime_type")] = runc.get("runtime_type") or "io.containerd.runc.v2"
    if spec.default:
        found[(*top, "default_runtime_name")] = "nvidia"
    return found


def existing(runtime: str, text: str | None, paths: Values) -> Values:
    """The live values under these paths."""
    config = parsed(runtime, text)
    return {path: get(config, path) for path in paths}


def merged(runtime: str, text: str | None, values: Values) -> str:
    """The configuration with these values; "" if nothing is left in it."""
    if existing(runtime, text, values) == dict(values):
        return text or ""
    config = _open(runtime, text)
    for path, value in values.items():
        _put(config, path, value)
    if runtime == "docker":
        return json.dumps(config, indent=4) + "\n" if config else ""
    import tomlkit  # noqa: PLC0415 - few sites have containerd, and all would load it

    out = tomlkit.dumps(config)
    if existing(runtime, out, values) != dict(values):
        raise Refusal(
            f"{FILES[runtime]} can't be merged with NVIDIA's runtime",
            field="runtime",
            why="its tables are in an order that can't be kept",
            next="write the runtime into it by hand",
        )
    return out


def undone(runtime: str, text: str | None, before: Before) -> str:
    """The configuration with its earlier values, and with what others wrote since; "" if the file
    has to go.
    """
    out = merged(runtime, text, before.values)
    rest = parsed(runtime, out)
    if before.made and not (rest.keys() - {"version"}):
        return ""
    return out if out == (text or "") else out.rstrip("\n") + "\n"


def parsed(runtime: str, text: str | None) -> dict[str, Any]:
    """The configuration as plain values. Raises Refusal if it can't be read."""
    try:
        found = tomllib.loads(text or "") if runtime == "containerd" else json.loads(text or "{}")
    except ValueError as error:
        raise Refusal(
            f"{FILES[runtime]} can't be read",
            field="runtime",
            why=str(error),
            next="correct it on that machine: bfinfra merges it and never overwrites it",
        ) from None
    if not isinstance(found, dict):
        raise Refusal(
            f"{FILES[runtime]} has no table",
            field="runtime",
            next="correct it on that machine: bfinfra merges it and never overwrites it",
        )
    return found


def get(config: object, path: tuple[str, ...]) -> Any:
    """The value at a path; None if there is none."""
    for name in path:
        if not isinstance(config, Mapping) or name not in config:
            return None
        config = config[name]
    return config


def _cri(config: Mapping[str, object]) -> str:
    version = config.get("version", 2)  # no version: an older form, which no containerd for Kubernetes writes
    if version not in CRI:
        raise Refusal(
            f"{FILES['containerd']} is of version {version}",
            field="runtime",
            why="NVIDIA's runtime needs version 2 or 3",
            next="create it again with: containerd config default",
        )
    return CRI[version]


def _open(runtime: str, text: str | None) -> MutableMapping[str, Any]:
    if runtime == "docker":
        return parsed(runtime, text)
    import tomlkit  # noqa: PLC0415 - few sites have containerd, and all would load it

    return tomlkit.parse(text or "version = 2\n")


def _put(config: MutableMapping[str, Any], path: tuple[str, ...], value: object) -> None:
    """Sets a value, or removes it with the tables that become empty."""
    name, *rest = path
    if not rest:
        if value is None:
            config.pop(name, None)
        else:
            config[name] = value
        return
    if name not in config:
        if value is None:
            return
        config[name] = {}
    _put(config[name], tuple(rest), value)
    if value is None and not config[name]:
        del config[name]
