"""The collection's modules, run in this process on the sandbox: what they say is what was done, and check
mode reaches no writing method.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args
from docs.commands import blocks
from packaging.requirements import Requirement

import bfinfra
from bfinfra import worlds
from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[2]
PLUGINS = ROOT / "playbooks/ansible_collections/bfinfra/core/plugins"
KINDS = ROOT / "specs/kinds"
MODULES = sorted(path.stem for path in (PLUGINS / "modules").glob("*.py"))
Module = Callable[..., dict[str, Any]]


@pytest.fixture
def module(
    sandbox: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Module]:
    """Run a module by name with options; its result. `check`: in check mode."""
    monkeypatch.syspath_prepend(ROOT / "playbooks")
    monkeypatch.setattr(worlds, "embedded", lambda *sites, world: sandbox)

    def run(name: str, *, check: bool = False, **options: Any) -> dict[str, Any]:
        found = importlib.import_module(f"ansible_collections.bfinfra.core.plugins.modules.{name}")
        with (
            patch_module_args(
                {"_ansible_check_mode": check, "_ansible_diff": True, "sandbox": True, **options}
            ),
            pytest.raises(SystemExit),
        ):
            found.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
        return result

    yield run
    for each in [name for name in sys.modules if name.startswith("ansible_collections.bfinfra")]:
        del sys.modules[each]


def documented(path: Path, name: str = "DOCUMENTATION") -> Any:
    """What a plugin's file says of itself."""
    text = next(
        node.value.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Assign)
        and getattr(node.targets[0], "id", "") == name
        and isinstance(node.value, ast.Constant)
    )
    return yaml.safe_load(text)


def options(name: str) -> dict[str, Any]:
    """What a module documents, with its fragments."""
    documentation = documented(PLUGINS / f"modules/{name}.py")
    found = dict(documentation.get("options", {}))
    for fragment in documentation["extends_documentation_fragment"]:
        found |= documented(PLUGINS / f"doc_fragments/{fragment.rpartition('.')[2]}.py")["options"]
    return found


@pytest.mark.parametrize("name", MODULES)
def test_a_module_takes_exactly_what_it_documents(name: str, module: Module) -> None:
    documentation = options(name)
    required = {option: [] for option, each in documentation.items() if each.get("required")}
    taken = module(name, **required, no_such_option=1)
    supported = (
        taken["msg"].partition("Supported parameters include: ")[2].partition(" (")[0].rstrip(".").split(", ")
    )
    assert set(supported) == set(documentation)
    assert all(option.get("description") for option in documentation.values())


def test_every_module_is_in_the_group_for_defaults() -> None:
    meta = yaml.safe_load((PLUGINS.parent / "meta/runtime.yml").read_text())
    assert sorted(meta["action_groups"]["bfinfra"]) == [f"bfinfra.core.{name}" for name in MODULES]


def test_check_mode_says_what_the_run_then_does_and_writes_nothing(module: Module, sandbox: Running) -> None:
    site = [str(KINDS / "supervisor_namespace.yaml")]
    announced = module("site", site=site, check=True)
    assert (announced["changed"], sandbox.tally()["written"]) == (True, 0)
    made = module("site", site=site)
    assert (made["changed"], made["ending"], made["diff"]) == (True, "done", announced["diff"])
    assert made["diff"][0]["after"].splitlines()[:2] == ["cluster: compute", "limits.cpu: 16GHz"]
    written = sandbox.tally()["written"]
    assert written == made["writes"] > 0
    again = module("site", site=site)
    assert (again["changed"], again["diff"], module("site", site=site, check=True)["changed"]) == (
        False,
        [],
        False,
    )
    assert module("plan", site=site, state="absent")["pending"] == ["supervisor_namespace/team-a"]
    gone = module("site", site=site, state="absent", check=True)
    assert (gone["changed"], sandbox.tally()["written"]) == (True, written)
    assert module("site", site=site, state="absent")["diff"] == gone["diff"]
    assert module("site", site=site, state="absent")["changed"] is False


