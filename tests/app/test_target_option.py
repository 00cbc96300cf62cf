"""`--target` on the sandbox: plan, apply, drift and destroy of a part, each of which says that it is one."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

import bfinfra
from bfinfra.cli.main import main
from bfinfra.model.refs import Key
from bfinfra.model.surveying import SurveyProgress
from bfinfra.sandbox import SMALL_WORLD, Running

pytestmark = pytest.mark.thorough

SITE = """\
site: example
vcenter:
  server: vc.small.test
  username: admin@small.test
  password: {env: VCENTER_PASSWORD}
  trust: {ca_file: ca.pem}
vm_class:
  big: {cpus: 2, memory: 4GiB}
  small: {cpus: 1, memory: 4GiB}
supervisor_namespace:
  team-a: {cluster: compute, vm_classes: [big]}
"""
TARGETED = ("--target", "supervisor_namespace/team-a")


@pytest.fixture
def run(
    tmp_path: Path, sandbox: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """A command on the site; its code and what it printed."""
    (tmp_path / "site.yaml").write_text(SITE)
    monkeypatch.setattr("bfinfra.worlds.embedded", lambda *_, **__: sandbox)

    def called(verb: str, *words: str) -> tuple[int, str]:
        code = main([verb, str(tmp_path / "site.yaml"), "--world", str(SMALL_WORLD), *words])
        output = capsys.readouterr()
        return code, output.out + output.err

    return called


def test_a_part_is_planned_applied_checked_and_destroyed(run, tmp_path: Path, sandbox: Running) -> None:
    code, planned = run("plan", "-target=supervisor_namespace/team-a", "--json")
    found = json.loads(planned)
    assert code == 0
    assert [item["address"] for item in found["items"]] == ["vm_class/big", "supervisor_namespace/team-a"]
    assert found["partial"] == {
        "targets": ["supervisor_namespace/team-a"],
        "resources": ["supervisor_namespace/team-a", "vm_class/big"],
        "left_out": 1,
    }
    code, applied = run("apply", "--yes", *TARGETED)
    words = (
        "Partial: supervisor_namespace/team-a and 1 resource that must be done before; 1 other resource is left "
        "out."
    )
    assert (code, words in applied, "2 created" in applied) == (0, True, True)
    code, checked = run("drift", *TARGETED)
    assert (code, words in checked) == (0, True)
    site = bfinfra.load(tmp_path / "site.yaml", sandbox=sandbox)
    assert [
        str(item.key) for item in bfinfra.plan(site, context=bfinfra.RunContext(sandbox=sandbox)).pending
    ] == ["vm_class/small"]
    code, gone = run("destroy", "--yes", "--target", "vm_class/big")
    assert (code, "2 deleted" in gone) == (0, True)


def test_a_partial_check_is_neither_kept_nor_reported(run, tmp_path: Path, sandbox: Running) -> None:
    run("apply", "--yes", *TARGETED)
    site = bfinfra.load(tmp_path / "site.yaml", sandbox=sandbox)
    context = bfinfra.RunContext(sandbox=sandbox)
    bfinfra.remember(bfinfra.drift(site, context=context))
    run("destroy", "--yes", *TARGETED)
    code, checked = run("drift", *TARGETED)
    assert (code, "team-a" in checked) == (2, True)
    assert [key.split()[0] for key in bfinfra.drift(site, context=context).new] == [
        "supervisor_namespace/team-a"
    ]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "vmclass/big",
            "--target vmclass/big: error: there is no kind vmclass\n  next: did you mean vm_class?",
        ),
        ("big", "--target: error: 'big' is not an address; addresses read kind/name, such as"),
        ("vm_class/bgi", "there is no vm_class/bgi to target"),
    ],
)
def test_a_wrong_target_is_answered(target: str, message: str, run) -> None:
    code, output = run("plan", "--target", target)
    assert (code, message in output) == (1, True)


MIXED = (
    SITE
    + """\
resource_pool:
  gpu: {cluster: farm, memory: {reservation: 1GiB}}
registry_credential:
  pull: {cluster: other, namespaces: [default], server: r.example.org, username: u, password: {env: NOT_SET}}
kubernetes_cluster:
  other: {kubeconfig: {file: other.kubeconfig}}
namespace:
  training: {cluster: other}
"""
)


@pytest.fixture
def asked(tmp_path: Path, sandbox: Running):
    """The kinds that a plan of the mixed site asks about targets, and the plan."""

    def planned(*targets: str, **how: bool):
        seen: list[SurveyProgress] = []
        (tmp_path / "site.yaml").write_text(MIXED)
        context = bfinfra.RunContext(
            sandbox=sandbox, surveying=lambda progress: nullcontext(seen.append(progress))
        )
        site = bfinfra.load(tmp_path / "site.yaml", sandbox=sandbox)
        sandbox.clear_tally()
        plan = bfinfra.plan(site, targets=[Key.parse(each) for each in targets], context=context, **how)
        return seen[0].total, plan, sandbox.tally()

    return planned


def test_a_part_asks_only_the_kinds_that_it_needs(asked) -> None:
    kinds, plan, _ = asked("supervisor_namespace/team-a")
    assert kinds == 2
    assert [str(item.key) for item in plan.items] == ["vm_class/big", "supervisor_namespace/team-a"]
    assert plan.partial.left_out == 5
    kinds, plan, _ = asked("resource_pool/gpu")
    assert (kinds, [str(item.key) for item in plan.items]) == (1, ["resource_pool/gpu"])


def test_a_part_in_a_cluster_needs_no_vcenter_and_no_secret_of_others(asked) -> None:
    kinds, plan, tally = asked("namespace/training")
    assert kinds == 2
    assert [str(item.key) for item in plan.items] == ["kubernetes_cluster/other", "namespace/training"]
    assert not {"rest", "vcenter"} & tally["calls"].keys()
    _, _, whole = asked("resource_pool/gpu")
    assert "vcenter" in whole["calls"]


def test_what_is_deleted_asks_all_kinds(asked, run) -> None:
    run("apply", "--yes", *TARGETED)
    kinds, plan, _ = asked("vm_class/big", destroy=True)
    assert kinds > 10
    assert [str(item.key) for item in plan.items] == ["supervisor_namespace/team-a", "vm_class/big"]
