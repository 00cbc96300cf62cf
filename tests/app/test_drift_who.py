"""Who moved it, and when: vCenter's events and managedFields, asked of what drifted alone and on a connection
that can't write.
"""

from __future__ import annotations

import time
from pathlib import Path

from kinds.lifecycle import EXAMPLES, QUICK, apply, drift, made, plan
from pyVmomi import vim
from rights.given import administrator

from bfinfra.backends.vcenter.events import Happened
from bfinfra.engine.drift import traced
from bfinfra.engine.observe import ObservedState
from bfinfra.kinds.audit import of_machines
from bfinfra.model.drift import Cause, Drifted, Report
from bfinfra.model.errors import Forbidden
from bfinfra.model.kind import LastWriter
from bfinfra.model.refs import Key
from bfinfra.render import drift as render
from bfinfra.sandbox import Running


def found(report: Report) -> dict[str, Drifted]:
    return {each.field: each for each in report.found}


def settled(task: vim.Task) -> None:
    limit = time.monotonic() + 60
    while task.info.state not in ("success", "error") and time.monotonic() < limit:
        time.sleep(0.01)
    assert task.info.state == "success", task.info.error


def test_vcenters_events_say_who_changed_a_server_and_who_removed_it(sandbox: Running) -> None:
    path = EXAMPLES["bitfusion_server"]
    assert made(apply(path, sandbox))
    name = next(item.key.name for item in plan(path, sandbox).items if item.key.kind == "bitfusion_server")
    sandbox.clear_tally()
    assert drift(path, sandbox).found == ()
    assert "QueryEvents" not in str(sandbox.tally()), "where nothing drifted nobody is asked"
    with administrator(sandbox) as si:
        view = si.content.viewManager.CreateContainerView(si.content.rootFolder, [vim.VirtualMachine], True)
        machine = next(vm for vm in view.view if vm.name == name)
        before = time.time()
        settled(machine.PowerOffVM_Task())
        settled(machine.ReconfigVM_Task(vim.vm.ConfigSpec(memoryMB=machine.config.hardware.memoryMB * 2)))
        settled(machine.ReconfigVM_Task(vim.vm.ConfigSpec(annotation="somebody's note")))
        sandbox.clear_tally()
        moved = drift(path, sandbox)
        assert sandbox.tally()["written"] == 0
        who = found(moved)["memory"]
        assert who.by.lower() == USER
        assert who.at is not None and before - 2 <= who.at <= time.time() + 2
        assert f"by {USER} at 20" in render.text(moved).lower()
        settled(machine.Destroy_Task())
    gone = found(drift(path, sandbox))[""]
    assert gone.by.lower() == USER


USER = "small.test\\admin"  # as vCenter names an account
SITE = """\
site: who
kubernetes_cluster: {other: {kubeconfig: {file: other.kubeconfig}}}
namespace: {team-a: {cluster: other, labels: {team: one}, pod_security: {enforce: baseline}}}
registry_credential: {pull: {cluster: other, namespaces: [default], server: 10.1.0.3, username: admin@small.test, password: {env: VCENTER_PASSWORD}}}
"""


def test_managed_fields_say_who_wrote_an_object_of_kubernetes(sandbox: Running, tmp_path: Path) -> None:
    path = tmp_path / "site.yaml"
    path.write_text(SITE)
    assert made(apply(path, sandbox))
    before = time.time()

    def somebody(what: str, manager: str, body: object) -> None:
        sandbox.change(
            {
                "address": "10.3.0.1:6443",
                "method": "PATCH",
                "content_type": "application/merge-patch+json",
                "path": f"/api/v1/namespaces/{what}?fieldManager={manager}",
                "body": body,
            }
        )

    somebody(
        "team-a",
        "kubectl-edit",
        {"metadata": {"labels": {"team": "another", "pod-security.kubernetes.io/enforce": None}}},
    )
    somebody("team-a", "a-controller", {"metadata": {"annotations": {"nothing": "to do with it"}}})
    somebody("default/secrets/pull", "rancher", {"data": {".dockerconfigjson": "e30="}})
    sandbox.clear_tally()
    who = found(drift(path, sandbox))
    assert sandbox.tally()["written"] == 0
    assert {field: each.by for field, each in who.items()} == {
        "labels.team": "kubectl-edit",
        "pod_security.enforce": "",
        "content in default": "rancher",
    }
    assert all(before - 2 <= each.at <= time.time() + 2 for each in who.values() if each.at is not None)


def test_of_several_reconfigurations_the_one_that_named_the_field_counts() -> None:
    def happened(at: float, by: str, *named: str) -> Happened:
        return Happened("reconfigured", "vm-1", "bf-01", by, at, frozenset(named))

    class Audit:
        def __init__(self, *events: Happened) -> None:
            self.events = events

        def of(self, moid: str) -> list[Happened]:
            return list(self.events)

    asked = {"bf-01": ("a state", ("memory", "gpus"))}
    detailed = Audit(
        happened(3, "carol", "annotation"),
        happened(2, "bob", "memoryMB"),
        happened(1, "alice", "memoryMB", "deviceChange"),
    )
    assert of_machines(detailed, asked, str) == {
        "bf-01": {"memory": LastWriter("bob", 2), "gpus": LastWriter("alice", 1)}
    }
    assert of_machines(Audit(happened(2, "bob", "annotation")), asked, str) == {"bf-01": {}}, (
        "nobody is blamed for what they did not name"
    )
    off = {"bf-01": ("a state", ("",))}
    assert of_machines(
        Audit(happened(3, "carol", "annotation"), Happened("powered", "vm-1", "bf-01", "dave", 2)), off, str
    ) == {"bf-01": {"": LastWriter("dave", 2)}}
    assert of_machines(Audit(happened(2, "bob")), asked, str) == {
        "bf-01": dict.fromkeys(("memory", "gpus"), LastWriter("bob", 2))
    }, "a server that names nothing"


def test_where_nobody_can_be_asked_the_drift_is_reported_all_the_same() -> None:
    class Deaf:
        def audit(self, asked: object) -> None:
            raise Forbidden("events can't be read", server="vc", why="no permission")

    key = Key("thing", "a")
    drifted = Drifted(key=key, cause=Cause.DRIFT, field="size", now=1, wanted=2)
    reported = traced(
        Report("s", (drifted, Drifted(key=key, cause=Cause.UNAPPLIED)), 0),
        ObservedState({key: object()}),
        {"thing": Deaf()},
        QUICK,
    )
    assert reported.found[0] == drifted
    assert [str(each.problem) for each in reported.warnings] and "who changed thing/a is not known" in str(
        reported.warnings[0].problem
    )
