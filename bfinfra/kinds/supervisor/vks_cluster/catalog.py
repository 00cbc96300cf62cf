"""The catalog of a supervisor for its clusters: classes with the schemas of their variables, releases, images
of operating systems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from bfinfra.kinds.supervisor.base.fit import Environment
from bfinfra.kinds.supervisor.base.offers import Offer
from bfinfra.kinds.supervisor.base.upgrade import matches, newest, numbers, plus
from bfinfra.kinds.supervisor.base.variables import Schema
from bfinfra.kinds.supervisor.base.words import at
from bfinfra.kinds.supervisor.vks_cluster.manifest import V1BETA1, V1BETA2, Schemas
from bfinfra.model.errors import Forbidden, Missing
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient

OLDEST, NEWEST = (f"kubernetes.vmware.com/{each}-version-supported" for each in ("min", "max"))
RELEASE_OF_IMAGE = "run.tanzu.vmware.com/tkr"
RELEASES = (
    ("kubernetes.vmware.com/v1alpha1", "KubernetesRelease"),
    ("run.tanzu.vmware.com/v1alpha3", "TanzuKubernetesRelease"),
)
IMAGES = ("run.tanzu.vmware.com/v1alpha3", "OSImage")
NUMBERED = re.compile(r"(.*?)-?v(\d+(?:\.\d+)*)")


@dataclass(frozen=True)
class Variable:
    """One variable of a class."""

    schema: Schema
    required: bool = False


@dataclass(frozen=True)
class ClusterClass:
    """`oldest` and `newest`: Kubernetes versions that it supports, "" where it has no such label;
    `variables`: None where the supervisor has not read them yet.
    """

    name: str
    oldest: str = ""
    newest: str = ""
    variables: Mapping[str, Variable] | None = None
    pools: tuple[str, ...] = ()
    """The names of its worker classes."""

    def supports(self, version: str) -> bool:
        """Return whether its labels allow clusters of this version."""
        wanted = numbers(version)[:2]
        return not (
            (self.oldest and wanted < numbers(self.oldest)[:2])
            or (self.newest and wanted > numbers(self.newest)[:2])
        )


@dataclass(frozen=True)
class Catalog:
    """The catalog of one supervisor. `classes` by namespace, None where we may not list them; `releases`:
    full names of those that can be used; `images`: labels of each image.
    """

    classes: Mapping[str, Mapping[str, ClusterClass] | None] = field(default_factory=dict)
    releases: frozenset[str] | None = None
    images: Sequence[Mapping[str, str]] | None = None

    def release(self, version: str) -> str:
        """The newest release that matches a version or its prefix; "" where none does."""
        return newest(self.releases or (), version)

    def schemas(self, namespace: str, wanted: str, version: str) -> Schemas:
        """Schemas of the variables of the class that the supervisor uses; empty where they are unknown."""
        found = self.replaced_by(namespace, wanted, version)
        variables = (found.variables if found else None) or {}
        return {name: variable.schema for name, variable in variables.items()}

    def replaced_by(self, namespace: str, wanted: str, version: str) -> ClusterClass | None:
        """The class that a supervisor uses in place of the wanted one: the newest of its family that makes
        clusters of this version. None where there is none, or we may not list classes.
        """
        found = [
            each
            for each in (self.classes.get(namespace) or {}).values()
            if order(each.name)[0] == order(wanted)[0] and each.supports(version)
        ]
        return max(found, key=lambda each: order(each.name)[1], default=None)


@dataclass(frozen=True)
class VksClusterFacts:
    """`offers` and `catalogs` by supervisor namespace; `apis`: the API that its supervisor serves;
    `environment`: the networks and hosts under the clusters.
    """

    offers: Mapping[str, Offer] = field(default_factory=dict)
    catalogs: Mapping[str, Catalog] = field(default_factory=dict)
    apis: Mapping[str, str] = field(default_factory=dict)
    environment: Environment = field(default_factory=Environment)

    def api(self, namespace: str) -> str:
        """The API of the namespace's supervisor; the newest where the namespace does not exist yet."""
        return self.apis.get(namespace, V1BETA2)


