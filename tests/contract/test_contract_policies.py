"""Storage policies that ask for tags: made, read back, changed, deleted."""

from __future__ import annotations

from dataclasses import replace

from contract.calls import Account, call, lacks
from contract.sides import VCenterSide

from bfinfra.backends.vcenter import VCenter
from bfinfra.backends.vcenter.policies import Policy, StoragePolicies
from bfinfra.model.errors import Exists, Rejected

MINE = Policy("bf-k8s", "for claims\nbfinfra:1 site=s address=storage_policy/bf-k8s", {"tier": ("fast", "slow")})
OLD = "/rest/com/vmware/cis/tagging"  # the only one that vcsim has


def tagged(vcenter: VCenterSide) -> VCenter:
    """A category with two tags, which go with the test."""
    client = vcenter.open()
    category = client.rest.post(f"{OLD}/category", {"create_spec": {"name": "tier", "description": "", "cardinality": "MULTIPLE", "associable_types": []}})["value"]
    vcenter.closing.append(lambda: client.rest.delete(f"{OLD}/category/id:{category}"))
    for name in ("fast", "slow"):
        client.rest.post(f"{OLD}/tag", {"create_spec": {"name": name, "description": "", "category_id": category}})
    return client


def made(vcenter: VCenterSide) -> tuple[StoragePolicies, Policy]:
    """A policy that goes with the test."""
    client = tagged(vcenter)
    policies = StoragePolicies(client.session, client.rest)
    identity = policies.create(MINE)
    vcenter.closing.append(lambda: policies.delete(identity))
    return policies, replace(MINE, id=identity)


@call("policies.create", "policies.read", "policies.delete", case="read back as it was made; deleted twice")
def test_a_policy_is_read_back_as_it_was_made(vcenter: VCenterSide) -> None:
    policies, mine = made(vcenter)
    assert list(policies.read([mine.id])) == [mine]
    policies.delete(mine.id)
    policies.delete(mine.id)


@call("policies.read", case="a policy that is gone")
def test_a_policy_that_is_gone_is_refused(vcenter: VCenterSide, account: Account) -> None:
    policies, mine = made(vcenter)
    policies.delete(mine.id)
    with account.refused(Rejected):
        policies.read([mine.id])


@call("policies.create", case="the name is taken")
@lacks("vcsim: two storage policies can have one name")
def test_a_name_of_a_policy_is_taken_once(vcenter: VCenterSide, account: Account) -> None:
    policies, _ = made(vcenter)
    with account.refused(Exists):
        policies.create(MINE)


@call("policies.update", case="other tags, another description")
@lacks("vcsim: a storage policy can't be changed")
def test_a_policy_changes(vcenter: VCenterSide) -> None:
    policies, mine = made(vcenter)
    other = replace(mine, description="other", tags={"tier": ("slow",)})
    policies.update(other)
    assert list(policies.read([mine.id])) == [other]


@call("policies.list", "policies.tags", case="all policies in one read, and the tags of a category")
@lacks("vcsim: /api/vcenter/storage/policies and /api/content/library are not there")
def test_policies_are_listed_and_tags_known(vcenter: VCenterSide) -> None:
    policies, mine = made(vcenter)
    assert replace(mine, tags={}) in policies.list()
    assert policies.tags(["tier", "nobody's"]) == {"tier": ("fast", "slow")}
