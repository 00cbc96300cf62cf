"""The service's webhooks for a cluster of a class: they fill in the version in full, the newest class that
makes it and the variables' defaults, and refuse what is invalid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.kubernetes.custom import schema_causes
from bfinfra.sandbox.kubernetes.errors import Refused
from bfinfra.sandbox.kubernetes.objects import Object, copied, dig, name_of, namespace_of
from bfinfra.sandbox.kubernetes.releases import NUMBERS, hindrance, resolve
from bfinfra.sandbox.kubernetes.tanzu_shapes import CLUSTER_API, legacy, variables
from bfinfra.sandbox.kubernetes.target import Options, Target
from bfinfra.sandbox.kubernetes.types import of_custom
from bfinfra.sandbox.kubernetes.vks.offered import NEWEST, OLDEST, Vks, named
from bfinfra.sandbox.kubernetes.vks.shape import OS_IMAGE, bounds

CLASSES = ("cluster.x-k8s.io", "clusterclasses")
IMAGES = ("run.tanzu.vmware.com", "osimages")
COUNTS = (1, 3, 5)


class VksAdmission:
    """The webhooks of one supervisor."""

    def __init__(self, cluster: Cluster, vks: Vks) -> None:
        self._cluster, self._vks = cluster, vks
        cluster.admissions.append(self._admit)

    def _admit(self, target: Target, before: Object | None, after: Object, _: Options) -> Object:
        if (
            target.resource.key != CLUSTER_API
            or target.subresource
            or after["metadata"].get("deletionTimestamp")
            or not isinstance(dig(after, "spec", "topology"), dict)
        ):
            return after
        old = before and target.resource.write(copied(before))
        new = target.resource.write(copied(after))
        if legacy(new):
            return after
        try:
            self._decide(old, new)
        except (KeyError, TypeError, AttributeError):
            return after  # the schema refuses it
        if old is None:
            new["metadata"]["finalizers"] = [
                *new["metadata"].get("finalizers", []),
                "cluster.cluster.x-k8s.io",
            ]
        return target.resource.read(new)

    def _decide(self, before: Object | None, after: Object) -> None:
        topology = after["spec"]["topology"]
        release = resolve(str(topology.get("version") or ""), self._vks.releases)
        if release is None:
            raise _denied(f"Could not resolve KR/OSImage: no release {topology.get('version')!r}")
        full = release.partition("-vkr")[0]
        written = self._class(after)
        if not _supports(written, full):
            raise _denied(
                f"spec.topology.version: Invalid value: {full!r}: ClusterClass {name_of(written)} supports "
                f"{written['metadata']['labels'][OLDEST]} to {written['metadata']['labels'][NEWEST]}"
            )
        newest = max(
            (each for each in self._classes(topology["classNamespace"]) if _supports(each, full)),
            key=lambda each: [int(part) for part in name_of(each).rpartition("v")[2].split(".")],
        )
        topology |= {"version": full, "class": name_of(newest)}
        for why in (*self._unresolved(after, release), *_wrong(before, after)):
            raise _denied(why)
        schemas = {
            each["name"]: each["definitions"][0] for each in dig(newest, "status", "variables", default=[])
        }
        _fill_in(topology, schemas)

    def _class(self, thing: Object) -> Object:
        topology = thing["spec"]["topology"]
        topology.setdefault("classNamespace", namespace_of(thing))
        for each in self._classes(topology["classNamespace"]):
            if name_of(each) == topology.get("class"):
                return each
        raise _denied(
            f"spec.topology.classRef: Invalid value: ClusterClass {topology['classNamespace']}/"
            f"{topology.get('class')} not found"
        )

    def _classes(self, namespace: str) -> list[Object]:
        return self._cluster.all(*CLASSES, namespace)

    def _unresolved(self, thing: Object, release: str) -> Iterator[str]:
        topology = thing["spec"]["topology"]
        pools = dig(topology, "workers", "machineDeployments", default=[])
        labels = [
            dig(each, "metadata", "labels", default={})
            for each in self._cluster.all(*IMAGES)
            if dig(each, "metadata", "labels", "run.tanzu.vmware.com/tkr") == named(release)
        ]
        for each in (topology["controlPlane"], *pools):
            query = str(dig(each, "metadata", "annotations", OS_IMAGE, default=""))
            wanted = dict(part.strip().partition("=")[::2] for part in query.split(",") if part)
            found = [one for one in labels if all(one.get(key) == value for key, value in wanted.items())]
            if not found:
                yield f"Could not resolve KR/OSImage: no image of {release} matches {query!r}"


def _supports(thing: Object, version: str) -> bool:
    labels = thing["metadata"]["labels"]
    return _minor(labels[OLDEST]) <= _minor(version) <= _minor(labels[NEWEST])


def _minor(version: str) -> tuple[int, int]:
    found = NUMBERS.match(version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _wrong(before: Object | None, after: Object) -> Iterator[str]:
    topology = after["spec"]["topology"]
    count = topology["controlPlane"].get("replicas", 1)
    if count not in COUNTS:
        yield f"spec.topology.controlPlane.replicas: Invalid value: {count}: must be 1, 3 or 5"
    for each in dig(topology, "workers", "machineDeployments", default=[]):
        rolling = dig(each, "strategy", "rollingUpdate", default={})
        if rolling and {rolling.get("maxSurge", 1), rolling.get("maxUnavailable", 0)} <= {0, "0%"}:
            yield "spec.topology.workers: Invalid value: maxSurge and maxUnavailable can't both be 0"
        limits = bounds(each)
        if limits and limits[0] > limits[1]:
            yield f"spec.topology.workers: Invalid value: {limits[0]} is more than {limits[1]}"
    if before is None:
        return
    was = before["spec"]["topology"]
    if dig(before, "spec", "clusterNetwork") != dig(after, "spec", "clusterNetwork"):
        yield "spec.clusterNetwork: Forbidden: field is immutable"
    if was["controlPlane"].get("replicas", 1) > count:
        yield f"spec.topology.controlPlane.replicas: Invalid value: {count}: scaling in is not supported"
    if why := hindrance(was["version"], topology["version"]):
        yield why
    elif _minor(was["version"]) != _minor(topology["version"]) and not _through(before):
        yield (
            f"spec.topology.version: Invalid value: {topology['version']!r}: minor version update cannot "
            f"happen at this time: the cluster is still upgrading to {was['version']}"
        )


def _through(thing: Object) -> bool:
    conditions = dig(thing, "status", "v1beta2", "conditions", default=[])
    return any(each["type"] == "TopologyReconciled" and each["status"] == "True" for each in conditions)


def _fill_in(topology: Object, schemas: Mapping[str, Any]) -> None:
    """Check each value, fill its defaults in, and add the variables that were left out."""
    listed = topology.get("variables") or []
    for each in listed:
        each["value"] = _checked(each, schemas)
    have = {each["name"] for each in listed}
    for name, definition in schemas.items():
        schema = definition["schema"]["openAPIV3Schema"]
        if name in have:
            continue
        if "default" in schema:
            listed.append({"name": name, "value": copied(schema["default"])})
        elif definition["required"]:
            raise _denied(
                f"spec.topology.variables: Required value: required variable with name {name!r} must be "
                "defined"
            )
    topology["variables"] = listed
    pools = dig(topology, "workers", "machineDeployments", default=[])
    for nodes in (topology["controlPlane"], *pools):
        for each in dig(nodes, "variables", "overrides", default=[]):
            each["value"] = _checked(each, schemas)
    for names in ([each["name"] for each in listed],):
        if len(set(names)) < len(names):
            raise _denied("spec.topology.variables: Invalid value: variables must be unique")


def _checked(variable: Object, schemas: Mapping[str, Any]) -> Any:
    name = variable["name"]
    if name not in schemas:
        raise _denied(
            f"spec.topology.variables[{name}]: Invalid value: variable is not defined in the ClusterClass; "
            f"known: {', '.join(sorted(variables([{'name': each} for each in schemas])))}"
        )
    schema = schemas[name]["schema"]["openAPIV3Schema"]
    value = copied(variable.get("value"))
    for unknown in _unknown(schema, value, name):
        raise _denied(f"spec.topology.variables[{name}]: Invalid value: {unknown}: unknown field")
    causes = (each.message for each in schema_causes(of_custom(schema), value, name))
    for cause in (*_types(schema, value, name), *causes):
        raise _denied(f"spec.topology.variables[{name}]: {cause}")
    return _with_defaults(schema, value)


PYTHON: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
}


def _types(schema: Mapping[str, object], value: object, path: str) -> Iterator[str]:
    wanted = PYTHON.get(str(schema.get("type")))
    if wanted and (not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted)):
        yield f"{path}: Invalid value: must be of type {schema['type']}"
        return
    for below, item, at in _below(schema, value, path):
        yield from _types(below, item, at)


def _unknown(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict) and "additionalProperties" not in schema:
        for name in value:
            if name not in (schema.get("properties") or {}):
                yield f"{path}.{name}"
    for below, item, at in _below(schema, value, path):
        yield from _unknown(below, item, at)


def _below(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[tuple[Mapping[str, Any], Any, str]]:
    if isinstance(value, dict):
        for name, item in value.items():
            inner = (schema.get("properties") or {}).get(name) or schema.get("additionalProperties")
            if isinstance(inner, Mapping):
                yield inner, item, f"{path}.{name}"
    elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for index, item in enumerate(value):
            yield schema["items"], item, f"{path}[{index}]"


def _with_defaults(schema: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, dict):
        found = {
            name: _with_defaults((schema.get("properties") or {}).get(name) or {}, item)
            for name, item in value.items()
        }
        for name, each in (schema.get("properties") or {}).items():
            if name not in found and "default" in each:
                found[name] = copied(each["default"])
        return found
    if isinstance(value, list):
        return [_with_defaults(schema.get("items") or {}, each) for each in value]
    return value


def _denied(why: str) -> Refused:
    return Refused(
        403, "Forbidden", f'admission webhook "default.validating.cluster.x-k8s.io" denied the request: {why}'
    )
