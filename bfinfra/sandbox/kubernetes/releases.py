"""Kubernetes releases that a supervisor offers, and what may follow what."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bfinfra.sandbox.kubernetes.objects import Object, condition

NUMBERS = re.compile(r"v(\d+)\.(\d+)(?:\.(\d+))?")


def resolve(wanted: str, releases: Iterable[str]) -> str | None:
    """The newest release that a version or its beginning (`v1.20`, `v1.20.2`) means; None for none."""
    wanted = wanted.replace("---", "+")
    found = [
        each
        for each in releases
        if each == wanted or (each.startswith(wanted) and each[len(wanted)] in ".+-")
    ]
    return max(found, key=_order) if found else None


def hindrance(before: str, after: str) -> str:
    """Return why a cluster may not go from one release to another; empty where it may."""
    old, new = _order(before), _order(after)
    if new[:3] < old[:3]:
        return (
            f"spec.distribution.version: Invalid value: {after}: downgrading from {before} is not supported"
        )
    if new[:2] > (old[0], old[1] + 1):
        return (
            f"spec.distribution.version: Invalid value: {after}: upgrading from {before} skips a minor "
            "version"
        )
    return ""


def newer(version: str, releases: Iterable[str]) -> list[str]:
    """Releases that a cluster of this one may go to, the newest first."""
    return sorted(
        (each for each in releases if _order(each) > _order(version) and not hindrance(version, each)),
        key=_order,
        reverse=True,
    )


def release(version: str, when: str) -> Object:
    """The TanzuKubernetesRelease object of a version."""
    return {
        "apiVersion": "run.tanzu.vmware.com/v1alpha1",
        "kind": "TanzuKubernetesRelease",
        "metadata": {"name": version.replace("+", "---")},
        "spec": {"version": version.lstrip("v"), "kubernetesVersion": version.partition("-tkg")[0]},
        "status": {
            "conditions": [condition(kind, status=True, when=when) for kind in ("Ready", "Compatible")]
        },
    }


def _order(version: str) -> tuple[int, int, int, str]:
    found = NUMBERS.match(version)
    major, minor, patch = (int(part or 0) for part in found.groups()) if found else (0, 0, 0)
    return (major, minor, patch, version)
