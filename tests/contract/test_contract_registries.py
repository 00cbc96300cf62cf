"""Embedded registries: made, looked at, deleted."""

from __future__ import annotations

from contract.calls import Account, call, lacks
from contract.sides import VCenterSide

from bfinfra.backends.vcenter.policies import StoragePolicies
from bfinfra.backends.vcenter.registries import Registries
from bfinfra.model.errors import Exists

NOTE = "bfinfra.contract"


@call(
    "registries.create",
    "registries.list",
    "registries.projects",
    "registries.delete",
    case="a life; deleted twice",
)
@lacks("vcsim: /api/vcenter/content/registries is not there")
def test_a_registry_comes_and_goes(vcenter: VCenterSide, account: Account) -> None:
    client = vcenter.open()
    registries, cluster = (
        Registries(client.rest),
        client.cluster_notes.read(NOTE, everyone=True)["WCP-compute"][0],
    )
    policy = StoragePolicies(client.session, client.rest).list()[0].id
    registries.create(cluster, policy, 2**30)
    vcenter.closing.append(lambda: [registries.delete(each.id) for each in registries.list().values()])
    found = vcenter.until(
        lambda: next((each for each in registries.list().values() if each.status == "RUNNING"), None)
    )
    assert (found.cluster, dict(found.storage), found.authority.startswith("-----BEGIN")) == (
        cluster,
        {policy: 2**30},
        True,
    )
    assert registries.projects(found.id) == ()
    with account.refused(Exists):
        registries.create(cluster, policy, None)
    registries.delete(found.id)
    vcenter.until(lambda: not registries.list())
    registries.delete(found.id)
