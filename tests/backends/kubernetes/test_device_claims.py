"""Devices by claims: the sandbox and a kube-apiserver with its scheduler take the same objects, refuse the same
ones, and give pods the same devices, in the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from waiting import until

from bfinfra.backends.kubernetes import ClusterClient
from bfinfra.model.errors import Rejected

API = "resource.k8s.io/v1"
ADMIN = "resource.kubernetes.io/admin-access"
GPU = {"type": {"string": "gpu"}, "uuid": {"string": "GPU-1"}}


@pytest.fixture
def server_version() -> str:
    return "v1.36.3"


@dataclass(frozen=True)
class Place:
    """A node and a driver of the test's own, and its namespace."""

    cluster: ClusterClient
    space: str

    @property
    def driver(self) -> str:
        return f"{self.space}.test"

    def made(self, kind: str, name: str, spec: Any, api: str = API) -> Any:
        body = {"apiVersion": api, "kind": kind, "metadata": {"name": name}, "spec": spec}
        if kind not in ("DeviceClass", "ResourceSlice", "Node"):
            body["metadata"]["namespace"] = self.space
        return self.cluster.create(body)

    def offers(self, *names: str, **attributes: Any) -> None:
        """A slice of the node with these devices."""
        devices = [{"name": name, "attributes": {**GPU, **attributes}} for name in names]
        pool = {"name": self.space, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": self.driver, "nodeName": self.space, "pool": pool, "devices": devices}
        self.made("ResourceSlice", self.space, spec)

    def of_class(self, test: str = "") -> None:
        expression = f"device.driver == '{self.driver}' && {test or self.attribute('type')} == 'gpu'"
        self.made("DeviceClass", self.driver, {"selectors": [{"cel": {"expression": expression}}]})

    def attribute(self, name: str) -> str:
        return f"device.attributes['{self.driver}'].{name}"

    def asks(self, *selectors: str, **more: Any) -> Any:
        """A claim's spec with one request."""
        exactly: Any = {"deviceClassName": self.driver, **more}
        if selectors:
            exactly["selectors"] = [{"cel": {"expression": each}} for each in selectors]
        return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}

    def pod(self, name: str, claim: str = "", template: str = "") -> None:
        of = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": template}
        used = {"claims": [{"name": "gpu"}]}
        spec = {
            "restartPolicy": "Never",
            "nodeSelector": {"own": self.space},
            "tolerations": [{"key": self.space, "operator": "Exists"}],
            "resourceClaims": [{"name": "gpu", **of}],
            "containers": [{"name": "c", "image": "x:1", "resources": used}],
        }
        until(lambda: self.cluster.get("v1", "ServiceAccount", "default", self.space))
        self.made("Pod", name, spec, "v1")

    def at(self, name: str) -> str:
        """The node of a pod; "" while there is none."""
        pod = self.cluster.get("v1", "Pod", name, self.space) or {}
        return str(pod.get("spec", {}).get("nodeName") or "")

    def claim(self, name: str) -> Any:
        return self.cluster.get(API, "ResourceClaim", name, self.space)

    def devices(self, name: str) -> list[str]:
        found = (self.claim(name) or {}).get("status", {}).get("allocation", {}).get("devices", {})
        return [each["device"] for each in found.get("results", [])]

    def words(self, name: str) -> tuple[str, str]:
        """Why a pod is not scheduled, without the numbers of nodes: reason and message."""
        pod = self.cluster.get("v1", "Pod", name, self.space) or {}
        for each in pod.get("status", {}).get("conditions", []):
            if each["type"] == "PodScheduled" and each["status"] == "False":
                return each["reason"], re.sub(r"\d+", "N", each["message"].replace(self.space, "OWN"))
        return "", ""

    def gone(self, name: str) -> None:
        self.cluster.delete("v1", "Pod", name, self.space)
        until(lambda: self.cluster.get("v1", "Pod", name, self.space) is None)


