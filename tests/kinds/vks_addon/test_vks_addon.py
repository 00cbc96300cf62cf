"""Add-ons of clusters: installed, given settings, found changed, taken out."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, drift, endings, made, plan
from kinds.unmanaged import Entry, Look, kube_object
from rights.given import supervisor

from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

ADDONS = "/apis/addons.kubernetes.vmware.com/v1alpha1/namespaces/team-a"


def site(folder: Path, **changes: object) -> Path:
    given = yaml.safe_load(EXAMPLES["vks_addon"].read_text())
    given["vks_addon"]["autoscaler"] |= changes
    (folder / "site.yaml").write_text(yaml.safe_dump(given))
    return folder / "site.yaml"


def test_an_add_on_has_its_settings_under_the_name_that_the_supervisor_looks_for(sandbox, tmp_path):
    assert made(apply(site(tmp_path), sandbox))
    config = supervisor(sandbox).call("GET", f"{ADDONS}/addonconfigs/ml-01-cluster-autoscaler")
    assert config["spec"]["values"] == {"arguments": {"expander": "least-waste"}}
    assert config["spec"]["clusterName"] == "ml-01", "filled in by the supervisor, and no drift"
    install = supervisor(sandbox).call("GET", f"{ADDONS}/addoninstalls/autoscaler")
    assert install["spec"]["stopMatchingBehavior"] == "Delete"
    assert drift(site(tmp_path), sandbox).found == ()


def test_what_others_change_is_drift_and_is_mended(sandbox, tmp_path):
    assert made(apply(site(tmp_path), sandbox))
    kube = supervisor(sandbox)
    kube.call(
        "PATCH",
        f"{ADDONS}/addonconfigs/ml-01-cluster-autoscaler",
        {"spec": {"values": {"arguments": {"expander": "random"}}}},
    )
    kube.call(
        "PATCH",
        f"{ADDONS}/addoninstalls/autoscaler?fieldManager=kubectl-edit",
        {"spec": {"stopMatchingBehavior": "Retain"}},
    )
    found = {each.field: each.by for each in drift(site(tmp_path), sandbox).found}
    assert found == {"keep": "kubectl-edit", "values.arguments.expander": ""}
    assert made(apply(site(tmp_path), sandbox))
    assert drift(site(tmp_path), sandbox).found == ()


def test_settings_that_leave_the_file_go(sandbox, tmp_path):
    assert made(apply(site(tmp_path), sandbox))
    done = apply(site(tmp_path, values={}), sandbox)
    assert made(done), endings(done)
    assert supervisor(sandbox).call("GET", f"{ADDONS}/addonconfigs")["items"] == []


def test_an_add_on_does_not_become_another_one(sandbox, tmp_path):
    assert made(apply(site(tmp_path), sandbox))
    (problem,) = plan(site(tmp_path, addon="istio"), sandbox).problems
    assert "can't become that of another addon" in str(problem)


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    selected = {"matchLabels": {"cluster.x-k8s.io/cluster-name": "ml-01"}}
    body = {
        "apiVersion": "addons.kubernetes.vmware.com/v1alpha1",
        "kind": "AddonInstall",
        "metadata": {"name": name},
        "spec": {"addonRef": {"name": "cluster-autoscaler"}, "clusters": [{"selector": selected}]},
    }
    return kube_object(supervisor(sandbox), f"{ADDONS}/addoninstalls", body)


UNMANAGED = Entry(at="autoscaler", plant=unmanaged, inside="nobody puts anything into an AddonInstall")
