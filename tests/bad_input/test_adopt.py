"""Objects that stand there already: refused, shown, taken over, then like any other."""

from __future__ import annotations

import pytest
from bad_input.desk import CLUSTER, HEAD, HOST, NAMESPACE, SERVER, Desk, but, unmark
from kinds.lifecycle import world

pytestmark = pytest.mark.thorough

INSIDE = """\
namespace:
  training: {cluster: cluster-01, labels: {team: a}}
bitfusion_token:
  team-a-token: {source: {tar: token.tar}}
token_secret:
  cluster-01-default: {cluster: cluster-01, token: team-a-token, namespaces: [default]}
"""
VSPHERE, TANZU = HEAD + HOST + SERVER, HEAD + NAMESPACE + CLUSTER + INSIDE
KUBE, GUEST = "10.1.0.1:6443", "10.1.0.10:6443"
TKC = "/apis/run.tanzu.vmware.com/v1alpha1/namespaces/team-a/tanzukubernetesclusters/cluster-01"
SECRET = "/api/v1/namespaces/default/secrets/bitfusion-client-secret-ca.crt"


def stranger(desk: Desk, address: str) -> None:
    """Take the mark off, as if somebody had made it by hand."""
    match address.partition("/")[0]:
        case "bitfusion_server":
            unmark(desk, VSPHERE)
        case "supervisor_namespace":
            body = {"description": "made by hand"}
            desk.sandbox.change(
                {
                    "address": "vc.small.test:443",
                    "method": "PATCH",
                    "path": "/api/vcenter/namespaces/instances/team-a",
                    "body": body,
                }
            )
        case kind:
            bare = {
                "metadata": {"labels": {"bfinfra.io/site": None}, "annotations": {"bfinfra.io/mark": None}}
            }
            where, path = {
                "tanzu_cluster": (KUBE, TKC),
                "namespace": (GUEST, "/api/v1/namespaces/training"),
                "token_secret": (GUEST, SECRET),
            }[kind]
            desk.sandbox.change(
                {
                    "address": where,
                    "method": "PATCH",
                    "path": path,
                    "body": bare,
                    "content_type": "application/merge-patch+json",
                }
            )


@pytest.mark.thorough("text3-namespace/training-site.yaml:19:3")
@pytest.mark.parametrize(
    ("text", "address", "place"),
    [
        (VSPHERE, "bitfusion_server/bf-01", "site.yaml:12:3"),
        (TANZU, "supervisor_namespace/team-a", "site.yaml:8:3"),
        (TANZU, "tanzu_cluster/cluster-01", "site.yaml:13:3"),
        (TANZU, "namespace/training", "site.yaml:19:3"),
        (TANZU, "token_secret/cluster-01-default", "site.yaml:23:3"),
    ],
)
def test_a_stranger_is_never_touched_then_adopted_kept_and_destroyed(desk: Desk, text, address, place):
    before = world(desk.sandbox)
    desk.made(text)
    stranger(desk, address)
    desk.refuses(
        text,
        f"{place}: error: {address}: it exists already, and bfinfra did not make it",
        f"bfinfra adopt SITE {address}",
    )

    adopted = desk.run("adopt", text, address)
    assert adopted.code == 0, adopted
    assert f"~ update  {address}" in adopted.out
    assert f"mark: (none) → {address} of example" in adopted.out
    assert "example: 1 to update" in adopted.out

    if address.startswith("bitfusion_server/"):  # nobody can read which secrets it has: they are written once
        again = desk.run("plan", text)
        assert "properties.customer_password" in again.out
        assert desk.run("apply", text, "--yes", "--allow-disruption", address).code == 0
    planned = desk.run("plan", text, "--detailed-exitcode")
    assert planned.code == 0, planned
    assert "Nothing to do" in planned.out
    assert desk.run("destroy", text).code == 0
    assert world(desk.sandbox) == before


def test_an_adoption_writes_the_mark_and_the_next_plan_shows_what_differs(desk: Desk):
    text = HEAD + NAMESPACE
    desk.made(text)
    stranger(desk, "supervisor_namespace/team-a")
    wanted, address = but(text, ("100GiB", "200GiB")), "supervisor_namespace/team-a"
    assert "storage" not in desk.run("adopt", wanted, address).out
    found = desk.run("plan", wanted)
    assert "storage.gold: 100GiB → 200GiB" in found.out
    assert "cluster: (none)" not in found.out
    assert "best-effort-small" not in found.out


@pytest.mark.parametrize(
    ("address", "says"),
    [
        (
            "supervisor_namespace/team-b",
            ("the site has no supervisor_namespace/team-b", "did you mean supervisor_namespace/team-a?"),
        ),
        (
            "supervisor_namespace/team-a",
            (
                "site.yaml:8:3: error: there is no supervisor_namespace/team-a yet",
                "create it with: bfinfra apply SITE",
            ),
        ),
        ("gpu_host/esx1.small.test", ("gpu_host/esx1.small.test needs no adoption",)),
        ("team-a", ("'team-a' is not an address",)),
    ],
)
def test_what_there_is_not_to_adopt(desk: Desk, address, says):
    desk.refuses(HEAD + NAMESPACE + HOST, *says, verb="adopt", more=(address,))


def test_adopting_wants_a_confirmation(desk: Desk):
    desk.made(HEAD + NAMESPACE)
    stranger(desk, "supervisor_namespace/team-a")
    desk.refuses(
        HEAD + NAMESPACE,
        "adopt needs a confirmation",
        verb="adopt",
        more=("supervisor_namespace/team-a",),
        options=(),
    )


def test_what_belongs_to_another_site_is_neither_applied_nor_adopted(desk: Desk):
    other = but(HEAD, ("site: example", "site: other")) + NAMESPACE
    desk.made(other)
    says = (
        "site.yaml:8:3: error: supervisor_namespace/team-a: it belongs to supervisor_namespace/team-a of "
        "the site other"
    )
    desk.refuses(HEAD + NAMESPACE, says, "two sites would undo each other's work")
    desk.refuses(HEAD + NAMESPACE, says, verb="adopt", more=("supervisor_namespace/team-a",))


def test_what_is_this_site_s_already_is_left_alone(desk: Desk):
    desk.made(HEAD + NAMESPACE)
    desk.sandbox.clear_tally()
    wanted = but(HEAD + NAMESPACE, ("100GiB", "200GiB"))
    found = desk.run("adopt", wanted, "supervisor_namespace/team-a")
    assert (found.code, desk.sandbox.tally()["written"]) == (0, 0)
    assert "Nothing to do" in found.out