@pytest.fixture
def place(cluster: ClusterClient, space: str) -> Iterator[Place]:
    found = Place(cluster, space)
    labels = {"own": space, "type": "kwok"}
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": space, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "spec": {"taints": [{"key": space, "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "110"}},
    }
    cluster.create(node)
    yield found
    for pod in cluster.list("v1", "Pod", space):
        found.gone(pod["metadata"]["name"])
    for api, kind, name in (
        (API, "ResourceSlice", space),
        (API, "DeviceClass", found.driver),
        ("v1", "Node", space),
    ):
        cluster.delete(api, kind, name)


def pool(**fields: Any) -> Any:
    return {"name": "p", "generation": 1, "resourceSliceCount": 1, **fields}


def sliced(*devices: Any, **fields: Any) -> Any:
    return {"driver": "a.test", "nodeName": "n", "pool": pool(), "devices": [*devices], **fields}


def requests(*each: Any) -> Any:
    return {"devices": {"requests": [*each]}}


def exactly(**fields: Any) -> Any:
    return requests({"name": "a", "exactly": {"deviceClassName": "x", **fields}})


def selected(expression: str) -> Any:
    return {"selectors": [{"cel": {"expression": expression}}]}


REFUSED = {
    "no expression": ("DeviceClass", {"selectors": [{}]}, "spec.selectors[0].cel"),
    "an empty one": ("DeviceClass", selected(""), "spec.selectors[0].cel.expression"),
    "one that can't be read": ("DeviceClass", selected("device.driver = 'x'"), "cel.expression"),
    "one that is no test": ("DeviceClass", selected("device.driver"), "cel.expression"),
    "one of other types": ("DeviceClass", selected("device.driver == 1"), "cel.expression"),
    "no name": ("ResourceClaim", requests({"exactly": {"deviceClassName": "x"}}), "requests[0].name"),
    "no request": ("ResourceClaim", requests({"name": "a"}), "spec.devices.requests[0]"),
    "no class": ("ResourceClaim", exactly(deviceClassName=""), "requests[0].exactly.deviceClassName"),
    "a class of no name": ("ResourceClaim", exactly(deviceClassName="X y"), "exactly.deviceClassName"),
    "a negative count": ("ResourceClaim", exactly(count=-1), "requests[0].exactly.count"),
    "all, and a count": ("ResourceClaim", exactly(allocationMode="All", count=2), "exactly.count"),
    "an unknown mode": ("ResourceClaim", exactly(allocationMode="Some"), "exactly.allocationMode"),
    "a name twice": (
        "ResourceClaim",
        requests(*[{"name": "a", "exactly": {"deviceClassName": "x"}}] * 2),
        "spec.devices.requests[1]",
    ),
    "admin access": ("ResourceClaim", exactly(adminAccess=True), "spec.devices.requests[0].adminAccess"),
    "a bad template": ("ResourceClaimTemplate", {"spec": exactly(count=-1)}, "spec.spec.devices.requests[0]"),
    "no driver": ("ResourceSlice", sliced(driver=""), "spec.driver"),
    "no pool": ("ResourceSlice", sliced(pool=pool(name="")), "spec.pool.name"),
    "no slices": ("ResourceSlice", sliced(pool=pool(resourceSliceCount=0)), "spec.pool.resourceSliceCount"),
    "a negative generation": ("ResourceSlice", sliced(pool=pool(generation=-1)), "spec.pool.generation"),
    "no node": ("ResourceSlice", {"driver": "a.test", "pool": pool()}, "spec"),
    "two places": ("ResourceSlice", sliced(allNodes=True), "spec"),
    "a device of no name": ("ResourceSlice", sliced({"name": "A"}), "spec.devices[0].name"),
    "a device twice": ("ResourceSlice", sliced({"name": "a"}, {"name": "a"}), "spec.devices[1]"),
    "no value": ("ResourceSlice", sliced({"name": "a", "attributes": {"x": {}}}), "attributes[x]"),
    "two values": (
        "ResourceSlice",
        sliced({"name": "a", "attributes": {"x": {"string": "a", "int": 1}}}),
        "attributes[x]",
    ),
    "no version": (
        "ResourceSlice",
        sliced({"name": "a", "attributes": {"v": {"version": "1.2"}}}),
        "attributes[v].version",
    ),
    "no identifier": (
        "ResourceSlice",
        sliced({"name": "a", "attributes": {"y-z": {"string": "a"}}}),
        "spec.devices[0].attributes",
    ),
    "a text too long": (
        "ResourceSlice",
        sliced({"name": "a", "attributes": {"x": {"string": "a" * 65}}}),
        "attributes[x].string",
    ),
}


