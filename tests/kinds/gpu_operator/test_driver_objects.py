"""Which objects of a rendering take the driver and the license: the ClusterPolicy, or the NVIDIADriver to which
it leaves the driver; and what a GPUCluster takes.
"""

from __future__ import annotations

from typing import Any

import pytest

from bfinfra.kinds.cluster.gpu_operator.policy import with_settings
from bfinfra.kinds.cluster.gpu_operator.spec import Spec

DRIVER = {"repository": "r.example.com/nv", "image": "vgpu", "version": "580.95.05", "credential": "ngc"}
SET = {"repository": "r.example.com/nv", "image": "vgpu", "version": "580.95.05", "imagePullSecrets": ["ngc"]}
LICENSE = {"licensingConfig": {"secretName": "bfinfra-vgpu-license", "nlsEnabled": True}}
TOKEN = {"token": {"env": "TOKEN"}}


def spec(**fields: Any) -> Spec:
    return Spec.model_validate({"cluster": "k", "files": [], "chart": CHART, **fields})


CHART = {"oci": "oci://r.example.com/gpu-operator", "digest": f"sha256:{'0' * 64}"}


def obj(kind: str, name: str = "x", **body: Any) -> dict[str, Any]:
    version = "v1" if kind == "ClusterPolicy" else "v1alpha1"
    return {"apiVersion": f"nvidia.com/{version}", "kind": kind, "metadata": {"name": name}, "spec": body}


BY_OBJECTS = obj("ClusterPolicy", driver={"enabled": True, "useNvidiaDriverCRD": True})


def by_name(found: Any) -> dict[str, Any]:
    return {f"{each['kind']}/{each['metadata']['name']}": each.get("spec") for each in found}


def test_a_policy_takes_all_of_it_while_it_installs_the_driver():
    found = [obj("ClusterPolicy", driver={"enabled": True}), obj("NVIDIADriver", version="1")]
    done = by_name(with_settings(found, spec(driver=DRIVER, license=TOKEN), "t"))
    assert done["ClusterPolicy/x"]["driver"] == {"enabled": True, **SET, **LICENSE}
    assert done["NVIDIADriver/x"] == {"version": "1"}, "the operator ignores it"
    assert "Secret/bfinfra-vgpu-license" in done


def test_the_driver_object_takes_it_where_the_policy_leaves_the_driver_to_it():
    found = [BY_OBJECTS, obj("NVIDIADriver", default=True, version="1")]
    done = by_name(with_settings(found, spec(driver=DRIVER, license=TOKEN), "t"))
    assert done["NVIDIADriver/x"] == {"default": True, **SET, **LICENSE}
    assert done["ClusterPolicy/x"]["driver"] == {"enabled": True, "useNvidiaDriverCRD": True}


def test_several_drivers_get_the_license_and_refuse_one_driver_for_all():
    host = obj("NVIDIADriver", "host", driverType="vgpu-host-manager")
    found = [BY_OBJECTS, obj("NVIDIADriver", "a", version="1"), obj("NVIDIADriver", "b", version="2"), host]
    done = by_name(with_settings(found, spec(license=TOKEN), "t"))
    assert done["NVIDIADriver/a"] == {"version": "1", **LICENSE}
    assert done["NVIDIADriver/b"] == {"version": "2", **LICENSE}
    assert done["NVIDIADriver/host"] == {"driverType": "vgpu-host-manager"}
    with pytest.raises(ValueError, match="it has 2 objects of type NVIDIADriver, and driver would make them"):
        with_settings(found, spec(driver=DRIVER), "")


def test_a_policy_that_leaves_the_driver_to_nobody_is_refused():
    with pytest.raises(
        ValueError, match="it leaves the driver to objects of type NVIDIADriver, and has none"
    ):
        with_settings([BY_OBJECTS], spec(license=TOKEN), "t")
    assert with_settings([BY_OBJECTS], spec(), "")


def test_a_gpu_cluster_takes_claims_metrics_and_a_driver_object():
    found = [obj("GPUCluster", "gpu-cluster", draDriver={}), obj("NVIDIADriver", version="1")]
    done = by_name(with_settings(found, spec(allocate="dra", metrics=True, driver=DRIVER), ""))
    assert done["GPUCluster/gpu-cluster"] == {"draDriver": {}, "dcgmExporter": {"enabled": True}}
    assert done["NVIDIADriver/x"] == SET


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "write allocate: dra"),
        ({"allocate": "dra", "mig": "mixed"}, "which has no MIG manager; remove mig and mig_layouts"),
        ({"allocate": "dra", "license": TOKEN}, "it leaves the driver to objects of type NVIDIADriver"),
    ],
)
def test_what_a_gpu_cluster_can_not_take_is_refused(fields, why):
    with pytest.raises(ValueError, match=why):
        with_settings([obj("GPUCluster", draDriver={})], spec(**fields), "t")


@pytest.mark.parametrize(
    "found",
    [[], [obj("ClusterPolicy"), obj("ClusterPolicy", "y")], [obj("ClusterPolicy"), obj("GPUCluster")]],
)
def test_a_rendering_has_one_of_them(found):
    with pytest.raises(ValueError, match="a GPU operator takes one"):
        with_settings(found, spec(), "")
