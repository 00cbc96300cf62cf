"""The operator's settings, a ClusterPolicy, and the Secret of the license. Pure."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from bfinfra.backends.helm import merged
from bfinfra.kinds.cluster.base.rendered.objects import Manifest, group_of
from bfinfra.kinds.cluster.gpu_operator.spec import Spec

GROUP, KIND = "nvidia.com", "ClusterPolicy"
LICENSE = "bfinfra-vgpu-license"
FILE = "client_configuration_token.tok"


def settings(spec: Spec) -> dict[str, Any]:
    """The fields of a ClusterPolicy that the spec names."""
    found: dict[str, Any] = {"devicePlugin": {"enabled": spec.allocate == "device_plugin"}}
    if spec.driver:
        names = {"repository": "repository", "image": "image", "version": "version"}
        driver = {to: value for of, to in names.items() if (value := getattr(spec.driver, of))}
        pulled = {"imagePullSecrets": [spec.driver.credential]} if spec.driver.credential else {}
        found["driver"] = {**driver, **pulled}
    if spec.license:
        licensed = {"licensingConfig": {"secretName": LICENSE, "nlsEnabled": True}}
        found["driver"] = {**found.get("driver", {}), **licensed}
    if spec.mig:
        found["mig"] = {"strategy": spec.mig}
    if spec.metrics is not None:
        found["dcgmExporter"] = {"enabled": spec.metrics}
    return found


def with_settings(found: Sequence[Manifest], spec: Spec, token: str) -> tuple[Manifest, ...]:
    """The rendered objects with the spec's settings, and the license's Secret. Raises ValueError if there is
    not one ClusterPolicy.
    """
    policies = [each for each in found if (group_of(each["apiVersion"]), each["kind"]) == (GROUP, KIND)]
    if len(policies) != 1:
        raise ValueError(f"it has {len(policies)} objects of type {KIND}; a GPU operator has one")
    changed = copy.deepcopy(policies[0])
    changed["spec"] = merged(changed.get("spec") or {}, settings(spec))
    rest = [each for each in found if each is not policies[0]]
    return (*rest, changed, *([_secret(token)] if spec.license else ()))


def _secret(token: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": LICENSE},
        "type": "Opaque",
        "stringData": {FILE: token, "gridd.conf": ""},
    }
