"""The supervisor's webhooks for workload clusters: they fill in the release and refuse what is invalid."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.kubernetes.errors import Refused
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of, namespace_of
from bfinfra.sandbox.kubernetes.releases import hindrance, resolve
from bfinfra.sandbox.kubernetes.tanzu_shapes import (
    CONTROL_PLANE,
    SHAPES,
    TANZU_CLUSTER,
    Pool,
    Shape,
    legacy,
    variables,
)
from bfinfra.sandbox.kubernetes.tanzu_versions import pools_of
from bfinfra.sandbox.kubernetes.target import Options, Target

HOOK = "default.validating.tanzukubernetescluster.run.tanzu.vmware.com"
QUOTA = re.compile(r"(.+)\.storageclass\.storage\.k8s\.io/requests\.storage")
MOST_WORKERS = 150


class TanzuAdmission:
    """Both webhooks, and what a namespace offers."""

    def __init__(self, cluster: Cluster, releases: Sequence[str], *, classes: bool = False) -> None:
        """`classes`: whether others look after clusters of other classes than the first one."""
        self._cluster, self.releases, self._classes = cluster, tuple(releases), classes
        cluster.admissions.append(self._admit)

    def unmet(self, thing: Object, pools: Sequence[Pool]) -> tuple[str, str] | None:
        """(reason, message) of what the namespace doesn't offer to a cluster."""
        namespace = namespace_of(thing)
        bindings = self._cluster.all("vmoperator.vmware.com", "virtualmachineclassbindings", namespace)
        classes = [
            each
            for each in self._cluster.all("vmoperator.vmware.com", "virtualmachineclasses")
            if namespace_of(each) == namespace
        ]
        bound = {dig(each, "classRef", "name") for each in bindings} | {name_of(each) for each in classes}
        storage = self.storage_classes(namespace)
        for pool in pools:
            if pool.vm_class not in bound:
                return (
                    "VirtualMachineClassBindingNotFound",
                    f"VirtualMachineClass {pool.vm_class!r} is not bound to namespace {namespace!r}",
                )
            for name in (pool.storage_class, *(each.get("storageClass") for each in pool.volumes or [])):
                if name and name not in storage:
                    return (
                        "StorageClassNotFound",
                        f"StorageClass {name!r} is not assigned to namespace {namespace!r}",
                    )
        return None

    def storage_classes(self, namespace: str) -> list[str]:
        """Names of the storage classes that a namespace has."""
        quotas = self._cluster.all("", "resourcequotas", namespace)
        return sorted(
            {
                found[1]
                for quota in quotas
                for key in dig(quota, "spec", "hard", default={})
                if (found := QUOTA.fullmatch(key))
            }
        )

    def _admit(self, target: Target, before: Object | None, after: Object, _: Options) -> Object:
        shape = next((each for each in SHAPES if each.key == target.resource.key), None)
        if (
            shape is None
            or target.subresource
            or after["metadata"].get("deletionTimestamp")
            or not isinstance(dig(after, "spec", "topology"), dict)
        ):
            return after  # what lacks its topology the schema refuses
        old, new = before and target.resource.write(before), target.resource.write(after)
        if not shape.holds(new) and self._classes:
            return after
        try:
            resolved = self._resolve(old, new) if shape is TANZU_CLUSTER else self._resolve_cluster(new)
            wrong = list(_wrong(shape, old, resolved))
        except (KeyError, TypeError, AttributeError):
            return after  # the schema refuses it
        for why in wrong:
            raise _denied(why)
        if before is None:
            resolved["metadata"]["finalizers"] = [
                *resolved["metadata"].get("finalizers", []),
                shape.finalizer,
            ]
        return target.resource.read(resolved)

    def _resolve(self, before: Object | None, after: Object) -> Object:
        distribution = after["spec"]["distribution"]
        moved = before is None or distribution.get("version") != dig(
            before, "spec", "distribution", "version"
        )
        wanted = (
            distribution.get("version")
            if moved and distribution.get("version")
            else distribution.get("fullVersion") or distribution.get("version")
        )
        full = self._release(str(wanted or ""))
        if any(
            name != full.replace("+", "---")
            for pool in pools_of(after)
            if (name := dig(pool, "tkr", "reference", "name"))
        ):
            raise _denied(
                "spec.topology.nodePools: Invalid value: every tkr.reference.name must be that of the "
                "control plane"
            )
        after["spec"]["distribution"] = {
            **distribution,
            "version": distribution.get("version") or full.partition("+")[0],
            "fullVersion": full,
        }
        return after

    def _resolve_cluster(self, after: Object) -> Object:
        topology = after["spec"]["topology"]
        if not legacy(after):
            raise _denied(
                f"spec.topology.class: Invalid value: {topology.get('class')!r}: there is no such "
                "ClusterClass"
            )
        for name in ("vmClass", "storageClass"):
            if not variables(topology.get("variables")).get(name):
                raise _denied(
                    f"spec.topology.variables: Required value: required variable with name {name!r} "
                    "must be defined"
                )
        full = self._release(str(topology.get("version") or "").replace("---", "+"))
        return {
            **after,
            "spec": {**after["spec"], "topology": {**topology, "version": full.replace("+", "---")}},
        }

    def _release(self, wanted: str) -> str:
        full = resolve(wanted, self.releases) if wanted else None
        if full is None:
            raise _denied(
                f"unable to find Kubernetes distributions for version {wanted!r}; available: "
                f"{', '.join(self.releases)}"
            )
        return full


def _wrong(shape: Shape, before: Object | None, after: Object) -> Iterator[str]:
    pools = list(shape.pools(after))
    count = next(pool.count for pool in pools if pool.name == CONTROL_PLANE)
    if count not in (1, 3):
        yield f"spec.topology.controlPlane.count: Invalid value: {count}: must be 1 or 3"
    for pool in pools[1:]:
        if not 0 <= pool.count <= MOST_WORKERS:
            yield (
                f"spec.topology.workers.count: Invalid value: {pool.count}: must be between 0 and "
                f"{MOST_WORKERS}"
            )
    if len(name_of(after)) > 31:
        yield f"metadata.name: Invalid value: {name_of(after)!r}: must be no more than 31 characters"
    if before:
        if why := hindrance(shape.release(before), shape.release(after)):
            yield why
        if next(shape.pools(before)).count > count:
            yield (
                f"spec.topology.controlPlane.count: Invalid value: {count}: scaling in of the control plane "
                "is not supported"
            )
        yield from _network(before, after)


def _network(before: Object, after: Object) -> Iterator[str]:
    for field in ("cni", "pods", "services", "serviceDomain"):
        if dig(before, "spec", "settings", "network", field) != dig(
            after, "spec", "settings", "network", field
        ):
            yield f"spec.settings.network.{field}: Forbidden: field is immutable"
    if dig(before, "spec", "clusterNetwork") != dig(after, "spec", "clusterNetwork"):
        yield "spec.clusterNetwork: Forbidden: field is immutable"


def _denied(why: str) -> Refused:
    return Refused(403, "Forbidden", f'admission webhook "{HOOK}" denied the request: {why}')
