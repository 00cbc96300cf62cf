"""What keeps a GPU operator from working in its cluster, as the site's file has both. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Protocol

from bfinfra.kinds.cluster_locator import WHOLE
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.order import Specs
from bfinfra.model.refs import Key

BELOW = ("baseline", "restricted")
CLAIMS = 34
"""The first minor version of Kubernetes that serves resource.k8s.io/v1."""
RESTRICTED = 26
"""The first minor version whose clusters on a supervisor refuse privileged pods by themselves."""
MINOR = re.compile(r"v?1\.(\d+)")
ON_SUPERVISORS = ("tanzu_cluster", "vks_cluster")


class Operator(Protocol):
    """What is read of a GPU operator's spec."""

    @property
    def cluster(self) -> str:
        """Its cluster."""

    @property
    def namespace(self) -> str:
        """Its namespace."""

    @property
    def allocate(self) -> str:
        """How pods get GPUs."""

    @property
    def mig(self) -> str | None:
        """How parts of GPUs are offered."""


def found(mine: Mapping[Key, Operator], site: Specs) -> Iterator[Conflict]:
    """All conflicts of the site's operators."""
    for key, spec in mine.items():
        home = home_of(spec.cluster, site)
        yield from _pod_security(key, spec, home, site)
        if home is not None:
            yield from _claims(key, spec, home, site[home])
            yield from _parts(key, spec, home, site)


def home_of(cluster: str, site: Specs) -> Key | None:
    """The resource of the site that makes a cluster; None if no file of it does."""
    return next((key for kind in WHOLE if (key := Key(kind, cluster.rpartition("/")[2])) in site), None)


def default_level(cluster: object) -> str:
    """The level of Pod Security of namespaces without a label, in a cluster that the site makes."""
    variables = getattr(cluster, "variables", None) or {}
    given = _at(variables, "kubernetes", "security", "podSecurityStandard")
    own = given or _at(variables, "podSecurityStandard")
    if str(own.get("deactivated", "")).lower() == "true":
        return "privileged"
    return str(
        own.get("enforce")
        or ("restricted" if minor(getattr(cluster, "version", "")) >= RESTRICTED else "privileged")
    )


def _pod_security(key: Key, spec: Operator, home: Key | None, site: Specs) -> Iterator[Conflict]:
    """A namespace whose Pod Security refuses the operator's pods."""
    at = Key("namespace", spec.namespace)
    space = site.get(at)
    if getattr(space, "cluster", None) != spec.cluster:
        return
    level = getattr(getattr(space, "pod_security", None), "enforce", None)
    if level in BELOW:
        yield Conflict(
            Spot(key, "namespace"),
            f"its pods are refused in a namespace of the level {level}: they need the host",
            (Spot(at, "pod_security.enforce"),),
            next="write enforce: privileged there",
        )
    elif level is None and home is not None and home.kind in ON_SUPERVISORS:
        default = default_level(site[home])
        if default in BELOW:
            yield Conflict(
                Spot(key, "namespace"),
                f"its pods are refused in a namespace without a level of its own: {home} enforces {default}",
                (Spot(at),),
                next=f"write pod_security: {{enforce: privileged}} in {at}",
            )


def _claims(key: Key, spec: Operator, home: Key, cluster: object) -> Iterator[Conflict]:
    """Resource claims in a cluster that is too old for them."""
    version = str(getattr(cluster, "version", None) or "")
    if spec.allocate == "dra" and version and minor(version) < CLAIMS:
        yield Conflict(
            Spot(key, "allocate"),
            f"resource claims need Kubernetes 1.{CLAIMS}, and {home} is of {version}",
            (Spot(home, "version"),),
            why="only from then on a cluster serves resource.k8s.io/v1",
            next="write allocate: device_plugin, or a newer version of the cluster",
        )


def _parts(key: Key, spec: Operator, home: Key, site: Specs) -> Iterator[Conflict]:
    """Parts of GPUs on nodes that have vGPUs."""
    for field, name in (getattr(site[home], "vm_classes", {}) if spec.mig else {}).items():
        if getattr(site.get(Key("vm_class", name)), "vgpus", ()):
            yield Conflict(
                Spot(key, "mig"),
                f"nodes of {home} have vGPUs, which are divided on their host",
                (Spot(home, field),),
                next="remove mig; for parts of a card, write a vGPU profile of such a part in the VM class",
            )
            return


def minor(version: str) -> int:
    """The minor version of `v1.34.2`; 0 if it is not a version."""
    found = MINOR.match(version)
    return int(found[1]) if found else 0


def _at(value: object, *path: str) -> Mapping[str, object]:
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}
