"""A cluster by kubeadm, decided without machines: what is done in which order, what is never started, and what
of it is secret.
"""

from __future__ import annotations

import base64
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kinds.of_several import of_several
from kinds.unmanaged import Entry, Look, config_map, on_machine
from rights.given import by_kubeadm

from bfinfra.backends.ansible import Answer
from bfinfra.kinds.machine.kubeadm_cluster import decide
from bfinfra.kinds.machine.kubeadm_cluster.spec import Spec
from bfinfra.kinds.machine.kubeadm_cluster.state import (
    ADMIN,
    LOOK,
    KubeadmFacts,
    Node,
    State,
    read,
    with_swap,
    without_swap,
)
from bfinfra.kinds.machine.kubeadm_cluster.steps import Join
from bfinfra.model.awaited import Absent, Awaited
from bfinfra.model.context import PlanContext
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.secret import Secret
from bfinfra.model.sources import Sources
from bfinfra.model.ssh import HostTrust, LinuxMachine
from bfinfra.sandbox import Running

PEM = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"
MARK = Mark("site", "kubeadm_cluster/rdg")
MACHINES = {
    name: LinuxMachine(name, f"10.0.0.{number}", "root", HostTrust(sha256="SHA256:" + "A" * 43))
    for number, name in enumerate(("m", "w1", "w2"), 1)
}
FSTAB = "/dev/sda1 / ext4 defaults 0 1\n/dev/sda2 none swap sw 0 0\n#/dev/sdb none swap sw 0 0\n"
ADMIN_CONF = Secret("env", "admin", Sources(env={"admin": "kind: Config"}))


def spec(**how: Any) -> Spec:
    return Spec.model_validate(
        {
            "control_plane": "m",
            "workers": ["w1", "w2"],
            "version": "v1.20.15",
            "cni": "calico.yaml",
            "packages": ["kube.deb"],
            **how,
        }
    )


def blank(**how: Any) -> Node:
    return Node(None, **how)


def node(given: Spec, host: str, **how: Any) -> Node:
    first = host == given.control_plane
    found = {
        "mark": MARK.committed(given.applied()),
        "name": host,
        "role": "control_plane" if first else "worker",
        "done": first,
        "joined": True,
        "authority": PEM,
        "admin": ADMIN_CONF if first else None,
        "package": "ab",
        "program": True,
        "modules": given.modules,
        "sysctl": given.sysctl_text(),
        "noted": {"form": "deb", "files": "/a"},
        **how,
    }
    return Node(**found)


def steps(
    given: Spec | None, on: dict[str, Node], facts: dict[str, Any] | None = None, **state: Any
) -> list[Any]:
    there = {host: each for host, each in on.items() if each.there}
    mark = next((each.mark for each in there.values() if each.mark), None)
    first = on.get("m", blank())
    found = (
        State(
            mark=mark,
            hosts=tuple(there),
            control_plane="m",
            on=there,
            machines={host: MACHINES[host] for host in there},
            **{
                "endpoint": Endpoint(kubeconfig=first.admin) if first.initialised else None,
                "nodes": dict.fromkeys(there, True),
                "cni": "cd",
                **state,
            },
        )
        if there
        else None
    )
    read_here = KubeadmFacts(
        MACHINES, on, **{"packages": {"rdg": "ab"}, "cni": {"rdg": "cd"}, **(facts or {})}
    )
    return list(decide.steps(given, found, PlanContext(MARK, facts=read_here)))


def titles(found: list[Any]) -> list[str]:
    return [step.title() for step in found]


def whole(given: Spec) -> dict[str, Node]:
    return {host: node(given, host) for host in given.hosts}


@of_several("kubeadm_cluster.workers")
def test_from_nothing_all_is_done_in_order() -> None:
    found = steps(spec(), {host: blank(name=host, fstab=FSTAB, swap=True) for host in ("m", "w1", "w2")})
    assert titles(found) == [
        "prepare m, w1, w2 for Kubernetes",
        "initialise the control plane on m",
        "apply the manifest of the pod network",
        "join w1, w2 to the cluster",
        "record on m, w1, w2 what is done",
    ]
    prepared = found[0].todo["w1"]
    assert (prepared["install"], prepared["swap_off"], prepared["fstab"]) == (True, True, without_swap(FSTAB))
    assert found[1].todo["m"]["words"] == [
        "--kubernetes-version",
        "v1.20.15",
        "--pod-network-cidr",
        "10.244.0.0/16",
        "--service-cidr",
        "10.96.0.0/12",
    ]


