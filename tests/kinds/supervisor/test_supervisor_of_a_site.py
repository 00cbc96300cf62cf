"""Supervisors: what is decided, one with a namespace from an empty cluster, one that is there and taken over,
and what destroy leaves.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, SPECS, apply, endings, made, plan
from kinds.of_several import of_several
from pydantic import ValidationError
from sandbox.asking import Rest
from waiting import until

from bfinfra.backends.vcenter.supervisors import Supervisor
from bfinfra.kinds.supervisor.base.cluster_notes import Leave, Take
from bfinfra.kinds.supervisor.supervisor.body import NSX, VDS, Ids
from bfinfra.kinds.supervisor.supervisor.decide import Disable, Enable, State, Update, decide
from bfinfra.kinds.supervisor.supervisor.enabled import body
from bfinfra.kinds.supervisor.supervisor.spec import Spec
from bfinfra.model.awaited import Absent, Awaited
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import BfinfraError, Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.readiness import Ready
from bfinfra.sandbox import start, stop

OWN = Mark("s", "supervisor/farm")
AROUND = PlanContext(
    OWN,
    facts=Ids(
        {"farm": "domain-c1"},
        {"gold": "p"},
        {"tkr": "l"},
        {"VM Network": "network-1", "workload": "dvportgroup-1"},
    ),
)
EXAMPLE = yaml.safe_load(EXAMPLES["supervisor"].read_text())["supervisor"]["farm"]
CLUSTERS = "/api/vcenter/namespace-management/clusters"
HOW = Spec(enable=EXAMPLE["enable"])


def found(**changes):
    info = {
        "network_provider": VDS,
        "service_cidr": {"address": "10.96.0.0", "prefix": 23},
        "master_NTP_servers": ["a"],
        "size_hint": "SMALL",
    }
    return Supervisor("domain-c1", "RUNNING", "READY", "10.6.0.100", info=info | changes)


def existing(spec=None, mark=None, **changes):
    return State(
        mark=OWN.committed(spec.applied()) if spec else mark, cluster="domain-c1", found=found(**changes)
    )


def kinds(steps):
    return [type(step) for step in steps]


@pytest.mark.parametrize(
    ("spec", "state", "steps"),
    [
        (HOW, None, [Enable]),
        (HOW, State(mark=OWN.committed(HOW.applied()), cluster="domain-c1"), [Enable]),
        (HOW, existing(HOW), []),
        (HOW, existing(), [Take]),
        (Spec(), existing(), [Take]),
        (Spec(ntp=("b",)), existing(), [Update]),
        (Spec(ntp=("a",)), existing(Spec(ntp=("a",))), []),
        (Spec(size="large"), existing(Spec()), [Update]),
        (None, existing(), []),
        (None, existing(Spec()), [Leave]),
        (None, existing(Spec(disable=True)), [Disable, Leave]),
        (None, State(mark=OWN.committed(Spec(disable=True).applied()), cluster="domain-c1"), [Leave]),
    ],
)
def test_what_is_decided(spec, state, steps):
    assert kinds(decide("farm", spec, state, AROUND)) == steps


@pytest.mark.parametrize(
    ("spec", "state", "why"),
    [
        (Spec(), None, "no supervisor runs on farm"),
        (HOW, existing(network_provider=NSX), "has NSXT_CONTAINER_PLUGIN, not VSPHERE_NETWORK"),
        (HOW, existing(service_cidr={"address": "10.0.0.0", "prefix": 8}), r"has 10\.0\.0\.0/8, not 10\.96"),
        (Spec(), existing(mark=Mark("theirs", "supervisor/farm")), "by another site"),
        (Spec(content_library="tkx"), existing(), "no content library tkx"),
    ],
)
def test_what_can_not_be_is_refused(spec, state, why):
    with pytest.raises(Refusal, match=why):
        decide("farm", spec, state, AROUND)


def test_what_leads_to_a_load_balancer_is_its_authority_and_its_password():
    assert list(HOW.entrances()) == ["enable.vds.haproxy.authority", "enable.vds.haproxy.password"]


@pytest.mark.parametrize("field", HOW.entrances())
def test_one_that_is_enabled_waits_for_what_leads_to_its_load_balancer_and_one_that_runs_does_not(field):
    context = replace(
        AROUND, facts=replace(AROUND.facts, away={"farm": (field, Absent("ca.pem is not there yet"))})
    )
    with pytest.raises(Awaited, match=r"ca\.pem is not there yet") as awaited:
        decide("farm", HOW, None, context)
    assert (awaited.value.field, kinds(awaited.value.steps)) == (field, [Enable])
    assert field in Spec.awaits
    assert kinds(decide("farm", HOW, existing(HOW), context)) == []
    assert kinds(decide("farm", Spec(enable=HOW.enable, ntp=("b",)), existing(HOW), context)) == [Update]


RANGE = {
    "starting_address": "10.2.0.210",
    "address_count": 5,
    "subnet_mask": "255.255.255.0",
    "gateway": "10.2.0.1",
}
MEETING = {"network": "network-1", "mode": "STATICRANGE", "address_range": RANGE}
PRIMARY = {
    "portgroup": "dvportgroup-1",
    "address_ranges": [{"address": "10.6.0.10", "count": 40}],
    "gateway": "10.6.0.1",
    "subnet_mask": "255.255.255.0",
}
BALANCER = {
    "id": "primary",
    "provider": "HA_PROXY",
    "address_ranges": [{"address": "10.6.0.100", "count": 20}],
    "ha_proxy_info": {
        "servers": [{"host": "10.2.0.220", "port": 5556}],
        "username": "admin",
        "certificate_authority_chain": "",
    },
}


def seen_facts(meeting=None, primary=None, balancer=None, **policies):
    """All that vCenter may tell of one that was enabled as the example says."""
    network = {
        "network": "primary",
        "network_provider": VDS,
        "vsphere_network": {**PRIMARY, **(primary or {})},
    }
    fields = {
        "master_storage_policy": "p",
        "ephemeral_storage_policy": "p",
        "image_storage": {"storage_policy": "p"},
        **policies,
    }
    return existing(
        HOW,
        master_management_network={**MEETING, **(meeting or {})},
        workload_networks={"supervisor_primary_workload_network": network},
        load_balancers=[{**BALANCER, **(balancer or {})}],
        **fields,
    )


@of_several(
    "supervisor.enable.management.addresses.count",
    "supervisor.enable.vds.addresses.count",
    "supervisor.enable.vds.services.count",
)
def test_one_that_is_as_it_is_written_is_left():
    assert decide("farm", HOW, seen_facts(), AROUND) == ()


@pytest.mark.parametrize(
    ("how", "field"),
    [
        ({"meeting": {"network": "dvportgroup-1"}}, "management.network"),
        ({"meeting": {"mode": "DHCP", "address_range": None}}, "management.addresses"),
        ({"meeting": {"address_range": {**RANGE, "address_count": 6}}}, "management.addresses"),
        ({"meeting": {"address_range": {**RANGE, "gateway": "10.2.0.254"}}}, "management.gateway"),
        ({"primary": {"portgroup": "network-1"}}, "vds.port_group"),
        ({"primary": {"gateway": "10.6.0.2"}}, "vds.gateway"),
        ({"primary": {"address_ranges": [{"address": "10.6.0.10", "count": 50}]}}, "vds.addresses"),
        ({"balancer": {"address_ranges": [{"address": "10.6.0.99", "count": 20}]}}, "vds.services"),
        ({"balancer": {"ha_proxy_info": {"servers": [], "username": "admin"}}}, "vds.haproxy.servers"),
        (
            {
                "balancer": {
                    "ha_proxy_info": {"servers": BALANCER["ha_proxy_info"]["servers"], "username": "root"}
                }
            },
            "vds.haproxy.username",
        ),
    ],
)
def test_what_only_enabling_decides_is_refused_by_its_field(how, field):
    with pytest.raises(Refusal, match=r"its supervisor has .*, not ") as refused:
        decide("farm", HOW, seen_facts(**how), AROUND)
    assert refused.value.field == f"enable.{field}"


@of_several("supervisor.enable.vds.haproxy.servers")
def test_each_data_plane_of_a_load_balancer_counts():
    both = [{"host": "10.2.0.220", "port": 5556}, {"host": "10.2.0.221", "port": 5556}]
    vds = EXAMPLE["enable"]["vds"]
    servers = [f"{each['host']}:{each['port']}" for each in both]
    given = {**EXAMPLE["enable"], "vds": {**vds, "haproxy": {**vds["haproxy"], "servers": servers}}}
    how = Spec.model_validate({"enable": given})

    def decided(*there):
        info = {**BALANCER["ha_proxy_info"], "servers": [*there]}
        now = replace(seen_facts(balancer={"ha_proxy_info": info}), mark=OWN.committed(how.applied()))
        return decide("farm", how, now, AROUND)

    assert decided(*both) == ()
    with pytest.raises(Refusal, match=r"10\.2\.0\.221"):
        decided(both[0])


AVI = {
    "username": "admin",
    "password": {"env": "HAPROXY_PASSWORD"},
    "authority": "ca.pem",
    "server": "10.2.0.220:443",
}


@pytest.mark.parametrize(
    "services",
    [{}, {"services": {"first": "10.6.0.100", "count": 20}}],
    ids=["its own addresses", "addresses that are ignored"],
)
def test_a_supervisor_with_avi_names_no_addresses(services):
    """Recorded of a real one: address_ranges is empty there."""
    plain = {
        name: value for name, value in EXAMPLE["enable"]["vds"].items() if name not in ("haproxy", "services")
    }
    how = Spec.model_validate({"enable": {**EXAMPLE["enable"], "vds": {**plain, **services, "avi": AVI}}})
    avi = {"server": {"host": "10.2.0.220", "port": 443}, "username": "admin"}
    there = seen_facts(
        balancer={"provider": "AVI", "address_ranges": [], "ha_proxy_info": None, "avi_info": avi}
    )
    assert decide("farm", how, replace(there, mark=OWN.committed(how.applied())), AROUND) == ()


def test_haproxy_needs_addresses():
    with pytest.raises(ValidationError, match="give the addresses that HAProxy gives to services"):
        Spec.model_validate(
            {"enable": {**EXAMPLE["enable"], "vds": {**EXAMPLE["enable"]["vds"], "services": None}}}
        )


def test_storage_policies_change_where_they_differ():
    (step,) = decide("farm", HOW, seen_facts(image_storage={"storage_policy": "other"}), AROUND)
    assert (type(step), [(change.field, change.now, change.wanted) for change in step.changes]) == (
        Update,
        [("enable.storage.images", "other", "gold")],
    )
    assert body(HOW.enable, [change.field for change in step.changes], AROUND.facts) == {
        "image_storage": {"storage_policy": "p"}
    }


NSX_HOW = Spec(
    enable={
        **EXAMPLE["enable"],
        "vds": None,
        "nsx": {
            "switch": "pods",
            "edge_cluster": "e",
            "pods": ["10.244.0.0/20", "10.245.0.0/20"],
            "ingress": ["10.6.1.0/24"],
            "egress": ["10.6.2.0/24"],
        },
    }
)
NETS = {
    "pod_cidrs": [{"address": "10.244.0.0", "prefix": 20}],
    "ingress_cidrs": [{"address": "10.6.1.0", "prefix": 24}],
    "egress_cidrs": [{"address": "10.6.2.0", "prefix": 24}],
    "cluster_distributed_switch": "uuid",
    "nsx_edge_cluster": "e",
    "nsx_tier0_gateway": "t0",
}


def by_nsx(**changes):
    facts = Ids(
        {"farm": "domain-c1"},
        {"gold": "p"},
        networks={"VM Network": "network-1"},
        switches={"pods": "uuid", "others": "uuid-2"},
    )
    return decide(
        "farm",
        NSX_HOW,
        existing(NSX_HOW, network_provider=NSX, ncp_cluster_network_info={**NETS, **changes}),
        PlanContext(OWN, facts=facts),
    )


def test_networks_of_nsx_are_added_and_none_is_taken_away():
    (step,) = by_nsx()
    assert [(change.field, change.now) for change in step.changes] == [("enable.nsx.pods", ["10.244.0.0/20"])]
    pods = [{"address": f"10.{n}.0.0", "prefix": 20} for n in (244, 245)]
    assert body(NSX_HOW.enable, ["enable.nsx.pods"], Ids()) == {
        "network_provider": NSX,
        "ncp_cluster_network_spec": {"pod_cidrs": pods},
    }
    with pytest.raises(Refusal, match=r"has 10\.9\.0\.0/24"):
        by_nsx(egress_cidrs=[*NETS["egress_cidrs"], {"address": "10.9.0.0", "prefix": 24}])


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cluster_distributed_switch": "uuid-2"}, "nsx.switch"),
        ({"nsx_edge_cluster": "f"}, "nsx.edge_cluster"),
    ],
)
def test_what_nsx_was_enabled_with_stays(changes, field):
    with pytest.raises(Refusal) as refused:
        by_nsx(**changes)
    assert refused.value.field == f"enable.{field}"


@pytest.mark.parametrize(
    "wrong",
    [
        {"nsx": None, "vds": None},
        {"management": {"network": "n", "gateway": "10.0.0.1/24"}},
        {"services": "10.96.0.1/23"},
    ],
)
def test_what_does_not_fit_together_is_refused(wrong):
    with pytest.raises(ValidationError):
        Spec(enable={**EXAMPLE["enable"], **wrong})


@pytest.mark.parametrize(
    ("status", "kubernetes", "ready"),
    [
        ("RUNNING", "READY", Ready.READY),
        ("RUNNING", "WARNING", Ready.WAITING),
        ("CONFIGURING", "WARNING", Ready.WAITING),
        ("ERROR", "ERROR", Ready.FAILED),
    ],
)
def test_it_is_ready_when_vcenter_and_kubernetes_say_so(status, kubernetes, ready):
    from bfinfra.kinds.supervisor.supervisor.kind import SupervisorKind  # noqa: PLC0415 - a method of it alone, without a server

    state = State(cluster="c", found=Supervisor("c", status, kubernetes, "10.6.0.100"))
    assert SupervisorKind.ready(None, Spec(), state).status is ready


def written(tmp_path: Path, **changes) -> Path:
    site = yaml.safe_load(EXAMPLES["supervisor"].read_text())
    site["supervisor"]["farm"] |= changes
    site["supervisor_namespace"] = {"team-a": {"cluster": "farm", "storage": {"gold": "1TiB"}}}
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(site))
    return path


def test_from_an_empty_cluster_to_a_namespace_and_back(sandbox, tmp_path: Path):
    path = written(tmp_path)
    outcome = apply(path, sandbox)
    assert made(outcome), endings(outcome)
    notes = {str(key): ended.note for key, ended in outcome.endings.items()}
    assert notes["supervisor/farm"] == "10.6.0.100"
    assert plan(path, sandbox).pending == ()
    rest = Rest(sandbox)
    farm = next(each for each in rest.get(CLUSTERS) if each["cluster_name"] == "farm")
    assert (
        rest.call(
            "POST", "/api/vcenter/namespaces/instances", {"cluster": farm["cluster"], "namespace": "theirs"}
        ).status
        == 204
    )
    until(lambda: rest.get("/api/vcenter/namespaces/instances/theirs")["config_status"] == "RUNNING")
    leaving = {str(item.key): item.contents for item in plan(path, sandbox, destroy=True).items}
    assert leaving["supervisor/farm"] == ("namespace theirs",)
    with pytest.raises(BfinfraError, match="contains objects that are not this site's"):
        apply(path, sandbox, destroy=True)
    assert rest.call("DELETE", "/api/vcenter/namespaces/instances/theirs").status == 204
    until(
        lambda: "theirs" not in [each["namespace"] for each in rest.get("/api/vcenter/namespaces/instances")]
    )
    gone = apply(path, sandbox, destroy=True)
    assert made(gone), endings(gone)
    assert [each["cluster_name"] for each in rest.get(CLUSTERS)] == ["compute"]


def test_one_that_is_there_is_taken_over_and_left_as_it_is(sandbox, tmp_path: Path):
    site = {
        name: text
        for name, text in yaml.safe_load(EXAMPLES["supervisor"].read_text()).items()
        if name in ("site", "vcenter")
    }
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump({**site, "supervisor": {"compute": {"ntp": ["ntp.small.test"]}}}))
    outcome = apply(path, sandbox)
    assert made(outcome), endings(outcome)
    rest = Rest(sandbox)
    compute = next(each["cluster"] for each in rest.get(CLUSTERS))
    assert rest.get(f"{CLUSTERS}/{compute}")["master_NTP_servers"] == ["ntp.small.test"]
    assert rest.call("PATCH", f"{CLUSTERS}/{compute}", {"master_NTP_servers": []}).status == 204
    assert {
        str(item.key): {change.field for change in item.named} for item in plan(path, sandbox).pending
    } == {"supervisor/compute": {"ntp"}}
    gone = apply(path, sandbox, destroy=True)
    assert made(gone), endings(gone)
    assert rest.get(f"{CLUSTERS}/{compute}")["config_status"] == "RUNNING"


def test_the_message_of_vcenter_is_reported_when_it_fails(sandbox):
    sandbox.faults({"api": "rest", "method": "ConfigureSupervisor", "do": {"message": "no address is free"}})
    try:
        outcome = apply(EXAMPLES["supervisor"], sandbox)
    finally:
        sandbox.clear_faults()
    assert "no address is free" in endings(outcome)["supervisor/farm"]


def test_what_somebody_made_is_there_when_the_sandbox_starts_again(tmp_path: Path):
    site = yaml.safe_load(written(tmp_path).read_text())
    site |= {
        "storage_policy": {"bf-k8s": {"tags": {"tier": ["fast"]}}},
        "registry": {"harbor": {"cluster": "compute", "policy": "gold"}},
    }
    path, state = tmp_path / "all.yaml", tmp_path / "sandbox"
    path.write_text(yaml.safe_dump(site))
    try:
        outcome = apply(path, start(SPECS / "worlds/small.yaml", state, pace=0))
        assert made(outcome), endings(outcome)
        stop(state)
        again = plan(path, start(SPECS / "worlds/small.yaml", state, pace=0))
        assert (again.pending, again.problems, again.unreadable) == ((), (), {})
    finally:
        stop(state)