def test_a_variant_is_what_overlays_and_values_make_of_the_site(module: Module, tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(
        "site: example\nvalues: {cpus: {type: integer}, memory: {default: 4GiB}}\n"
        "vcenter: {server: vc.small.test, username: admin@small.test, password: {env: VCENTER_PASSWORD}, "
        "trust: {ca_file: ca.pem}}\n"
        "vm_class:\n  big: {cpus: {value: cpus}, memory: {value: memory}}\n  gone: {cpus: 1, memory: 4GiB}\n"
    )
    (tmp_path / "prod.yaml").write_text("vm_class: {gone: null}\n")
    (tmp_path / "values.yaml").write_text("memory: 8GiB\n")
    how = {"site": [str(tmp_path / "site.yaml")], "overlays": [str(tmp_path / "prod.yaml")]}
    found = module("plan", **how, values={"cpus": 4}, value_files=[str(tmp_path / "values.yaml")])
    assert found["pending"] == ["vm_class/big"]
    assert {each["field"]: each["wanted"] for each in found["plan"]["items"][0]["changes"]} == {
        "cpus": 4,
        "memory": "8GiB",
    }
    refused = module("plan", **how, values={"cpus": "many"})
    assert refused["failed"] is True
    assert "values: cpus: the value cpus: expected a whole number" in refused["msg"]


def test_drift_is_reported_and_is_no_change(module: Module, sandbox: Running, tmp_path: Path) -> None:
    site = [str(KINDS / "supervisor_namespace.yaml")]
    module("site", site=site)
    assert module("drift", site=site)["drifted"] is False
    sandbox.change(
        {
            "address": "vc.small.test:443",
            "method": "PATCH",
            "path": "/api/vcenter/namespaces/instances/team-a",
            "body": {"resource_spec": {"memory_limit": 4096}},
        }
    )
    sandbox.clear_tally()
    only_looked = module("drift", site=site, check=True)
    seen = module("drift", site=site)
    assert seen["alarming"] == only_looked["alarming"] == ["supervisor_namespace/team-a"]
    assert [each["new"] for each in seen["report"]["findings"]] == [True], (
        "check mode keeps nothing, so the check after it is the first that sees it"
    )
    assert [each["new"] for each in module("drift", site=site)["report"]["findings"]] == [False]
    assert (seen["changed"], sandbox.tally()["written"]) == (False, 0)


def test_check_mode_fails_where_the_apply_is_refused(
    module: Module, sandbox: Running, tmp_path: Path
) -> None:
    text = (KINDS / "supervisor_namespace.yaml").read_text()
    (tmp_path / "site.yaml").write_text(text)
    site = [str(tmp_path / "site.yaml")]
    module("site", site=site)
    (tmp_path / "site.yaml").write_text(text[: text.index("supervisor_namespace:")])
    written = sandbox.tally()["written"]
    refused = [module("site", site=site, check=check) for check in (True, False)]
    assert refused[0]["failed"] and not refused[0]["changed"]
    assert refused[0]["problems"] == refused[1]["problems"] != []
    assert "the plan would delete supervisor_namespace/team-a" in refused[0]["msg"]
    assert sandbox.tally()["written"] == written
    assert module("site", site=site, allow_delete=["supervisor_namespace/team-a"])["changed"] is True


def test_a_token_is_rotated_where_it_differs_and_its_expiry_is_reported(
    module: Module, sandbox: Running
) -> None:
    site = [str(KINDS / "token_secret.yaml")]
    (token,) = module("token", site=site)["tokens"].values()
    assert token["not_after"].endswith("Z") and token["days_left"] > 0 and token["servers"]
    assert sandbox.tally()["total"] == 0, "what reads the sources asks nobody"
    before = module("token", site=site, state="rotated", check=True)
    assert (before["changed"], sandbox.tally()["written"]) == (True, 0)
    module("site", site=site)
    after = module("token", site=site, state="rotated")
    assert (after["changed"], after["writes"]) == (False, 0)


def test_what_is_written_on_this_machine_is_a_change(module: Module) -> None:
    site = [str(KINDS / "client_image.yaml")]
    assert [module("site", site=site)["changed"] for _ in range(2)] == [True, False]
    assert module("site", site=site, state="absent")["changed"] is True


def test_secrets_that_are_handed_over_are_in_no_result(
    module: Module, sandbox: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    password, site = sandbox.env["VCENTER_PASSWORD"], [str(KINDS / "supervisor_namespace.yaml")]
    monkeypatch.setattr(sandbox, "env", {})
    monkeypatch.setattr(os, "environ", {**os.environ})  # the module puts them there
    missing = module("plan", site=site)
    assert missing["failed"] and "VCENTER_PASSWORD" in missing["msg"]
    result = module("plan", site=site, secrets={"VCENTER_PASSWORD": password})
    assert result["pending"] and password not in json.dumps(result)


def test_an_interpreter_without_bfinfra_is_named(module: Module, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bfinfra", None)
    result = module("plan", site=["site.yaml"])
    assert result["failed"] and "(bfinfra)" in result["msg"] and sys.executable in result["msg"]


def somebodys_class(sandbox: Running) -> None:
    """Another administrator makes what the site describes."""
    sandbox.change(
        {
            "address": "vc.small.test:443",
            "method": "POST",
            "path": "/api/vcenter/namespace-management/virtual-machine-classes",
            "body": {"id": "gpu-large", "cpu_count": 2, "memory_MB": 4096},
        }
    )


CLASSES = (
    "site: example\n"
    "vcenter: {server: vc.small.test, username: admin@small.test, password: {env: VCENTER_PASSWORD}, "
    "trust: {ca_file: ca.pem}}\n"
    "vm_class:\n  gpu-large: {cpus: 4, memory: 4GiB}\n  small: {cpus: 1, memory: 2GiB}\n"
)


def test_an_adoption_takes_over_what_it_names_and_makes_nothing_else(
    module: Module, sandbox: Running, tmp_path: Path
) -> None:
    (tmp_path / "site.yaml").write_text(CLASSES)
    site, address = [str(tmp_path / "site.yaml")], "vm_class/gpu-large"
    early = module("adopt", site=site, addresses=[address])
    assert early["failed"] and "there is no vm_class/gpu-large yet" in early["msg"]
    somebodys_class(sandbox)
    written = sandbox.tally()["written"]
    announced = module("adopt", site=site, addresses=["all"], check=True)
    assert (announced["changed"], sandbox.tally()["written"]) == (True, written)
    assert [each["before_header"] for each in announced["diff"]] == [address]
    one = module("adopt", site=site, addresses=[address], check=True)
    made = module("adopt", site=site, addresses=[address])
    assert (made["changed"], made["ending"], made["diff"]) == (True, "done", announced["diff"])
    assert one["diff"] == made["diff"]
    assert module("adopt", site=site, addresses=["all"])["changed"] is False
    assert module("adopt", site=site, addresses=[address])["changed"] is False
    assert module("plan", site=site)["pending"] == [address, "vm_class/small"]
    refused = module("adopt", site=site, addresses=["all", address])
    assert "all and nothing else" in refused["msg"]


def test_targets_leave_the_rest_of_the_site_alone(module: Module, tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(CLASSES)
    site = [str(tmp_path / "site.yaml")]
    targets = ["vm_class/small"]
    assert module("plan", site=site, targets=targets)["pending"] == targets
    assert module("site", site=site, targets=targets, check=True)["plan"]["partial"]["targets"] == targets
    assert [each["address"] for each in module("site", site=site, targets=targets)["resources"]] == targets
    assert module("plan", site=site)["pending"] == ["vm_class/gpu-large"]
    found = module("drift", site=site, targets=targets)
    assert (found["drifted"], found["report"]["partial"]["targets"]) == (False, targets)
    assert "no_kind" in module("plan", site=site, targets=["no_kind/x"])["msg"]
    assert "'small'" in module("plan", site=site, targets=["small"])["msg"]


def test_a_saved_plan_is_done_exactly_or_not_at_all(module: Module, sandbox: Running, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    (here / "site.yaml").write_text(CLASSES)
    (here / "less.yaml").write_text("vm_class: {small: null}\n")
    site, file = [str(here / "site.yaml")], str(tmp_path / "plan.json")
    how = {"site": site, "overlays": [str(here / "less.yaml")], "out": file}
    assert module("plan", **how, check=True)["saved"] is False
    assert not Path(file).exists()
    planned = module("plan", **how)
    assert (planned["changed"], planned["saved"], planned["pending"]) == (False, True, ["vm_class/gpu-large"])
    shutil.copytree(here, there)
    saved = {"site": [str(there)], "plan_file": file}
    for given, words in {
        "overlays": ([str(there / "less.yaml")], "overlays can't be given with plan_file"),
        "state": ("absent", "plan_file was made for state: present"),
        "site": ([str(here), str(there)], "site is one path"),
        "plan_file": (str(there / "less.yaml"), "not a saved plan"),
    }.items():
        refused = module("site", **{**saved, given: words[0]})
        assert refused["failed"] and words[1] in refused["msg"], given
    announced = module("site", **saved, check=True)
    made = module("site", **saved)
    assert (made["changed"], made["diff"]) == (True, announced["diff"])
    assert [each["address"] for each in made["resources"]] == ["vm_class/gpu-large"]
    for check in (True, False):  # what was planned is done
        stale = module("site", **saved, check=check)
        assert stale["failed"] and "vm_class/gpu-large is no longer as planned" in stale["msg"]
    (there / "site.yaml").write_text(CLASSES.replace("cpus: 4", "cpus: 8"))
    assert "site.yaml" in module("site", **saved)["msg"]


def test_what_is_wrong_with_the_files_is_reported_without_asking_a_server(
    module: Module, sandbox: Running, tmp_path: Path
) -> None:
    (tmp_path / "site.yaml").write_text(CLASSES)
    good = module("validate", site=[str(tmp_path / "site.yaml")])
    assert (good["changed"], good["resources"]) == (False, ["vm_class/gpu-large", "vm_class/small"])
    (tmp_path / "site.yaml").write_text(CLASSES.replace("cpus: 1", "cpus: none"))
    bad = module("validate", site=[str(tmp_path / "site.yaml")])
    assert bad["failed"] and bad["problems"][0]["where"]["line"] == 5
    assert sandbox.tally()["total"] == 0


def test_the_doctor_fails_where_an_apply_would_stop(module: Module, sandbox: Running, tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(CLASSES)
    site = [str(tmp_path / "site.yaml")]
    good = module("doctor", site=site)
    assert {each["health"] for each in good["findings"]} <= {"good", "warning"}
    (tmp_path / "site.yaml").write_text(CLASSES.replace("trust: {", "datacenter: nowhere, trust: {"))
    bad = module("doctor", site=site)
    assert bad["failed"] and "an apply would stop" in bad["msg"]
    assert "bad" in {each["health"] for each in bad["findings"]}
    assert sandbox.tally()["written"] == 0


def test_the_collection_says_where_it_comes_from_and_what_it_needs() -> None:
    galaxy = yaml.safe_load((PLUGINS.parent / "galaxy.yml").read_text())
    assert all(galaxy[name].startswith("https://") for name in ("repository", "documentation", "issues"))
    needs = yaml.safe_load((PLUGINS.parent / "meta/execution-environment.yml").read_text())["dependencies"]
    python = Requirement((PLUGINS.parent / needs["python"]).read_text().strip())
    assert (python.name, python.extras) == ("bfinfra", {"linux"})
    assert bfinfra.__version__ in python.specifier
    assert galaxy["version"] == bfinfra.__version__
    assert "openssh-client" in (PLUGINS.parent / needs["system"]).read_text()


def tasks(found: Any) -> Iterator[dict[str, Any]]:
    for each in found if isinstance(found, list) else []:
        yield from tasks(each["tasks"]) if "tasks" in each else [each]


def test_the_pages_tasks_and_the_examples_take_what_the_modules_take() -> None:
    """That ansible-doc reads them is sanity's to say."""
    page = (ROOT / "docs/how-to/use-ansible.md").read_text()
    texts = [yaml.safe_load(each.text) for each in blocks(page) if each.language == "yaml"]
    texts += [documented(PLUGINS / f"modules/{name}.py", "EXAMPLES") for name in MODULES]
    seen = set()
    for task in [task for text in texts for task in tasks(text)]:
        (name,) = (word for word in task if word.startswith(("bfinfra.", "ansible.")))
        if (short := name.removeprefix("bfinfra.core.")) != name:
            seen.add(short)
            assert set(task[name] or {}) <= set(options(short)), task
    assert seen == set(MODULES)
