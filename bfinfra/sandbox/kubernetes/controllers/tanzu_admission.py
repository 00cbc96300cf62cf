"""What the supervisor's webhooks say to a Tanzu Kubernetes cluster: fills in the release, refuses what can't be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bfinfra.sandbox.kubernetes.cluster import Cluster
from bfinfra.sandbox.kubernetes.errors import Refused
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of, namespace_of
from bfinfra.sandbox.kubernetes.releases import hindrance, resolve
from bfinfra.sandbox.kubernetes.target import Options, Target

KEY = ("run.tanzu.vmware.com", "tanzukubernetesclusters")
FINALIZER = "tanzukubernetescluster.run.tanzu.vmware.com"
HOOK = "default.validating.tanzukubernetescluster.run.tanzu.vmware.com"
QUOTA = re.compile(r"(.+)\.storageclass\.storage\.k8s\.io/requests\.storage")
MOST_WORKERS = 150


class TanzuAdmission:
    """Both webhooks, and what a namespace offers."""

    def __init__(self, cluster: Cluster, releases: Sequence[str]) -> None:
        self._cluster, self.releases = cluster, tuple(releases)
        cluster.admissions.append(self._admit)

    def unmet(self, thing: Object) -> tuple[str, str] | None:
        """(reason, message) of what the namespace doesn't offer to a cluster."""
        namespace = namespace_of(thing)
        bindings = self._cluster.all("vmoperator.vmware.com", "virtualmachineclassbindings", namespace)
        bound = {dig(each, "classRef", "name") for each in bindings}
        storage = self.storage_classes(namespace)
        for role in ("controlPlane", "workers"):
            spec = thing["spec"]["topology"][role]
            if spec["class"] not in bound:
                return "VirtualMachineClassBindingNotFound", f"VirtualMachineClass {spec['class']!r} is not bound to namespace {namespace!r}"
            for name in (spec["storageClass"], *(each.get("storageClass") for each in spec.get("volumes") or [])):
                if name and name not in storage:
                    return "StorageClassNotFound", f"StorageClass {name!r} is not assigned to namespace {namespace!r}"
        return None

    def storage_classes(self, namespace: str) -> list[str]:
        """Names of the storage classes that a namespace has."""
        quotas = self._cluster.all("", "resourcequotas", namespace)
        return sorted({found[1] for quota in quotas for key in dig(quota, "spec", "hard", default={}) if (found := QUOTA.fullmatch(key))})

    def _admit(self, target: Target, before: Object | None, after: Object, _: Options) -> Object:
        if target.resource.key != KEY or target.subresource or after["metadata"].get("deletionTimestamp"):
            return after
        if not isinstance(dig(after, "spec", "distribution"), dict) or not isinstance(dig(after, "spec", "topology", "workers"), dict):
            return after  # the schema refuses it
        self._resolve(before, after)
        for why in self._wrong(before, after):
            raise _denied(why)
        if before is None:
            after["metadata"]["finalizers"] = [*after["metadata"].get("finalizers", []), FINALIZER]
        return after

    def _resolve(self, before: Object | None, after: Object) -> None:
        said = after["spec"]["distribution"]
        moved = before is None or said.get("version") != dig(before, "spec", "distribution", "version")
        wanted = said.get("version") if moved and said.get("version") else said.get("fullVersion") or said.get("version")
        full = resolve(str(wanted or ""), self.releases) if wanted else None
        if full is None:
            raise _denied(f"unable to find Kubernetes distributions for version {wanted!r}; available: {', '.join(self.releases)}")
        after["spec"]["distribution"] = {**said, "version": said.get("version") or full.partition("+")[0], "fullVersion": full}

    def _wrong(self, before: Object | None, after: Object) -> Iterator[str]:
        topology = after["spec"]["topology"]
        count = dig(topology, "controlPlane", "count")
        if count not in (1, 3):
            yield f"spec.topology.controlPlane.count: Invalid value: {count}: must be 1 or 3"
        workers = dig(topology, "workers", "count", default=0)
        if not 0 <= workers <= MOST_WORKERS:
            yield f"spec.topology.workers.count: Invalid value: {workers}: must be between 0 and {MOST_WORKERS}"
        if len(name_of(after)) > 31:
            yield f"metadata.name: Invalid value: {name_of(after)!r}: must be no more than 31 characters"
        if before:
            if why := hindrance(before["spec"]["distribution"]["fullVersion"], after["spec"]["distribution"]["fullVersion"]):
                yield why
            if dig(before, "spec", "topology", "controlPlane", "count", default=0) > count:
                yield f"spec.topology.controlPlane.count: Invalid value: {count}: scaling in of the control plane is not supported"
            if dig(before, "spec", "settings", "network") != dig(after, "spec", "settings", "network"):
                yield from _network(before, after)


def _network(before: Object, after: Object) -> Iterator[str]:
    for field in ("cni", "pods", "services", "serviceDomain"):
        if dig(before, "spec", "settings", "network", field) != dig(after, "spec", "settings", "network", field):
            yield f"spec.settings.network.{field}: Forbidden: field is immutable"


def _denied(why: str) -> Refused:
    return Refused(403, "Forbidden", f'admission webhook "{HOOK}" denied the request: {why}')
