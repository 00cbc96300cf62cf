"""Components of a cluster's image: imported, committed, installed host by host, and taken out again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, KILLED, apply, drift, endings, kill_at, made, plan, world
from pydantic import ValidationError
from pyVmomi import vim
from rights.given import administrator
from sandbox.asking import Rest, generated

from bfinfra.kinds.vcenter.host_image.spec import Spec

pytestmark = pytest.mark.thorough

SITE = EXAMPLES["host_image"]
CLUSTERS = "/api/esx/settings/clusters"
DRIVER = "NVIDIA-vGPU"
READER = "reader@small.test"


def ids(sandbox: Any) -> tuple[str, str]:
    """Of the cluster and its host."""
    with administrator(sandbox) as si:
        cluster = si.content.searchIndex.FindByInventoryPath("/dc/host/farm")
        return cluster._moId, cluster.host[0]._moId


def versions(sandbox: Any) -> dict[str, str]:
    with administrator(sandbox) as si:
        host = si.content.searchIndex.FindByInventoryPath("/dc/host/farm").host[0]
        manager = host.configManager.imageConfigManager
        return {each.name: each.version for each in manager.FetchSoftwarePackages()}


def image(sandbox: Any) -> dict[str, Any]:
    found: dict[str, Any] = Rest(sandbox).get(f"{CLUSTERS}/{ids(sandbox)[0]}/software")["components"]
    return found


def site(folder: Path, **fields: Any) -> Path:
    given = yaml.safe_load(SITE.read_text())
    given["host_image"]["gpu"] |= fields
    path = folder / "site.yaml"
    path.write_text(yaml.safe_dump(given))
    return path


def draft_of(sandbox: Any) -> str:
    """A draft of the account that bfinfra uses too."""
    draft: str = Rest(sandbox).call("POST", f"{CLUSTERS}/{ids(sandbox)[0]}/software/drafts").data
    return draft


def finished(sandbox: Any) -> None:
    """Waits until a scan is allowed again: no other operation runs."""
    rest, path = Rest(sandbox), f"{CLUSTERS}/{ids(sandbox)[0]}/software?action=scan&vmw-task=true"
    while rest.call("POST", path).status >= 400:
        pass


def test_a_driver_is_imported_installed_and_taken_away_with_its_depot(sandbox):
    before, hosts = world(sandbox), versions(sandbox)
    done = apply(SITE, sandbox)
    assert made(done), endings(done)
    assert image(sandbox) == {DRIVER: {"version": "580.95.02"}}
    assert versions(sandbox)[DRIVER] == "580.95.02"
    assert drift(SITE, sandbox).found == ()
    gone = apply(SITE, sandbox, destroy=True)
    assert made(gone), endings(gone)
    assert (world(sandbox), versions(sandbox)) == (before, hosts)


def test_the_plan_names_each_host_and_what_it_gets(sandbox):
    (item,) = plan(SITE, sandbox).pending
    assert [step.title() for step in item.steps] == [
        "let vCenter import the depot https://repo.small.test/vgpu-host.zip",
        "set NVIDIA-vGPU 580.95.02 in the image of farm",
        "install the image of farm on esx1.small.test, through maintenance mode",
    ]


def test_without_leave_to_remediate_the_image_alone_changes(sandbox, tmp_path):
    assert made(apply(site(tmp_path, remediate="never"), sandbox))
    assert (DRIVER in image(sandbox), DRIVER in versions(sandbox)) == (True, False)


def test_a_driver_that_somebody_removed_is_drift_of_image_and_host(sandbox):
    assert made(apply(SITE, sandbox))
    rest, (cluster, host) = Rest(sandbox), ids(sandbox)
    path, draft = f"{CLUSTERS}/{cluster}/software", draft_of(sandbox)
    without = {"components_to_delete": [DRIVER]}
    assert rest.call("PATCH", f"{path}/drafts/{draft}/software/components", without).status == 204
    rest.call("POST", f"{path}/drafts/{draft}?action=commit&vmw-task=true", {})
    finished(sandbox)
    rest.call("POST", f"{path}?action=apply&vmw-task=true", {"hosts": [host], "accept_eula": True})
    finished(sandbox)
    found = {each.field for each in drift(SITE, sandbox).found}
    assert found == {f"components.{DRIVER}", f"hosts.esx1.small.test.{DRIVER}"}
    assert made(apply(SITE, sandbox))
    assert versions(sandbox)[DRIVER] == "580.95.02"


def test_a_left_draft_of_ours_is_used_again(sandbox):
    draft = draft_of(sandbox)
    assert made(apply(SITE, sandbox))
    assert draft not in Rest(sandbox).get(f"{CLUSTERS}/{ids(sandbox)[0]}/software/drafts")


def test_a_destroy_after_a_killed_apply_leaves_neither_depot_nor_draft(sandbox, tmp_path):
    before = world(sandbox)
    drafts = f"{CLUSTERS}/{ids(sandbox)[0]}/software/drafts"
    left = set()
    for nth in range(1, 9):
        sandbox.reset()
        assert kill_at(SITE, sandbox, nth, "after", tmp_path / "killed") == KILLED
        rest = Rest(sandbox)
        left |= {what for what in (drafts, "/api/esx/settings/depots/offline") if rest.get(what)}
        assert made(apply(SITE, sandbox, destroy=True))
        assert world(sandbox) == before, f"after write {nth}"
    assert len(left) == 2, "some of these writes leave a depot, and some a draft"


def test_a_draft_of_another_account_is_left(sandbox):
    with administrator(sandbox) as si:
        everything = vim.AuthorizationManager.Permission(
            principal=READER, group=False, roleId=-1, propagate=True
        )
        si.content.authorizationManager.SetEntityPermissions(si.content.rootFolder, [everything])
    rest = Rest(sandbox, READER, generated(sandbox, READER))
    drafts = f"{CLUSTERS}/{ids(sandbox)[0]}/software/drafts"
    theirs = rest.call("POST", drafts).data
    assert made(apply(SITE, sandbox))
    assert made(apply(SITE, sandbox, destroy=True))
    assert list(Rest(sandbox).get(drafts)) == [theirs]


def test_a_draft_with_changes_of_others_is_left_alone(sandbox, tmp_path):
    assert made(apply(site(tmp_path, components={"NVIDIA-Mgmt": "1.2"}), sandbox))
    draft, cluster = draft_of(sandbox), ids(sandbox)[0]
    path = f"{CLUSTERS}/{cluster}/software/drafts/{draft}/software/components"
    assert Rest(sandbox).call("PATCH", path, {"components_to_set": {DRIVER: "580.105.06"}}).status == 204
    done = apply(site(tmp_path, components={"NVIDIA-Mgmt": "1.2", DRIVER: "580.95.02"}), sandbox)
    assert not made(done)
    assert "started other changes of the image" in str(done)
    assert draft in Rest(sandbox).get(f"{CLUSTERS}/{cluster}/software/drafts")


def test_a_cluster_that_is_not_there_is_refused(sandbox, tmp_path):
    problems = plan(site(tmp_path, cluster="fram"), sandbox).problems
    assert "there is no cluster fram" in str(problems[0].what)


def test_a_version_that_no_depot_has_is_refused_by_vcenter_with_its_words(sandbox, tmp_path):
    done = apply(site(tmp_path, components={DRIVER: "1.0"}), sandbox)
    assert not made(done)
    assert "NVIDIA-vGPU 1.0" in str(done)


def test_without_the_eula_no_host_is_remediated():
    with pytest.raises(ValidationError, match="remediates no host"):
        Spec.model_validate({"cluster": "c", "components": {DRIVER: "1"}, "remediate": "if_needed"})


CHANGED_FIELDS = [
    {"components": {DRIVER: "580.105.06"}},
    {"components": {DRIVER: "580.105.06"}, "at_once": 2},
    {"cluster": "compute"},
]
SLOW_TO_CHANGE = True
