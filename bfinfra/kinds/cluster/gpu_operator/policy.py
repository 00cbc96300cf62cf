"""The operator's settings in a rendering: in its ClusterPolicy, or in a GPUCluster, and in NVIDIADrivers; and
the Secret of the license. Pure.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from bfinfra.backends.helm import merged
from bfinfra.kinds.cluster.base.rendered.objects import Manifest, group_of
from bfinfra.kinds.cluster.gpu_operator.spec import Spec

GROUP, KIND = "nvidia.com", "ClusterPolicy"
CLAIMS, DRIVER = "GPUCluster", "NVIDIADriver"
HOST_DRIVER = "vgpu-host-manager"
LICENSE = "bfinfra-vgpu-license"
FILE = "client_configuration_token.tok"


def driver_settings(spec: Spec) -> Manifest:
    """The fields of a driver that the spec names: the same in a ClusterPolicy and an NVIDIADriver."""
    found: Manifest = {}
    if spec.driver:
        for name in ("repository", "image", "version"):
            if value := getattr(spec.driver, name):
                found[name] = value
        if spec.driver.credential:
            found["imagePullSecrets"] = [spec.driver.credential]
    return found | license_settings(spec)


def license_settings(spec: Spec) -> Manifest:
    """The fields of a driver that name the license."""
    return {"licensingConfig": {"secretName": LICENSE, "nlsEnabled": True}} if spec.license else {}


def with_settings(found: Sequence[Manifest], spec: Spec, token: str) -> tuple[Manifest, ...]:
    """The rendered objects with the spec's settings, and the license's Secret. Raises ValueError for a
    rendering that can't take them.
    """
    policies, claims, drivers = (_of(found, kind) for kind in (KIND, CLAIMS, DRIVER))
    if len(policies) + len(claims) != 1:
        raise ValueError(
            f"it has {len(policies)} objects of type {KIND} and {len(claims)} of type {CLAIMS}; a GPU "
            "operator takes one"
        )
    changed = {id(each): _with(each, settings) for each, settings in _main(policies, claims, spec)}
    by_object = bool(claims) or _leaves_driver(policies[0])
    if by_object and (spec.driver or spec.license):
        changed |= {id(each): _with(each, settings) for each, settings in _drivers(drivers, spec)}
    secret = (_secret(token),) if spec.license else ()
    return (*(changed.get(id(each), each) for each in found), *secret)


def _main(
    policies: Sequence[Manifest], claims: Sequence[Manifest], spec: Spec
) -> list[tuple[Manifest, Manifest]]:
    metrics = {} if spec.metrics is None else {"dcgmExporter": {"enabled": spec.metrics}}
    if claims:
        if spec.allocate != "dra":
            raise ValueError(
                f"it has a {CLAIMS}, which gives GPUs by resource claims alone; write allocate: dra"
            )
        if spec.mig or spec.mig_layouts:
            raise ValueError(f"it has a {CLAIMS}, which has no MIG manager; remove mig and mig_layouts")
        return [(claims[0], metrics)]
    settings: Manifest = {"devicePlugin": {"enabled": spec.allocate == "device_plugin"}, **metrics}
    driver = {} if _leaves_driver(policies[0]) else driver_settings(spec)
    settings |= {"driver": driver} if driver else {}
    return [(policies[0], {**settings, **({"mig": {"strategy": spec.mig}} if spec.mig else {})})]


def _drivers(drivers: Sequence[Manifest], spec: Spec) -> list[tuple[Manifest, Manifest]]:
    """The NVIDIADrivers of guests, with what they get. Raises ValueError."""
    guests = [each for each in drivers if (each.get("spec") or {}).get("driverType") != HOST_DRIVER]
    if not guests:
        raise ValueError(
            f"it leaves the driver to objects of type {DRIVER}, and has none for driver and license"
        )
    if spec.driver and len(guests) > 1:
        raise ValueError(
            f"it has {len(guests)} objects of type {DRIVER}, and driver would make them the same; write "
            "their drivers in them, and remove driver"
        )
    return [(each, driver_settings(spec) if spec.driver else license_settings(spec)) for each in guests]


def _leaves_driver(policy: Manifest) -> bool:
    return bool(((policy.get("spec") or {}).get("driver") or {}).get("useNvidiaDriverCRD"))


def _of(found: Sequence[Manifest], kind: str) -> list[Manifest]:
    return [each for each in found if (group_of(each["apiVersion"]), each["kind"]) == (GROUP, kind)]


def _with(manifest: Manifest, settings: Manifest) -> Manifest:
    changed = copy.deepcopy(manifest)
    changed["spec"] = merged(changed.get("spec") or {}, settings)
    return changed


def _secret(token: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": LICENSE},
        "type": "Opaque",
        "stringData": {FILE: token, "gridd.conf": ""},
    }
