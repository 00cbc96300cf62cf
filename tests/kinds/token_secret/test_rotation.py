"""A token rotated: kube-system first, copies that others made, whoever holds it; killed anywhere the next one
goes on.
"""

from __future__ import annotations

import base64
import hashlib
import json

import pytest
from at_cluster import LONG, QUICK, Site
from waiting import until

import bfinfra
from bfinfra.cli import main
from bfinfra.engine.apply import Options
from bfinfra.engine.guard import Allow
from bfinfra.model.errors import BfinfraError, SiteError
from bfinfra.model.refs import Key
from bfinfra.sandbox.factories.token import make_token

pytestmark = pytest.mark.thorough

FILES = ("ca.crt", "client.yaml", "servers.conf")


class Rotating(Site):
    """A site whose token can be rotated; `order` tells which Secrets were written, in which order."""

    def rotate(self, token="", **how):
        return bfinfra.rotate(
            self._load(),
            token,
            approve=self.approve,
            options=Options(retry=QUICK, deadline=LONG),
            context=bfinfra.RunContext(retry=QUICK),
            **how,
        )

    def approve(self, plan):
        self.shown = plan
        return Allow()


@pytest.fixture
def api(sandbox_api):
    return sandbox_api


@pytest.fixture
def site(tmp_path, api):
    made = Rotating(tmp_path, api)
    made.resources = {
        "token_secret": {
            "t": {"cluster": "k", "token": "tok", "form": "single", "namespaces": ["default", "kube-system"]}
        }
    }
    made.applied()
    yield made
    made.applied(destroy=True)


def held(cluster, space, name="bitfusion-secret"):
    return cluster.get("v1", "Secret", name, space)["data"]


def copied(cluster, space):
    """What the webhook does: the Secret of kube-system, without any mark."""
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "bitfusion-secret", "namespace": space},
            "data": held(cluster, "kube-system"),
        }
    )


def well(outcome):
    bad = {
        str(key): f"{ended.ending}: {ended.problem}"
        for key, ended in outcome.endings.items()
        if ended.ending not in ("done", "kept")
    }
    assert not bad, bad
    return outcome.endings[Key.parse("token_secret/t")].note


def consumer(space, name="web", kind="Deployment"):
    pod = {
        "containers": [
            {"name": "c", "image": "i", "volumeMounts": [{"name": "t", "mountPath": "/etc/bitfusion"}]}
        ],
        "volumes": [{"name": "t", "secret": {"secretName": "bitfusion-secret"}}],
    }
    if kind == "Pod":
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": space},
            "spec": pod,
        }
    labels = {"app": name}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": space},
        "spec": spec,
    }


def running(cluster, space):
    return [
        pod["metadata"]["uid"]
        for pod in cluster.list("v1", "Pod", space)
        if (pod.get("status") or {}).get("phase") == "Running"
    ]


def test_the_new_token_is_put_first_where_the_webhook_takes_it_from_and_then_wherever_it_was_copied(
    site, cluster, space
):
    copied(cluster, space)
    old = held(cluster, space)
    site.token("second")
    well(site.rotate())
    assert [step.title() for step in site.shown.items[-1].steps] == [
        "write token tok to namespace kube-system in k",
        "write token tok to namespace default in k",
        f"replace the stale copies of the token tok in k: {space}",
    ]
    assert held(cluster, "kube-system") == held(cluster, "default") == held(cluster, space) != old
    assert (
        "bfinfra.io/mark"
        not in cluster.get("v1", "Secret", "bitfusion-secret", space)["metadata"]["annotations"]
    )
    again = site.rotate()
    assert again.writes == 0


def test_a_plain_apply_leaves_copies_stale_and_the_next_rotation_still_knows_them(site, cluster, space):
    copied(cluster, space)
    for name in ("second", "third"):
        site.token(name)
        site.applied()
    assert held(cluster, space) != held(cluster, "kube-system")
    (warned,) = [each.problem for each in site.plan().warnings]
    assert f"there are copies of the earlier token in {space} of k" in warned.what
    assert warned.next == "bfinfra token rotate SITE tok"
    (warning,) = [
        each.problem for each in bfinfra.drift(site._load(), context=bfinfra.RunContext(retry=QUICK)).warnings
    ]
    assert warning == warned
    well(site.rotate())
    assert held(cluster, space) == held(cluster, "kube-system")
    assert site.plan().warnings == ()


def test_a_copy_in_the_other_form_is_known_too(site, cluster, space):
    for name, key in (
        ("bitfusion-client-secret-ca.crt", "ca.crt"),
        ("bitfusion-client-secret-client.yml", "client.yaml"),
    ):
        cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name, "namespace": space},
                "data": {key: held(cluster, "kube-system")[key]},
            }
        )
    site.token("second")
    well(site.rotate())
    assert (
        held(cluster, space, "bitfusion-client-secret-client.yml")["client.yaml"]
        == held(cluster, "kube-system")["client.yaml"]
    )


def test_a_secret_that_is_not_our_copy_is_reported_and_left(site, cluster, space, tmp_path):
    make_token(tmp_path / "theirs.tar", name="theirs")
    cluster.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "bitfusion-secret", "namespace": space},
            "data": {"client.yaml": "eDogMQo="},
        }
    )
    site.token("second")
    note = well(site.rotate())
    assert f"Secret {space}/bitfusion-secret of k (it has no mark, and no token of this site)" in note
    assert held(cluster, space) == {"client.yaml": "eDogMQo="}


