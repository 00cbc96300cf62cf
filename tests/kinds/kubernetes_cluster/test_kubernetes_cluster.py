from __future__ import annotations

import json

import pytest
from at_cluster import Site

from bfinfra.model.errors import BfinfraError
from bfinfra.model.plan import Action


@pytest.fixture
def site(tmp_path, api):
    return Site(tmp_path, api, "one-cluster")


def test_it_is_read_and_its_version_is_the_note(site):
    assert site.item("kubernetes_cluster/k").action is Action.READ
    (note,) = [
        ended.note for key, ended in site.applied().endings.items() if key.kind == "kubernetes_cluster"
    ]
    assert note.startswith("v1.")


def test_a_cluster_that_denies_access_is_unreadable_and_its_token_stays_hidden(site):
    config = json.loads((site.folder / "kubeconfig").read_text())
    config["users"][0]["user"] = {"token": "s3cret"}
    (site.folder / "kubeconfig").write_text(json.dumps(config))
    plan = site.plan()
    assert "login is not accepted" in str(plan.unreadable)
    assert "s3cret" not in str(plan.unreadable)


def test_a_kubeconfig_that_would_run_a_program_is_not_used(site):
    config = json.loads((site.folder / "kubeconfig").read_text())
    config["users"][0]["user"] = {"exec": {"command": "touch", "args": [str(site.folder / "ran")]}}
    (site.folder / "kubeconfig").write_text(json.dumps(config))
    assert "exec" in str(site.plan().unreadable)
    assert not (site.folder / "ran").exists()


def test_a_kubeconfig_that_is_not_there_yet_holds_back_what_is_in_its_cluster(site, space):
    site.resources = {"token_secret": {"t": {"cluster": "k", "token": "tok", "namespaces": [space]}}}
    kubeconfig, away = site.folder / "kubeconfig", site.folder / "kubeconfig.away"
    kubeconfig.rename(away)
    held = {str(item.key): item.held.what for item in site.plan().held}
    assert held == {
        "kubernetes_cluster/k": "kubernetes_cluster/k: kubeconfig is not there yet",
        "token_secret/t": "token_secret/t waits for kubernetes_cluster/k",
    }
    assert site.apply().ending == "still-waiting"
    away.rename(kubeconfig)
    site.applied()
    kubeconfig.rename(away)
    found = site.drift()
    assert (found.found, set(found.unreadable), found.blind) == (
        (),
        {"kubernetes_cluster/k", "token_secret/t"},
        True,
    )
    with pytest.raises(BfinfraError, match="kubernetes_cluster/k"):
        site.apply(destroy=True)
    away.rename(kubeconfig)
    site.apply(destroy=True)