def test_what_is_refused(place):
    for what, (kind, spec, field) in REFUSED.items():
        name = place.driver if kind == "DeviceClass" else place.space
        with pytest.raises(Rejected) as refused:
            place.made(kind, name, spec)
        assert field in str(refused.value), what


CLAIM = {"name": "gpu", "resourceClaimName": "x"}
POD_CLAIMS = {
    "nothing": ([{"name": "gpu"}], "gpu", "spec.resourceClaims[0]"),
    "both": ([{**CLAIM, "resourceClaimTemplateName": "y"}], "gpu", "spec.resourceClaims[0]"),
    "a name twice": ([CLAIM, CLAIM], "gpu", "spec.resourceClaims[1].name"),
    "an unknown name": ([CLAIM], "other", "spec.containers[0].resources.claims[0]"),
}


def test_what_is_refused_of_a_pod(place):
    until(lambda: place.cluster.get("v1", "ServiceAccount", "default", place.space))
    for what, (claims, used, field) in POD_CLAIMS.items():
        container = {"name": "c", "image": "x:1", "resources": {"claims": [{"name": used}]}}
        with pytest.raises(Rejected) as refused:
            place.made("Pod", "p", {"resourceClaims": claims, "containers": [container]}, "v1")
        assert field in str(refused.value), what


def test_a_claim_gets_its_defaults_and_its_spec_never_changes(place):
    made = place.made("ResourceClaim", "one", exactly())
    assert made["spec"]["devices"]["requests"][0]["exactly"] == {
        "deviceClassName": "x",
        "allocationMode": "ExactCount",
        "count": 1,
    }
    with pytest.raises(Rejected, match="field is immutable"):
        place.cluster.patch(API, "ResourceClaim", "one", {"spec": {"devices": None}}, place.space)


