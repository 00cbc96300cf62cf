"""The collection's modules, run in this process on the sandbox: what they say is what was done, and check
mode reaches no writing method.
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.testing import patch_module_args

from bfinfra import worlds
from bfinfra.sandbox import Running

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


@pytest.mark.parametrize("name", MODULES)
def test_a_module_takes_exactly_what_it_documents(name: str, module: Module) -> None:
    documentation = documented(PLUGINS / f"modules/{name}.py")
    options = dict(documentation.get("options", {}))
    for fragment in documentation["extends_documentation_fragment"]:
        options |= documented(PLUGINS / f"doc_fragments/{fragment.rpartition('.')[2]}.py")["options"]
    taken = module(name, site=[], no_such_option=1)
    supported = (
        taken["msg"].partition("Supported parameters include: ")[2].partition(" (")[0].rstrip(".").split(", ")
    )
    assert set(supported) == set(options)
    assert all(option.get("description") for option in options.values())


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


def test_drift_is_told_and_is_no_change(module: Module, sandbox: Running, tmp_path: Path) -> None:
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


def test_a_token_is_rotated_where_it_differs_and_its_end_is_told(module: Module, sandbox: Running) -> None:
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


def test_an_interpreter_without_bfinfra_is_told_which_one(
    module: Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bfinfra", None)
    result = module("plan", site=["site.yaml"])
    assert result["failed"] and "(bfinfra)" in result["msg"] and sys.executable in result["msg"]