def test_the_token_of_a_run_that_died_while_machines_joined_goes_with_the_next() -> None:
    whole_but_w2 = {**whole(spec()), "w2": blank(name="w2")}
    (forget,) = steps(spec(), whole(spec()), token=True)
    assert forget.title() == "take away the bootstrap token that a run which died left in the cluster"
    assert [change.field for change in forget.changes] == ["bootstrap_token"]
    join = next(step for step in steps(spec(), whole_but_w2, token=True) if isinstance(step, Join))
    assert (join.left, join.token) == (True, forget.token)
    assert re.fullmatch("[a-z0-9]{6}", join.token)
    assert [step.left for step in steps(spec(), whole_but_w2) if isinstance(step, Join)] == [False]


def test_a_cluster_that_agrees_is_left() -> None:
    assert steps(spec(), whole(spec())) == []


def test_swap_goes_and_comes_back() -> None:
    assert without_swap(FSTAB).splitlines()[1] == "#bfinfra: /dev/sda2 none swap sw 0 0"
    assert with_swap(without_swap(FSTAB)) == FSTAB
    on = {**whole(spec()), "w1": node(spec(), "w1", fstab=FSTAB)}
    (step,) = steps(spec(), on)
    assert [(change.field, change.now, change.wanted) for change in step.changes] == [
        ("on.w1.swap", "on", None)
    ]
    assert (
        steps(
            spec(swap="leave"),
            {host: node(spec(swap="leave"), host, swap=True, fstab=FSTAB) for host in ("m", "w1", "w2")},
        )
        == []
    )


def test_a_control_plane_that_was_killed_amid_its_init_is_reset_and_made_anew() -> None:
    given = spec()
    on = {
        host: replace(
            node(given, host), mark=MARK, joined=host == "m", authority=PEM if host == "m" else "", done=False
        )
        for host in ("m", "w1", "w2")
    }
    init = next(step for step in steps(given, on, nodes=None, cni="") if "initialise" in step.title())
    assert init.todo["m"]["reset"] is True


@pytest.mark.parametrize(
    ("how", "nodes"),
    [({"authority": "another life"}, None), ({}, {"m": True, "w2": True}), ({"joined": False}, None)],
)
def test_a_worker_of_another_life_of_the_cluster_or_that_it_forgot_joins_again(
    how: dict[str, Any], nodes: dict[str, bool] | None
) -> None:
    found = steps(
        spec(), {**whole(spec()), "w1": node(spec(), "w1", **how)}, **({"nodes": nodes} if nodes else {})
    )
    assert titles(found) == ["join w1 to the cluster"]
    assert found[0].todo["w1"]["reset"] is True


def test_a_node_of_another_cluster_is_refused() -> None:
    on = {**whole(spec()), "w1": blank(name="w1", joined=True, authority="other")}
    with pytest.raises(Refusal, match="w1: a node of another cluster"):
        steps(spec(), on)
    with pytest.raises(Refusal, match="w2 belongs to kubeadm_cluster/x of the site other"):
        steps(spec(), {**whole(spec()), "w2": node(spec(), "w2", mark=Mark("other", "kubeadm_cluster/x"))})


def test_a_worker_that_leaves_is_emptied_and_that_disrupts() -> None:
    before, given = spec(), spec(workers=["w1"])
    leave, note = steps(given, whole(before))
    assert (leave.title(), str(leave.disruption)) == (
        "empty w2 and take them out of the cluster",
        "power-cycle",
    )
    assert (list(leave.nodes), leave.drain[1], list(leave.machines)) == (
        ["w2"],
        "--delete-emptydir-data",
        ["w2"],
    )
    assert note.title() == "record on m, w1 what is done"
    old = spec(version="v1.19.8"), spec(version="v1.19.8", workers=["w1"])
    assert steps(old[1], whole(old[0]))[0].drain[1] == "--delete-local-data"