def read(supervisor: ClusterClient, namespaces: Sequence[str]) -> Catalog:
    """A list for each namespace with classes, one of releases, one of images. Raises RemoteError."""
    return Catalog(
        {each: _classes(supervisor, each) for each in namespaces}, _releases(supervisor), _images(supervisor)
    )


def order(name: str) -> tuple[str, tuple[int, ...]]:
    """`builtin-generic-v3.7.0` → its family and its number; () where it has none."""
    found = NUMBERED.fullmatch(name)
    return (found[1], tuple(int(part) for part in found[2].split("."))) if found else (name, ())


def satisfied(live: str, wanted: str) -> bool:
    """Return whether a class is the wanted one, or a newer one by which a supervisor replaced it."""
    (family, number), (wanted_family, least) = order(live), order(wanted)
    return live == wanted or bool(family == wanted_family and least and number >= least)


def _classes(supervisor: ClusterClient, namespace: str) -> dict[str, ClusterClass] | None:
    for api in (V1BETA2, V1BETA1):
        try:
            found = supervisor.list(api, "ClusterClass", namespace)
        except Forbidden:
            return None
        except Missing:
            continue
        return {each["metadata"]["name"]: _class(each) for each in found}
    return None


def _class(obj: Mapping[str, Any]) -> ClusterClass:
    labels = at(obj, "metadata", "labels")
    listed = at(obj, "status").get("variables")
    sorts = at(obj, "spec", "workers").get("machineDeployments") or ()
    return ClusterClass(
        str(obj["metadata"]["name"]),
        str(labels.get(OLDEST) or ""),
        str(labels.get(NEWEST) or ""),
        dict(_variables(listed)) if isinstance(listed, list) and listed else None,
        tuple(str(each.get("class")) for each in sorts if isinstance(each, dict)),
    )


def _variables(listed: Sequence[Any]) -> Iterator[tuple[str, Variable]]:
    for each in listed:
        definitions = each.get("definitions") or () if isinstance(each, dict) else ()
        first = next((one for one in definitions if isinstance(one, dict)), {})
        schema = at(first, "schema", "openAPIV3Schema")
        if each.get("definitionsConflict"):
            schema = {"x-kubernetes-preserve-unknown-fields": True}
        yield str(each.get("name")), Variable(schema, bool(first.get("required")) and "default" not in schema)


def _releases(supervisor: ClusterClient) -> frozenset[str] | None:
    for api, kind in RELEASES:
        try:
            found = supervisor.list(api, kind)
        except Forbidden:
            return None
        except Missing:
            continue
        return frozenset(_full(each) for each in found if _usable(each))
    return None


def _full(release: Mapping[str, Any]) -> str:
    text = plus(str(at(release, "spec").get("version") or release["metadata"]["name"]))
    return text if text.startswith("v") else f"v{text}"


def _usable(release: Mapping[str, object]) -> bool:
    """Return whether a release is ready and for this supervisor: the API also lists those that are not."""
    conditions = at(release, "status").get("conditions") or ()
    return not any(
        isinstance(each, dict)
        and each.get("type") in ("Ready", "Compatible")
        and each.get("status") == "False"
        for each in conditions
    )


def _images(supervisor: ClusterClient) -> tuple[Mapping[str, str], ...] | None:
    try:
        found = supervisor.list(*IMAGES)
    except (Missing, Forbidden):
        return None
    return tuple(at(each, "metadata", "labels") for each in found)


def of_release(images: Sequence[Mapping[str, str]], release: str) -> list[Mapping[str, str]]:
    """The images of a release."""
    return [each for each in images if matches(plus(str(each.get(RELEASE_OF_IMAGE) or "")), release)]
