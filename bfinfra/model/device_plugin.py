"""The releases of the Bitfusion device plug-in for Kubernetes and their differences, one row each.

Source: vmware/bitfusion-with-kubernetes-integration, tags v0.1 to v0.4 (deployment files, webhook.go,
util.go).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from bfinfra.model.records import dataclass

GROUP = "bitfusion.io"
ALLOCATED = f"{GROUP}/gpu"
"""The resource that nodes advertise and quotas count, in hundredths of a GPU. The webhook converts users'
requests into it.
"""
PERCENT, MEMORY = f"{GROUP}/gpu-percent", f"{GROUP}/gpu-memory"
SWITCH, STATUS = "auto-management/bitfusion", "auto-management/status"
OS, CLIENT, FILTER = "bitfusion-client/os", "bitfusion-client/version", "bitfusion-client/filter"
"""Annotations of a pod."""
FILTERS = (
    "server.addr",
    "server.hostname",
    "server.has-rdma",
    "server.cuda-version",
    "server.driver-version",
    "device.id",
    "device.name",
    "device.phy-memory",
)
LIBRARIES = "opt/bitfusion/lib/x86_64-linux-gnu/bitfusion/lib/"
SYSTEM = ("kube-system", "kube-public", "kube-node-lease")
"""Namespaces whose pods bfinfra's webhook never sees."""
Version = Literal["0.1", "0.2", "0.3", "0.4"]


@dataclass(frozen=True, slots=True)
class Client:
    """A client package in the client image. `folder`: below /bitfusion; `libraries`: below that; `inherits`:
    the rest of LD_LIBRARY_PATH.
    """

    version: str
    os: str
    folder: str
    libraries: str = LIBRARIES
    inherits: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """One release. `count`: the resource that requests GPUs; `parts`: the resources that request a part of
    each GPU; `switch`: the annotation or label that enables it.

    `form`: the form of the token's Secrets, as in token_secret. `glue`: what is put before each element of a
    command. `strict`: a container with a command must request GPUs. `clients`: empty if pods can't choose
    theirs.
    """

    version: Version
    count: str
    parts: tuple[str, ...]
    switch: tuple[str, ...]
    form: Literal["single", "three"]
    glue: str
    strict: bool
    filters: bool
    sidecar: str
    clients: tuple[Client, ...]

    @property
    def counts_megabytes(self) -> bool:
        """Whether it passes the number of gpu-memory unchanged to a client that reads it as megabytes. Later
        releases convert the quantity.
        """
        return self.version == "0.1"

    @property
    def asked(self) -> tuple[str, ...]:
        """All resources that a container may request."""
        return (self.count, *self.parts)


def _debs_and_rpms(version: str, build: str) -> tuple[Client, ...]:
    debs = [
        Client(version, f"ubuntu{n[:2]}", f"bitfusion-client-ubuntu{n}_{build}_amd64.deb")
        for n in ("1804", "2004")
    ]
    return (
        *debs,
        *(Client(version, f"centos{n}", f"bitfusion-client-centos{n}-{build}.x86_64.rpm") for n in "78"),
    )


_INHERITS = ":$LD_LIBRARY_PATH"
_OF_2_5 = (
    Client(
        "250",
        "ubuntu18",
        "bitfusion-client-ubuntu1804_2.5.1-13",
        "opt/bitfusion/lib/x86_64-linux-gnu/lib/",
        _INHERITS,
    ),
    Client("250", "ubuntu20", "bitfusion-client-ubuntu2004_2.5.1-13", LIBRARIES, _INHERITS),
    Client(
        "250",
        "centos7",
        "bitfusion-client-centos7-2.5.0-10",
        "opt/bitfusion/2.5.0-fd3e4839/x86_64-linux-gnu/lib/",
        _INHERITS,
    ),
    Client(
        "250",
        "centos8",
        "bitfusion-client-centos8-2.5.1-13",
        "opt/bitfusion/2.5.1-3ddd3278/x86_64-linux-gnu/lib",
        _INHERITS,
    ),
)
_ON = ("y", "yes", "true", "on")
_ALL = (*_ON, "all", "injection")
_BOTH = (PERCENT, MEMORY)
_OF_4_0 = _debs_and_rpms("401", "4.0.1-5")
_AMOUNT = f"{GROUP}/gpu-amount"

RELEASES: Mapping[str, Release] = {
    each.version: each
    for each in (
        # version  count                 parts       switch token     glue     strict filters sidecar clients
        Release("0.1", f"{GROUP}/gpu-num", _BOTH, _ON, "single", " ", False, False, "0.1", ()),
        Release("0.2", _AMOUNT, _BOTH, _ALL, "single", " ", True, False, "0.2", _OF_2_5),
        Release(
            "0.3",
            _AMOUNT,
            _BOTH,
            _ALL,
            "three",
            " -- ",
            True,
            True,
            "0.3",
            (*_OF_4_0, *_debs_and_rpms("350", "3.5.0-5")),
        ),
        Release(
            "0.4",
            _AMOUNT,
            _BOTH,
            _ALL,
            "three",
            " -- ",
            True,
            True,
            "0.3",
            (*_debs_and_rpms("450", "4.5.0-4"), *_OF_4_0),
        ),
    )
}
NEWEST: Version = "0.4"
COUNTS = frozenset(each.count for each in RELEASES.values())
"""The resources that request GPUs, in any release."""
