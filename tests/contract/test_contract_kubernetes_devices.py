"""The objects by which devices are claimed: made, read, listed, changed and removed; and a claim whose spec
changes.
"""

from __future__ import annotations

from typing import Any

import pytest
from contract.calls import call
from contract.sides import KubernetesSide

from bfinfra.model.errors import Rejected

API = "resource.k8s.io/v1"
CEL = {"cel": {"expression": "device.driver == 'contract.test' && device.attributes['contract.test'].a == 1"}}
DEVICES = {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "contract.test"}}]}}
SLICE = {
    "driver": "contract.test",
    "nodeName": "contract-node",
    "pool": {"name": "contract-node", "generation": 1, "resourceSliceCount": 1},
    "devices": [
        {
            "name": "gpu-0",
            "attributes": {"a": {"int": 1}, "v": {"version": "1.2.3"}, "contract.test/b": {"bool": True}},
            "capacity": {"memory": {"value": "40Gi"}},
        }
    ],
}
OBJECTS: dict[str, tuple[dict[str, Any], bool]] = {
    "DeviceClass": ({"selectors": [CEL]}, False),
    "ResourceSlice": (SLICE, False),
    "ResourceClaim": (DEVICES, True),
    "ResourceClaimTemplate": ({"spec": DEVICES}, True),
}
"""Kind → its spec, and whether it is in a namespace."""


@pytest.mark.parametrize("kind", OBJECTS)
@call(
    "cluster.create",
    "cluster.get",
    "cluster.list",
    "cluster.patch",
    "cluster.delete",
    case="devices by claims",
)
def test_the_life_of_what_claims_devices(kind: str, kubernetes: KubernetesSide, space: str) -> None:
    cluster, name = kubernetes.open(), f"contract-device{kubernetes.own}"
    spec, inside = OBJECTS[kind]
    home = space if inside else ""
    metadata = {"name": name, **({"namespace": home} if inside else {})}
    made = cluster.create({"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec})
    found = {each["metadata"]["name"]: each["metadata"]["uid"] for each in cluster.list(API, kind, home)}
    assert found[name] == made["metadata"]["uid"]
    cluster.patch(API, kind, name, {"metadata": {"labels": {"team": "a"}}}, home)
    after = cluster.get(API, kind, name, home)
    assert after
    assert (after["metadata"]["labels"], after["spec"]) == ({"team": "a"}, made["spec"])
    cluster.delete(API, kind, name, home)
    assert cluster.get(API, kind, name, home) is None


@call("cluster.create", "cluster.patch", "cluster.delete", case="the spec of a claim never changes")
def test_a_claim_keeps_its_spec(kubernetes: KubernetesSide, space: str) -> None:
    cluster, name = kubernetes.open(), f"contract-claim{kubernetes.own}"
    metadata = {"name": name, "namespace": space}
    cluster.create({"apiVersion": API, "kind": "ResourceClaim", "metadata": metadata, "spec": DEVICES})
    with pytest.raises(Rejected, match="field is immutable"):
        cluster.patch(API, "ResourceClaim", name, {"spec": {"devices": None}}, space)
    cluster.delete(API, "ResourceClaim", name, space)


@call("cluster.create", case="a slice of no node")
def test_a_slice_of_no_node_is_refused(kubernetes: KubernetesSide) -> None:
    spec = {key: value for key, value in SLICE.items() if key != "nodeName"}
    metadata = {"name": f"contract-slice{kubernetes.own}"}
    with pytest.raises(Rejected, match="exactly one of `nodeName`"):
        kubernetes.open().create(
            {"apiVersion": API, "kind": "ResourceSlice", "metadata": metadata, "spec": spec}
        )
