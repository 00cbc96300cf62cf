from __future__ import annotations

import base64
import uuid
from pathlib import Path

import pytest
from at_cluster import Site
from kinds.unmanaged import Entry, Look, secret
from pydantic import ValidationError

from bfinfra.kinds.cluster.token_secret.spec import Spec
from bfinfra.model.compare import Change, Unknown
from bfinfra.model.plan import Action, step_data
from bfinfra.sandbox import Running
from bfinfra.sandbox.factories.token import make_token

ADDRESS = "token_secret/t"
SINGLES = [f"bitfusion-client-secret-{file}" for file in ("ca.crt", "client.yml", "servers.conf")]


@pytest.fixture
def site(tmp_path, api, space):
    made = Site(tmp_path, api)
    made.resources = {"token_secret": {"t": {"cluster": "k", "token": "tok", "namespaces": [space]}}}
    yield made
    made.apply(destroy=True)


def data(cluster, space, name):
    found = cluster.get("v1", "Secret", name, space)
    return found and {key: base64.b64decode(value).decode() for key, value in found["data"].items()}


def test_three_secrets_a_file_each_under_the_names_that_the_plug_in_knows(site, cluster, space):
    site.applied()
    assert list(data(cluster, space, "bitfusion-client-secret-ca.crt")) == ["ca.crt"]
    assert list(data(cluster, space, "bitfusion-client-secret-client.yml")) == ["client.yaml"]
    assert (
        "172.24.210.80:56001" in data(cluster, space, "bitfusion-client-secret-servers.conf")["servers.conf"]
    )
    assert site.plan().pending == ()


def test_from_three_to_a_single_one_writes_first_and_removes_then(site, cluster, space):
    site.applied()
    site.resources["token_secret"]["t"]["form"] = "single"
    assert site.titles(ADDRESS) == [
        f"write token tok to namespace {space} in k",
        f"remove token tok from namespace {space} in k",
    ]
    site.applied()
    assert sorted(data(cluster, space, "bitfusion-secret")) == ["ca.crt", "client.yaml", "servers.conf"]
    assert data(cluster, space, "bitfusion-client-secret-ca.crt") is None
    assert site.plan().pending == ()


def test_another_token_is_written_everywhere_and_reported_without_its_content(site, cluster, space):
    site.applied()
    before = data(cluster, space, "bitfusion-client-secret-client.yml")
    site.token("second")
    item = site.item(ADDRESS)
    assert item.changes == (Change(f"content in {space}", "other content", "as in token tok"),)
    site.applied()
    after = data(cluster, space, "bitfusion-client-secret-client.yml")
    assert before != after
    assert after["client.yaml"] not in str([step_data(step) for step in item.steps])


def test_while_the_token_is_away_content_is_held_against_what_was_written(site, cluster, space):
    site.applied()
    (site.folder / "token.tar").unlink()
    assert (site.item(ADDRESS).action, site.item(ADDRESS).held) == (Action.KEEP, None)
    cluster.patch("v1", "Secret", "bitfusion-client-secret-ca.crt", {"data": {"ca.crt": "eA=="}}, space)
    item = site.item(ADDRESS)
    assert item.changes == (
        Change(f"content in {space}", "other content", Unknown("token.tar is there", "digest")),
    )
    assert item.held.what == "token_secret/t waits for bitfusion_token/tok"
    assert site.apply().ending == "still-waiting"
    site.token()
    site.applied()
    assert site.plan().pending == ()


def test_a_secret_without_notes_is_not_called_another_one_because_the_token_is_away(site, cluster, space):
    site.applied()
    (site.folder / "token.tar").unlink()
    for name in SINGLES:
        cluster.patch("v1", "Secret", name, {"metadata": {"annotations": {"bfinfra.io/token": None}}}, space)
    assert site.item(ADDRESS).action is Action.KEEP
    site.token()


def test_content_that_somebody_changed_or_removed_is_drift(site, cluster, space):
    site.applied()
    cluster.patch("v1", "Secret", "bitfusion-client-secret-ca.crt", {"data": {"ca.crt": "eA=="}}, space)
    assert site.item(ADDRESS).action is Action.UPDATE
    site.applied()
    cluster.delete("v1", "Secret", "bitfusion-client-secret-servers.conf", space)
    assert site.item(ADDRESS).action is Action.UPDATE
    site.applied()
    assert site.plan().pending == ()


def test_a_strangers_secret_under_the_name_is_not_touched(site, cluster, space):
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "bitfusion-client-secret-ca.crt", "namespace": space},
        "data": {"ca.crt": "eA=="},
    }
    cluster.create(body)
    (problem,) = site.plan().problems
    assert "did not make it" in problem.what
    assert data(cluster, space, "bitfusion-client-secret-ca.crt") == {"ca.crt": "x"}


def test_a_namespace_of_this_site_comes_first_under_its_own_name(site, cluster):
    real = f"real-{uuid.uuid4().hex[:8]}"
    site.resources["namespace"] = {"short": {"cluster": "k", "namespace": real}}
    site.resources["token_secret"]["t"]["namespaces"] = ["short"]
    assert "namespace/short" in map(str, site.item(ADDRESS).waits_for)
    site.applied()
    assert data(cluster, real, "bitfusion-client-secret-ca.crt")


def test_what_leaves_the_file_goes(site, cluster, space):
    site.applied()
    site.resources = {}
    assert site.item(ADDRESS).action is Action.DELETE
    site.applied()
    assert data(cluster, space, "bitfusion-client-secret-ca.crt") is None


def test_an_expired_token_stops_the_plan(site):
    make_token(site.folder / "token.tar", broken="expired")
    assert any("ended on" in problem.why for problem in site.plan().problems)


def test_at_least_one_namespace():
    with pytest.raises(ValidationError):
        Spec.model_validate({"cluster": "k", "token": "t", "namespaces": []})


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    return secret(sandbox, name)


UNMANAGED = Entry(at="bitfusion-client-secret-ca.crt", plant=unmanaged, inside="a Secret holds nothing")