def test_consumers_of_the_token_are_reported_and_restarted_on_request(site, cluster, space):
    copied(cluster, space)
    cluster.create(consumer(space))
    cluster.create(consumer(space, "alone", "Pod"))
    (before,) = until(lambda: [uids] if len(uids := running(cluster, space)) == 2 else [])
    site.token("second")
    note = well(site.rotate())
    assert f"Deployment {space}/web of k" in note
    assert "(--restart)" in note
    assert {*running(cluster, space)} == {*before}
    note = well(site.rotate(restart=True))
    assert f"Pod {space}/alone of k" in note
    until(lambda: len(uids := running(cluster, space)) == 2 and len({*uids} & {*before}) == 1)
    token = cluster.get("apps/v1", "Deployment", "web", space)["spec"]["template"]["metadata"]["annotations"][
        "bfinfra.io/token"
    ]
    assert len(token) == 16
    assert site.rotate(restart=True).writes == 0


def test_nobody_is_started_anew_before_every_copy_is_new(site, cluster, space):
    copied(cluster, space)
    cluster.create(consumer(space))
    until(lambda: running(cluster, space))
    site.token("second")
    well(site.rotate(restart=True))
    assert [type(step).__name__ for step in site.shown.items[-1].steps] == [
        "Write",
        "Write",
        "Refresh",
        "Restart",
    ]


@pytest.mark.parametrize(("nth", "fresh"), [(2, []), (4, ["kube-system"]), (5, ["kube-system", "default"])])
def test_a_rotation_that_ends_between_two_writes_leaves_a_whole_token_everywhere_and_goes_on(
    nth, fresh, site, cluster, space, api
):
    copied(cluster, space)
    old = held(cluster, "kube-system")
    site.token("second")
    api.faults.add({"api": "kubernetes", "writes": True, "nth": nth, "do": {"status": 403}})
    outcome = site.rotate()
    api.faults.clear()
    assert outcome.ending == "failed"
    now = {place: held(cluster, place) for place in ("kube-system", "default", space)}
    assert [place for place, data in now.items() if data != old] == fresh
    well(site.rotate())
    assert held(cluster, "kube-system") == held(cluster, "default") == held(cluster, space) != old
    assert all(data in (old, held(cluster, space)) for data in now.values())


def test_the_history_on_a_secret_has_nothing_of_its_content(site, cluster):
    note = cluster.get("v1", "Secret", "bitfusion-secret", "default")["metadata"]["annotations"][
        "bfinfra.io/token"
    ]
    for file in FILES:
        content = base64.b64decode(held(cluster, "default")[file])
        assert hashlib.sha256(content).hexdigest()[:32] in note
        assert content.decode() not in note


def test_only_the_token_is_touched(site, cluster, space):
    site.resources["namespace"] = {"more": {"cluster": "k", "namespace": f"more-{space}"}}
    site.token("second")
    well(site.rotate())
    assert cluster.get("v1", "Namespace", f"more-{space}") is None


def test_a_token_must_be_chosen_where_the_site_uses_several_and_a_wrong_name_is_reported(site, tmp_path):
    with pytest.raises(SiteError, match="no token_secret holds the token other"):
        site.rotate("other")
    make_token(tmp_path / "two.tar", name="two")
    site.resources["bitfusion_token"] = {
        "tok": {"source": {"tar": "token.tar"}},
        "two": {"source": {"tar": "two.tar"}},
    }
    site.resources["token_secret"]["u"] = {
        "cluster": "k",
        "token": "two",
        "form": "three",
        "namespaces": ["default"],
    }
    with pytest.raises(SiteError, match="several tokens"):
        site.rotate()
    site.token("second")
    well(site.rotate("tok"))
    assert {item.key.name for item in site.shown.items} == {"tok", "t"}
    del site.resources["token_secret"]["u"]


def test_an_expired_token_is_refused_and_nothing_is_written(site, cluster):
    before = held(cluster, "kube-system")
    make_token(site.folder / "token.tar", broken="expired")
    with pytest.raises(Exception, match="ended on"):
        site.rotate()
    assert held(cluster, "kube-system") == before
    site.token("second")


def test_the_command_rotates_the_named_token_and_prints_what_it_did(site, cluster, capsys):
    site.token("second")
    assert main(["token", "rotate", str(site.folder / "site.yaml"), "tok", "--yes"]) == 0
    output = capsys.readouterr().out
    assert "write token tok to namespace kube-system in k" in output
    assert site.rotate().writes == 0
    assert main(["token", "rotate", str(site.folder / "site.yaml"), "nothing", "--yes"]) == 1
    assert "no token_secret holds the token nothing" in capsys.readouterr().err


def test_a_cluster_that_can_not_be_asked_stops_the_rotation_before_its_first_write(site, cluster, tmp_path):
    dead = json.loads((tmp_path / "kubeconfig").read_text())
    dead["clusters"][0]["cluster"]["server"] = "https://localhost:1"
    (tmp_path / "dead").write_text(json.dumps(dead))
    site.resources["kubernetes_cluster"] = {
        "k": {"kubeconfig": {"file": "kubeconfig"}},
        "dead": {"kubeconfig": {"file": "dead"}},
    }
    before = held(cluster, "kube-system")
    site.token("second")
    with pytest.raises(BfinfraError, match="can't be read"):
        site.rotate()
    assert held(cluster, "kube-system") == before
    del site.resources["kubernetes_cluster"]
