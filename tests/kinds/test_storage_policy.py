"""Storage policies: what is decided, what a namespace of the same site takes of them, and what vCenter keeps."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, drift, endings, made, plan
from kinds.strangers import policies
from pyVmomi import pbm

from bfinfra.backends.vcenter.policies import Policy, StoragePolicies
from bfinfra.kinds.storage_policy import Create, Delete, Facts, Spec, State, StoragePolicy, Update
from bfinfra.model.errors import Denied, Missing, Refusal
from bfinfra.model.kind import Around
from bfinfra.model.mark import Mark, below
from bfinfra.model.refs import Key
from bfinfra.model.site import Site

AROUND = Around(Mark("s", "storage_policy/p"), facts=Facts({"tier": ("fast", "slow")}))
SPEC = Spec(tags={"tier": ("fast",)})


def standing(spec: Spec = SPEC, **changes: object) -> State:
    mark = AROUND.mark.seal(spec.applied())
    return State(mark=mark, policy=Policy("p", below(spec.description, mark), **{"tags": dict(spec.tags), "id": "1", **changes}))


def decided(spec: Spec | None, state: State | None) -> list[type]:
    return [type(step) for step in StoragePolicy.steps("p", spec, state, AROUND)]


@pytest.mark.parametrize(("spec", "state", "steps"), [
    (SPEC, None, [Create]), (SPEC, standing(), []), (None, standing(), [Delete]), (None, None, []),
    (Spec(tags={"tier": ("fast", "slow")}), standing(), [Update]), (SPEC, standing(tags={"tier": ("slow",)}), [Update]), (SPEC, standing(others=True), [Update]),
])
def test_what_is_decided(spec, state, steps):
    assert decided(spec, state) == steps


@pytest.mark.parametrize(("tags", "why"), [({"tiers": ("fast",)}, "there is no category of tags tiers"), ({"tier": ("fest",)}, "there is no tag fest in tier")])
def test_a_tag_that_is_not_there_is_refused_before_anything_is_written(tags, why):
    with pytest.raises(Refusal, match=why):
        decided(Spec(tags=tags), None)


def test_a_namespace_of_the_same_site_waits_for_its_policy_and_a_policy_in_use_goes_after_it(sandbox, tmp_path: Path):
    site = yaml.safe_load(EXAMPLES["storage_policy"].read_text())
    site["supervisor_namespace"] = {"team-a": {"cluster": "compute", "storage": {"bf-k8s": "1TiB", "gold": None}}}
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(site))
    outcome = apply(path, sandbox)
    assert made(outcome), endings(outcome)
    assert plan(path, sandbox).pending == ()
    with policies(sandbox) as manager:
        (mine,) = (each for each in manager.RetrieveContent(manager.QueryProfile(pbm.profile.ResourceType(resourceType="STORAGE"), "REQUIREMENT")) if each.name == "bf-k8s")
        (outcome,) = manager.Delete([mine.profileId])
        assert "in use by namespace team-a" in outcome.fault.msg
        manager.Update(mine.profileId, pbm.profile.CapabilityBasedProfileUpdateSpec(description="somebody's"))
    assert [str(each.key) for each in drift(path, sandbox).found] == ["storage_policy/bf-k8s"]
    assert plan(path, sandbox).problems  # its mark is gone: nobody knows whose it is
    outcome = apply(path, sandbox, adopt=frozenset({Key("storage_policy", "bf-k8s")}))
    assert made(outcome), endings(outcome)
    gone = apply(path, sandbox, destroy=True)
    assert made(gone), endings(gone)


@pytest.mark.parametrize("error", [Denied, Missing])
def test_where_policies_can_t_be_listed_there_are_none_unless_one_is_wanted_or_the_site_that_goes_names_one(error, monkeypatch):
    def refused(_):
        raise error("GET /api/vcenter/storage/policies failed")

    monkeypatch.setattr(StoragePolicies, "list", refused)
    vcenter = SimpleNamespace(session=None, rest=None)
    kind = StoragePolicy(vcenter, Site("s", None, {}))
    assert kind.observe({}, {}).states == {}
    with pytest.raises(error):
        kind.observe({"p": SPEC}, {})
    with pytest.raises(error):
        StoragePolicy(vcenter, Site("s", None, {Key("storage_policy", "p"): SPEC})).observe({}, {})