@pytest.mark.parametrize(
    "how",
    [
        {"version": "v1.21.1"},
        {"pod_cidr": "10.32.0.0/16"},
        {"service_cidr": "10.128.0.0/16"},
        {"endpoint": "api.test:6443"},
        {"control_plane": "w1", "workers": ["m", "w2"]},
    ],
)
def test_what_an_existing_cluster_cant_change_is_refused(how: dict[str, Any]) -> None:
    with pytest.raises(Refusal, match="a cluster can't change its"):
        steps(spec(**how), whole(spec()))


def test_another_manifest_of_the_network_is_applied() -> None:
    assert titles(steps(spec(), whole(spec()), cni="old")) == ["apply the manifest of the pod network"]


def test_while_its_files_are_away_a_cluster_is_held_against_what_is_noted_of_them() -> None:
    facts = {
        "packages": {"rdg": ""},
        "cni": {"rdg": ""},
        "away": {"rdg": ("packages.0", Absent("kube.deb is not there yet"))},
        "cni_away": {"rdg": ("cni", Absent("calico.yaml is not there yet"))},
    }

    def held(on: dict[str, Node], given: Spec | None = None, **how: Any) -> tuple[str, list[str]]:
        with pytest.raises(Awaited) as awaited:
            steps(given or spec(), on, facts=facts, **how)
        return awaited.value.field, titles(list(awaited.value.steps))

    assert steps(spec(), whole(spec()), facts=facts) == []
    assert steps(spec(), whole(spec()), facts=facts, nodes=None, cni="") == []
    assert held({host: blank(name=host) for host in ("m", "w1", "w2")}) == ("packages.0", [])
    assert held({**whole(spec()), "w2": node(spec(), "w2", package="old")}) == (
        "packages.0",
        ["prepare w2 for Kubernetes"],
    )
    assert held(whole(spec()), cni="") == ("cni", ["apply the manifest of the pod network"])
    assert held(whole(spec()), spec(cni="flannel.yaml")) == ("cni", ["record on m, w1, w2 what is done"])
    assert titles(steps(None, whole(spec()), facts=facts)) == [
        "take Kubernetes and all that is in it off m, w1, w2"
    ]


def test_destroying_is_a_deletion_of_all_that_is_in_it() -> None:
    (step,) = steps(None, whole(spec()))
    assert step.destructive and step.names == "m, w1, w2"


def test_the_administrators_kubeconfig_is_a_secret_of_this_run() -> None:
    conf = (
        "apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    certificate-authority-data: "
        f"{base64.b64encode(PEM.encode()).decode()}\n  name: k\nusers: the-key-of-all\n"
    )
    answers = {name: Answer("", 1) for name in {**LOOK, **ADMIN}}
    answers |= {
        "admin": Answer(conf, 0),
        "kubelet": Answer(conf, 0),
        "name": Answer("M\n", 0),
        "record": Answer(f"{MARK.encode()}\nrole=control_plane\ninit=done\n", 0),
    }
    found = read("m", answers)
    assert found.initialised and found.admin is not None
    assert (found.authority, found.name) == (PEM, "m")
    assert "the-key-of-all" not in f"{found!r} {found.admin} {Endpoint(kubeconfig=found.admin)!r}"
    assert found.admin.reveal() == conf
    other = read("m", {**answers, "admin": Answer(conf.replace("of-all", "of-another-life"), 0)})
    assert other.admin != found.admin, "another life of the cluster is another login"


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"workers": ["m"]}, "twice"),
        ({"service_cidr": "10.244.0.0/20"}, "overlap"),
        ({"packages": ["a.deb", "b.rpm"]}, "all .deb or all .rpm"),
        ({"pod_cidr": "10.0.0.1/8"}, "host bits"),
    ],
)
def test_what_a_site_may_not_say(how: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        spec(**how)


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    return on_machine(sandbox, "gpu-01", f"/etc/kubernetes/{name}", "kind: Config\n")


UNMANAGED = Entry(
    at="kubelet.conf",
    plant=unmanaged,
    inside=(lambda sandbox: config_map(by_kubeadm(sandbox, "cpu-01"), "default"), "ConfigMap default/theirs"),
)
