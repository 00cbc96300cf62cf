"""Drivers of guests beside those of their hosts, as the file has them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key

DRIVER = re.compile(r"nvidia|nvd", re.IGNORECASE)
"""How the components of NVIDIA's host drivers begin."""
BRANCH = re.compile(r"(\d{3})\.\d+")


def newer_guests(wanted: Specs) -> Iterator[Conflict]:
    """GPU operators whose driver is of a newer branch than the hosts': a vGPU's guest driver may be older
    than its host's, not newer.
    """
    for key, spec in wanted.items():
        guest = _branch(spec.driver.version) if key.kind == "gpu_operator" and spec.driver else None
        if guest is None:
            continue
        for image, found in wanted.items():
            if image.kind != "host_image" or found.cluster != _home(spec.cluster, wanted):
                continue
            for name, version in found.components.items():
                host = _branch(version) if DRIVER.match(name) else None
                if host is not None and guest > host:
                    yield Conflict(
                        Spot(key, "driver.version"),
                        f"its driver is of branch {guest}, newer than the hosts' {host}",
                        (Spot(image, f"components.{name}"),),
                        why="a vGPU does not start with a guest driver that is newer than the host's",
                        next=f"write a driver of branch {host}, or update the hosts first",
                    )


def _branch(version: str | None) -> int | None:
    found = BRANCH.match(version) if version else None
    return int(found[1]) if found else None


def _home(cluster: str, wanted: Specs) -> str | None:
    """The vSphere cluster of a cluster that the site makes in a supervisor namespace."""
    spec: Any = next(
        (
            each
            for kind in ("vks_cluster", "tanzu_cluster")
            if (each := wanted.get(Key(kind, cluster))) is not None
        ),
        None,
    )
    home: Any = wanted.get(Key("supervisor_namespace", spec.namespace)) if spec else None
    return str(home.cluster) if home is not None else None