def test_a_claim_is_shared_by_pods_and_released_by_the_last(place):
    place.of_class()
    place.made("ResourceClaim", "one", place.asks())
    place.pod("a", "one")
    place.pod("b", "one")
    until(lambda: "N cannot allocate all claims" in place.words("a")[1])
    reason, message = place.words("a")
    assert (reason, message.partition("available: ")[0]) == ("Unschedulable", "N/N nodes are ")
    assert message.endswith(
        ". still not schedulable, preemption: N/N nodes are available: N Preemption is not helpful for "
        "scheduling."
    )
    place.offers("gpu-0")
    until(lambda: place.at("a") == place.at("b") == place.space)
    status = place.claim("one")["status"]
    (result,) = status["allocation"]["devices"]["results"]
    assert result == {"request": "gpu", "driver": place.driver, "pool": place.space, "device": "gpu-0"}
    (term,) = status["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    assert term == {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [place.space]}]}
    assert {each["name"] for each in status["reservedFor"]} == {"a", "b"}
    assert "resource.kubernetes.io/delete-protection" in place.claim("one")["metadata"]["finalizers"]
    place.gone("a")
    until(lambda: [each["name"] for each in place.claim("one")["status"]["reservedFor"]] == ["b"])
    place.gone("b")
    until(lambda: "allocation" not in place.claim("one")["status"])
    until(lambda: not place.claim("one")["metadata"].get("finalizers"))


def test_a_template_makes_a_claim_for_each_pod_that_goes_with_it(place):
    place.of_class()
    place.offers("gpu-0")
    place.made("ResourceClaimTemplate", "each", {"spec": place.asks()})
    place.pod("first", template="each")
    until(lambda: place.at("first"))
    place.pod("second", template="each")
    until(lambda: place.words("second")[0] == "Unschedulable")
    pod = place.cluster.get("v1", "Pod", "first", place.space)
    (status,) = pod["status"]["resourceClaimStatuses"]
    claim = place.claim(status["resourceClaimName"])
    assert claim["metadata"]["generateName"] == "first-gpu-"
    assert claim["metadata"]["annotations"]["resource.kubernetes.io/pod-claim-name"] == "gpu"
    (owner,) = claim["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("Pod", "first", True)
    place.gone("first")
    until(lambda: place.at("second") == place.space)
    until(lambda: place.claim(status["resourceClaimName"]) is None)


def test_a_claim_that_a_pod_uses_stays_until_the_pod_is_gone(place):
    place.of_class()
    place.offers("gpu-0")
    place.made("ResourceClaim", "one", place.asks())
    place.pod("a", "one")
    until(lambda: place.devices("one"))
    place.cluster.delete(API, "ResourceClaim", "one", place.space)
    assert place.claim("one")["metadata"]["deletionTimestamp"]
    place.gone("a")
    until(lambda: place.claim("one") is None)


def test_selectors_counts_and_all_choose_devices(place):
    place.of_class()
    place.offers("gpu-0", "gpu-1", "gpu-2")
    place.made("ResourceClaim", "two", place.asks(count=2))
    place.made("ResourceClaim", "all", place.asks(allocationMode="All"))
    other = place.asks(f"{place.attribute('uuid')} == 'GPU-2' || {place.attribute('type')} != 'gpu'")
    place.made("ResourceClaim", "other", other)
    for name in ("two", "other"):
        place.pod(name, name)
    until(lambda: len(place.devices("two")) == 2)
    until(lambda: place.words("other")[0] == "Unschedulable")
    place.pod("all", "all")
    until(lambda: place.words("all")[0] == "Unschedulable")
    place.gone("two")
    until(lambda: place.devices("all") == ["gpu-0", "gpu-1", "gpu-2"])


def test_admin_access_takes_devices_that_are_in_use(place):
    place.of_class()
    place.offers("gpu-0")
    place.made("ResourceClaim", "one", place.asks())
    place.pod("a", "one")
    until(lambda: place.devices("one"))
    place.cluster.patch("v1", "Namespace", place.space, {"metadata": {"labels": {ADMIN: "true"}}})
    place.made("ResourceClaim", "admin", place.asks(allocationMode="All", adminAccess=True))
    place.pod("b", "admin")
    until(lambda: place.devices("admin") == ["gpu-0"])
    assert place.claim("admin")["status"]["allocation"]["devices"]["results"][0]["adminAccess"] is True


def test_a_missing_class_is_named(place):
    place.made("ResourceClaim", "one", place.asks())
    place.pod("a", "one")
    until(lambda: place.words("a")[0])
    message = (
        "N/N nodes are available: request gpu: device class OWN.test does not exist. no new claims to "
        "deallocate, preemption: N/N nodes are available: N Preemption is not helpful for scheduling."
    )
    assert place.words("a") == ("Unschedulable", message)
    place.offers("gpu-0")
    place.of_class()
    until(lambda: place.at("a") == place.space)


def test_an_attribute_that_a_device_lacks_is_an_error(place):
    place.of_class(place.attribute("color"))
    place.offers("gpu-0")
    place.made("ResourceClaim", "one", place.asks())
    place.pod("a", "one")
    until(lambda: place.words("a")[0] == "SchedulerError")
    why = "class OWN.test: selector #N: CEL runtime error: no such key: color"
    assert place.words("a")[1] == f'running "DynamicResources" filter plugin: {why}'


def test_a_pod_whose_claim_is_missing_is_passed_over(place):
    place.of_class()
    place.offers("gpu-0")
    place.pod("a", "late")
    place.pod("b", template="late")
    place.made("ResourceClaim", "other", place.asks())
    place.pod("c", "other")
    until(lambda: place.at("c"))
    assert place.words("a") == place.words("b") == ("", "")
    until(lambda: "FailedResourceClaimCreation" in events(place, "b"))
    place.gone("c")
    place.made("ResourceClaim", "late", place.asks())
    until(lambda: place.at("a") == place.space)


def events(place: Place, pod: str) -> set[str]:
    found = place.cluster.list("v1", "Event", place.space)
    return {each["reason"] for each in found if each["involvedObject"]["name"] == pod}
