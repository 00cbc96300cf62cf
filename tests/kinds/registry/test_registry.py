"""The embedded registry: what is decided, and that destroy leaves it unless the site says otherwise."""

from __future__ import annotations

import base64
from contextlib import nullcontext
from pathlib import Path

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan
from rights.given import supervisor
from sandbox.asking import Rest

from bfinfra.backends.vcenter.registries import Registry
from bfinfra.kinds.supervisor.base.cluster_notes import Leave, Take
from bfinfra.kinds.supervisor.registry import NSX, Create, Delete, RegistryFacts, RegistryKind, Spec, State
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark

OWN = Mark("s", "registry/harbor")
AROUND = PlanContext(
    OWN,
    facts=RegistryFacts(
        {"compute": "domain-c1", "farm": "domain-c2", "bare": "domain-c3"},
        {"gold": "p"},
        {"domain-c1": NSX, "domain-c2": "VSPHERE_NETWORK"},
    ),
)
SPEC = Spec(cluster="compute", policy="gold")
GOES = Spec(cluster="compute", policy="gold", delete=True)


def existing(spec: Spec | None = None, status: str = "RUNNING", **changes: object) -> State:
    found = Registry("r-1", "domain-c1", status, "", "https://10.1.0.3", "", {})
    return State(
        **{
            "mark": OWN.committed(spec.applied()) if spec else None,
            "cluster": "compute",
            "moid": "domain-c1",
            "found": found,
            **changes,
        }
    )


@pytest.mark.parametrize(
    ("spec", "state", "steps"),
    [
        (SPEC, None, [Create]),
        (SPEC, existing(SPEC, found=None), [Create]),
        (SPEC, existing(SPEC), []),
        (SPEC, existing(), [Take]),
        (GOES, existing(SPEC), [Take]),
        (None, existing(), []),
        (None, existing(SPEC), [Leave]),
        (None, existing(GOES), [Delete, Leave]),
        (None, existing(GOES, found=None), [Leave]),
    ],
)
def test_what_is_decided(spec, state, steps):
    assert [type(step) for step in RegistryKind.steps("harbor", spec, state, AROUND)] == steps


@pytest.mark.parametrize(
    ("changes", "state", "why"),
    [
        ({"cluster": "farm"}, None, "networking VSPHERE_NETWORK"),
        ({"cluster": "bare"}, None, "no supervisor runs on bare"),
        ({"cluster": "computer"}, None, "no cluster computer"),
        ({"policy": "golden"}, None, "no storage policy golden"),
        ({}, existing(mark=Mark("theirs", "registry/harbor")), "managed by another resource"),
        ({}, existing(SPEC, "DELETING"), "is being deleted"),
    ],
)
def test_what_can_not_be_is_refused(changes, state, why):
    with pytest.raises(Refusal, match=why):
        RegistryKind.steps(
            "harbor", Spec(**{"cluster": "compute", "policy": "gold", **changes}), state, AROUND
        )


ROOM = 200 << 30


@pytest.mark.parametrize(
    ("changes", "held", "why"),
    [
        ({}, {"p": ROOM}, ""),
        ({"storage": "200GiB"}, {"p": ROOM}, ""),
        ({"storage": "300GiB"}, {"p": ROOM}, "it has space for 200GiB"),
        ({}, {"other": ROOM}, "stored with the policy other"),
    ],
)
def test_what_vcenter_can_not_change_is_refused(changes, held, why):
    spec = Spec(cluster="compute", policy="gold", **changes)
    state = existing(spec, found=Registry("r-1", "domain-c1", "RUNNING", "", "https://10.1.0.3", "", held))
    with pytest.raises(Refusal, match=why) if why else nullcontext():
        assert RegistryKind.steps("harbor", spec, state, AROUND) == ()


def test_destroy_leaves_it_with_its_images_unless_the_site_says_otherwise(sandbox, tmp_path: Path):
    site = yaml.safe_load(EXAMPLES["registry"].read_text())
    site["registry"]["harbor"]["delete"] = False
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(site))
    outcome = apply(path, sandbox)
    assert made(outcome), endings(outcome)
    assert next(ended.note for ended in outcome.endings.values()) == "https://10.1.0.3"
    gone = apply(path, sandbox, destroy=True)
    assert made(gone), endings(gone)
    assert len(Rest(sandbox).get("/api/vcenter/content/registries/harbor")) == 1
    assert {str(item.key): [type(step) for step in item.steps] for item in plan(path, sandbox).pending} == {
        "registry/harbor": [Take]
    }


def test_the_nodes_of_a_cluster_trust_it_without_a_file(sandbox, tmp_path: Path):
    site = yaml.safe_load(EXAMPLES["tanzu_cluster"].read_text()) | yaml.safe_load(
        EXAMPLES["registry"].read_text()
    )
    site["tanzu_cluster"]["cluster-01"]["trust"] = {"harbor": {"registry": "harbor"}}
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(site))
    outcome = apply(path, sandbox)
    assert made(outcome), endings(outcome)
    rest = Rest(sandbox)
    (registry,) = rest.get("/api/vcenter/content/registries/harbor")
    (authority,) = rest.get(f"/api/vcenter/content/registries/harbor/{registry['registry']}")["cert_chain"]
    cluster = supervisor(sandbox).call(
        "GET", "/apis/run.tanzu.vmware.com/v1alpha1/namespaces/team-a/tanzukubernetesclusters/cluster-01"
    )
    (trusted,) = cluster["spec"]["settings"]["network"]["trust"]["additionalTrustedCAs"]
    assert (trusted["name"], base64.b64decode(trusted["data"]).decode()) == ("harbor", authority)
    assert plan(path, sandbox).pending == ()
