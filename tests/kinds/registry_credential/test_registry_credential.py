from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from at_cluster import Site
from kinds.unmanaged import Entry, Look, secret

from bfinfra.model.plan import Action, step_data
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running

KEY = Key("registry_credential", "cred")


@pytest.fixture
def site(tmp_path, api, space, monkeypatch):
    monkeypatch.setenv("HARBOR_PASSWORD", "s3cr3t")
    made = Site(tmp_path, api)
    credential = {
        "cluster": "k",
        "namespaces": [space],
        "server": "172.24.206.3",
        "username": "me",
        "password": {"env": "HARBOR_PASSWORD"},
    }
    made.resources = {"registry_credential": {"cred": credential}}
    yield made
    made.apply(destroy=True)


def login(cluster, space, name="cred"):
    found = cluster.get("v1", "Secret", name, space)
    return found["type"], json.loads(base64.b64decode(found["data"][".dockerconfigjson"]))["auths"][
        "172.24.206.3"
    ]


def test_it_is_what_an_image_pull_reads(site, cluster, space):
    site.applied()
    kind, entry = login(cluster, space)
    assert kind == "kubernetes.io/dockerconfigjson"
    assert entry == {"username": "me", "password": "s3cr3t", "auth": base64.b64encode(b"me:s3cr3t").decode()}
    assert site.plan().pending == ()


def test_a_new_password_is_seen_and_written_and_shown_nowhere(site, cluster, space, monkeypatch):
    site.applied()
    monkeypatch.setenv("HARBOR_PASSWORD", "n3w")
    item = site.item("registry_credential/cred")
    assert item.action is Action.UPDATE
    assert "n3w" not in json.dumps([step_data(step) for step in item.steps])
    site.applied()
    assert login(cluster, space)[1]["password"] == "n3w"


def test_a_password_that_leads_nowhere_is_a_problem_before_anything_is_written(site, monkeypatch):
    monkeypatch.delenv("HARBOR_PASSWORD")
    with pytest.raises(Exception, match="HARBOR_PASSWORD"):
        site.apply()
    monkeypatch.setenv("HARBOR_PASSWORD", "x")


def test_its_secret_may_have_another_name(site, cluster, space):
    site.resources["registry_credential"]["cred"]["secret"] = "pull"
    site.applied()
    assert login(cluster, space, "pull")


def test_a_secret_that_a_stranger_made_after_the_plan_is_left_alone(site, cluster, space):
    stranger = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "cred", "namespace": space},
        "data": {"theirs": "eA=="},
    }
    outcome = site.apply(between=lambda: cluster.create(stranger))
    assert outcome.endings[KEY].ending == "failed"
    assert "did not make it" in str(outcome.endings[KEY].problem)
    assert cluster.get("v1", "Secret", "cred", space)["data"] == {"theirs": "eA=="}
    cluster.delete("v1", "Secret", "cred", space)


def test_a_secret_that_a_stranger_made_in_the_place_of_ours_is_not_removed(site, cluster, space):
    site.applied()
    stranger = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "cred", "namespace": space},
        "data": {"theirs": "eA=="},
    }

    def replaced():
        cluster.delete("v1", "Secret", "cred", space)
        cluster.create(stranger)

    outcome = site.apply(destroy=True, between=replaced)
    assert outcome.endings[KEY].ending == "done"
    assert cluster.get("v1", "Secret", "cred", space)["data"] == {"theirs": "eA=="}
    cluster.delete("v1", "Secret", "cred", space)


def test_making_one_and_removing_it_take_a_request_each_beside_the_looks(site):
    made, again = site.applied(), site.applied()
    assert (made.writes, again.writes) == (1, 0)
    # by name: the survey where nothing of ours has it, the last look at what was written; the namespaces are
    # listed where something is to be made
    survey, namespaces, write, last_look = 1, 1, 1, 1
    assert made.requests - again.requests == survey + namespaces + write + last_look
    removed, nothing = site.applied(destroy=True), site.applied(destroy=True)
    assert (removed.writes, nothing.writes) == (1, 0)
    assert removed.requests - nothing.requests == 1


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    return secret(sandbox, name)


UNMANAGED = Entry(at="pull", plant=unmanaged, inside="a Secret holds nothing")
