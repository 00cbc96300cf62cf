"""Supervisors by the API of supervisors: what a version of vCenter has, what is compared, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml
from kinds.lifecycle import EXAMPLES
from kinds.of_several import of_several
from pydantic import ValidationError

from bfinfra.backends.vcenter.supervisor_edges import Edge
from bfinfra.backends.vcenter.supervisors import Supervisor
from bfinfra.kinds.supervisor.supervisor import enabled, foundation
from bfinfra.kinds.supervisor.supervisor.body import VDS, VPC, Ids
from bfinfra.kinds.supervisor.supervisor.decide import Enable, State, Update, decide
from bfinfra.kinds.supervisor.supervisor.spec import Spec
from bfinfra.kinds.supervisor.supervisor.supervisors_body import asked
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark

OWN = Mark("s", "supervisor/farm")
IDS = Ids(
    {"farm": "domain-c1"},
    {"gold": "p", "silver": "q"},
    networks={"VM Network": "network-1", "workload": "dvportgroup-1"},
    zones={"rack-1": ("domain-c1",), "rack-2": ("domain-c2",), "rack-3": ("domain-c3",)},
    version="9.0.0.0",
)
HOW = yaml.safe_load(EXAMPLES["supervisor"].read_text())["supervisor"]["farm"]["enable"]
PLAIN = {name: value for name, value in HOW["vds"].items() if name != "haproxy"}
RACKS = ["rack-1", "rack-2", "rack-3"]
FOUNDATION = {"vds": {**PLAIN, "foundation": {"size": "medium", "storage": "gold"}}}
CLOUDS = {"vds": None, "vpc": {"private": ["172.30.0.0/20"], "project": "/orgs/default/projects/gpu"}}
NSX = {
    "vds": None,
    "nsx": {
        "switch": "pods",
        "edge_cluster": "e",
        "pods": ["10.244.0.0/20"],
        "ingress": ["10.6.1.0/24"],
        "egress": ["10.6.2.0/24"],
    },
}
EDGE = Edge("s-1", "primary", "MEDIUM", "ACTIVE_PASSIVE", "p", (("10.6.0.100", 20),))


def written(**changes):
    return Spec.model_validate({"enable": {**HOW, **changes}})


def decided(spec, ids=IDS, edge=None, zones=(), **info):
    found = Supervisor("domain-c1", "RUNNING", "READY", "10.6.0.100", info=info) if info else None
    mark = OWN.committed(spec.applied()) if info else None
    state = State(mark=mark, cluster="domain-c1", found=found, zones=zones, edge=edge)
    return decide("farm", spec, state, PlanContext(OWN, facts=ids))


@pytest.mark.parametrize(
    ("how", "version", "field"),
    [
        ({"zones": RACKS}, "7.0.3.0", "enable.zones"),
        (FOUNDATION, "8.0.3.0", "enable.vds.foundation"),
        (CLOUDS, "8.0.3.0", "enable.vpc"),
    ],
)
def test_what_a_release_does_not_have_is_refused_by_its_field(how, version, field):
    with pytest.raises(Refusal, match=f"vCenter {version} doesn't have it") as refused:
        decided(written(**how), replace(IDS, version=version))
    assert refused.value.field == field


@pytest.mark.parametrize("how", [{"zones": RACKS}, {"zones": ["rack-1"]}, FOUNDATION, CLOUDS])
def test_what_9_has_is_enabled(how):
    assert [type(step) for step in decided(written(**how))] == [Enable]


@pytest.mark.parametrize(
    ("how", "version", "anew"),
    [
        ({}, "7.0.3.0", False),
        ({}, "8.0.3.0", False),
        ({"zones": RACKS}, "8.0.3.0", True),
        ({}, "9.0.0.0", True),
        (NSX, "9.0.0.0", False),
    ],
)
def test_the_api_is_the_one_that_the_release_does_not_deprecate(how, version, anew):
    assert asked(written(**how).enable, version) is anew


@pytest.mark.parametrize(
    ("zones", "why"),
    [
        (["rack-1", "rack-2", "rack-9"], "no vSphere zone rack-9"),
        (["rack-2"], "farm is in none of these zones"),
    ],
)
def test_a_zone_that_can_not_be_is_refused(zones, why):
    with pytest.raises(Refusal, match=why):
        decided(written(zones=zones))


@pytest.mark.parametrize(
    "wrong",
    [
        {"zones": ["rack-1", "rack-2"]},
        {"zones": RACKS, **NSX},
        {"vpc": {"private": ["172.30.0.0/20"]}},
        {"vds": {**PLAIN, "foundation": {}, "services": None}},
        {"vds": {**HOW["vds"], "foundation": {}}},
        {"vds": None, "vpc": {"private": []}},
    ],
)
def test_what_does_not_fit_together_is_refused(wrong):
    with pytest.raises(ValidationError):
        written(**wrong)


@of_several("supervisor.enable.zones")
def test_other_zones_than_those_it_runs_in_are_refused():
    with pytest.raises(Refusal, match="has rack-1, not rack-1, rack-2, rack-3") as refused:
        decided(written(zones=RACKS), zones=("rack-1",), network_provider=VDS)
    assert refused.value.field == "enable.zones"
    assert decided(written(zones=RACKS), zones=("rack-3", "rack-2", "rack-1"), network_provider=VDS) == ()


def test_a_foundation_load_balancer_is_left_as_it_is_where_the_site_says_nothing():
    how = {"vds": {**PLAIN, "foundation": {}}}
    there = replace(EDGE, size="LARGE", storage="q")
    assert decided(written(**how), edge=there, network_provider=VDS) == ()


@pytest.mark.parametrize(
    ("there", "field", "sent"),
    [
        ({"size": "SMALL"}, "enable.vds.foundation.size", {"deployment_target": {"size": "MEDIUM"}}),
        ({"storage": "q"}, "enable.vds.foundation.storage", {"deployment_target": {"storage_policy": "p"}}),
        (
            {"addresses": (("10.6.0.100", 9),)},
            "enable.vds.services",
            {"vip_ranges": [{"address": "10.6.0.100", "count": 20}]},
        ),
    ],
)
def test_what_differs_of_a_foundation_load_balancer_is_changed(there, field, sent):
    spec = written(**FOUNDATION)
    (step,) = decided(spec, edge=replace(EDGE, **there), network_provider=VDS)
    assert (type(step), [change.field for change in step.changes]) == (Update, [field])
    assert foundation.body(spec.enable.vds, [field], IDS) == {
        "provider": "VSPHERE_FOUNDATION",
        "foundation": sent,
    }


def clouds(**changes):
    private = [{"address": "172.30.0.0", "prefix": 20}]
    reported = {"nsx_project": "/orgs/default/projects/gpu", "default_private_cidrs": private, **changes}
    return decided(written(**CLOUDS), network_provider=VPC, vpc_network=reported)


def test_private_networks_change_and_the_project_stays():
    assert clouds() == ()
    (step,) = clouds(default_private_cidrs=[{"address": "172.29.0.0", "prefix": 20}])
    assert [(change.field, change.now) for change in step.changes] == [
        ("enable.vpc.private", ["172.29.0.0/20"])
    ]
    assert enabled.body(written(**CLOUDS).enable, ["enable.vpc.private"], IDS) == {
        "network_provider": VPC,
        "vpc_cluster_network_spec": {"default_private_cidrs": [{"address": "172.30.0.0", "prefix": 20}]},
    }
    with pytest.raises(Refusal, match="has /orgs/default/projects/other, not") as refused:
        clouds(nsx_project="/orgs/default/projects/other")
    assert refused.value.field == "enable.vpc.project"


def test_another_networking_than_it_was_enabled_with_is_refused():
    with pytest.raises(Refusal, match="has VSPHERE_NETWORK, not NSX_VPC") as refused:
        decided(written(**CLOUDS), network_provider=VDS)
    assert refused.value.field == "enable.vpc"
