"""Pod Security admission: the labels of a namespace decide which pods are refused there, and which are warned
of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bfinfra.sandbox.kubernetes.errors import Cause, forbidden, invalid
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of
from bfinfra.sandbox.kubernetes.pod_standards import broken
from bfinfra.sandbox.kubernetes.target import Options, Target

if TYPE_CHECKING:
    from bfinfra.sandbox.kubernetes.cluster_state import ClusterState

SINCE = 23  # the minor version in which it is on without being asked for
PREFIX = "pod-security.kubernetes.io/"
LEVELS = ("privileged", "baseline", "restricted")
MODES = ("enforce", "audit", "warn")
VERSION = re.compile(r"v1\.(\d+)")
TEMPLATES = {
    "Deployment": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "Job": ("spec", "template"),
    "ReplicationController": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}


@dataclass(frozen=True)
class Policy:
    """A level in the words of a release ("latest" or v1.x)."""

    level: str
    version: str

    def broken(self, pod: Object, newest: int) -> str:
        """Return why a pod may not run, or ""."""
        found = VERSION.fullmatch(self.version)
        return ", ".join(broken(self.level, min(int(found[1]), newest) if found else newest, pod))

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"


class PodSecurity:
    """The admission plug-in of one cluster; of a release that has it. `defaults`: mode → level for namespaces
    without a label, but for those of `exempt`, whose pods nothing is asked of.
    """

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self.defaults: Mapping[str, str] = {}
        self.exempt: frozenset[str] = frozenset()
        cluster.validations.append(self._check)

    def _check(self, target: Target, before: Object | None, after: Object, _: Options) -> None:
        newest = self._cluster.registry.minor
        if newest < SINCE or target.subresource:
            return
        if target.resource.key == ("", "namespaces"):
            self._labels(before, after)
        elif target.namespace in self.exempt:
            return
        elif not target.resource.custom and (kind := target.resource.kind) in ("Pod", *TEMPLATES):
            labels = self._levels(
                dig(self._cluster.get("", "namespaces", target.namespace), "metadata", "labels", default={})
            )
            pod = dig(after, *TEMPLATES.get(kind, ()), default={})
            if kind == "Pod" and (before is None or _changed(before, after)):
                policy = _policy(labels, "enforce")
                if why := policy.broken(pod, newest):
                    raise forbidden("pods", "", name_of(after), f'violates PodSecurity "{policy}": {why}')
            policy = _policy(labels, "warn")
            if (before is None or dig(before, "spec") != dig(after, "spec")) and (
                why := policy.broken(pod, newest)
            ):
                self._cluster.warn(f'would violate PodSecurity "{policy}": {why}')

    def _levels(self, labels: Object | None) -> Object:
        """The labels of a namespace with the cluster's defaults."""
        return {**{PREFIX + mode: level for mode, level in self.defaults.items()}, **(labels or {})}

    def _labels(self, before: Object | None, after: Object) -> None:
        """Check the labels' values; a stricter level causes a warning if pods run already."""
        labels, old = (dig(each, "metadata", "labels", default={}) or {} for each in (after, before))
        wrong = list(_wrong(labels))
        if wrong and wrong != list(_wrong(old)):
            raise invalid("Namespace", "", name_of(after), wrong)
        policy = _policy(self._levels(labels), "enforce")
        if before is None or policy == _policy(self._levels(old), "enforce"):
            return
        newest = self._cluster.registry.minor
        pods = [
            (name_of(pod), why)
            for pod in self._cluster.all("", "pods", name_of(after))
            if (why := policy.broken(pod, newest))
        ]
        if pods:
            self._cluster.warn(
                f'existing pods in namespace "{name_of(after)}" violate the new PodSecurity enforce '
                f'level "{policy}"'
            )
            for name, why in pods:
                self._cluster.warn(f"{name}: {why}")


def _policy(labels: Object, mode: str) -> Policy:
    """The level, privileged by default; the level of warnings is at least the enforced one."""
    level, version = labels.get(PREFIX + mode), labels.get(f"{PREFIX}{mode}-version")
    if mode == "warn" and level is None and labels.get(f"{PREFIX}enforce") in LEVELS:
        return Policy(labels[f"{PREFIX}enforce"], version or labels.get(f"{PREFIX}enforce-version", "latest"))
    if level not in LEVELS:
        level = "restricted" if mode == "enforce" and level is not None else "privileged"
    return Policy(level, version or "latest")


def _wrong(labels: Object) -> Iterator[Cause]:
    for mode in MODES:
        for name, fine, known in (
            (PREFIX + mode, lambda value: value in LEVELS, "must be one of privileged, baseline, restricted"),
            (
                f"{PREFIX}{mode}-version",
                lambda value: value == "latest" or VERSION.fullmatch(value),
                'must be "latest" or "v1.x"',
            ),
        ):
            if name in labels and not fine(labels[name]):
                yield Cause(
                    "FieldValueInvalid",
                    f'Invalid value: "{labels[name]}": {known}',
                    f"metadata.labels[{name}]",
                )


def _changed(before: Object, after: Object) -> bool:
    """Return whether a pod's containers have changed."""
    return any(
        dig(before, "spec", kind) != dig(after, "spec", kind)
        for kind in ("containers", "initContainers", "ephemeralContainers")
    )
