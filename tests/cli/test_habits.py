"""What users of other tools type is done, or answered with the command that does it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from bfinfra.cli import main
from bfinfra.cli.habits import COMMANDS, OPTIONS
from bfinfra.cli.parser import VERBS, build
from bfinfra.cli.shells import commands

SITE = """\
site: poc
vcenter: {server: vc.example.org}
resource_pool:
  gpu:  {cluster: c1}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("site.yaml").write_text(SITE)
    return tmp_path


DONE = {
    "help": "usage: bfinfra",
    "help plan": "usage: bfinfra plan",
    "version": "python 3",
    "version -o json": '"bfinfra"',
    "version --json": '"pyvmomi"',
    "explain resource_pool": "resource_pool: ",
    "explain resource_pool.cpu": "  cpu: ",
    "explain resource_pool/cpu": "  cpu: ",
    "validate": "no problems",
    "fmt -diff": "+  gpu: {cluster: c1}",
    "validate .": "no problems",
    "validate -json": '"valid": true',
    "validate -no-color": "no problems",
    "graph": "resource_pool/gpu",
    "graph -dot": "digraph",
    "graph --output dot": "digraph",
    "graph -o mermaid": "flowchart LR",
    "graph -o svg": "<svg xmlns=",
    "graph -o html": "<title>poc: graph</title>",
    "graph -o json": '"waits_for"',
    "kinds": "resource_pool",
    "schema": "$schema",
    "completion bash --addresses plan --yes site.yaml": "resource_pool/gpu",
    "privileges": "to plan, watch, apply and destroy",
}
"""Typed in a folder with a site.yaml → what its output has."""

ANSWERED = {
    "terraform": [
        "refresh", "output", "output -json", "workspace new dev", "taint a.b",
        "untaint a.b", "providers", "login", "console", "force-unlock 1", "test",
        "plan -refresh-only", "plan -refresh=false", "apply -lock=false", "apply -replace=a.b",
        "plan -state=x", "fmt -recursive", "fmt -write=false", "apply -chdir=x",
        "state mv a b", "state rm a", "state pull", "state push", "plan -input=false", "apply -input=false",
        "plan -compact-warnings", "init -backend=false", "init -upgrade", "graph -type=plan",
        "plan -var a=b", "plan -var=a=b", "plan -var-file x", "apply -var-file=x",
    ],
    "kubectl": [
        "describe vm_class", "delete -f x", "create -f x", "diff -f x", "edit x", "patch x",
        "label x", "annotate x", "scale x", "rollout status", "wait x", "logs x", "config view",
        "auth can-i", "api-resources", "replace -f x", "apply -f x", "apply --filename x", "apply --dry-run",
        "apply --dry-run=server", "apply --prune", "apply --server-side", "apply --wait", "apply --force",
        "plan -n x", "plan --namespace x", "plan -A", "drift --watch", "drift -w", "apply --timeout 5m",
        "plan --kubeconfig x", "plan --context x", "top pods", "exec x", "cp a b", "cordon x", "drain x",
        "cluster-info", "events", "get --all-namespaces", "get -A", "plan -l a=b", "plan --selector a=b",
        "apply -k x", "apply -R", "explain resource_pool --recursive", "version --client",
    ],
    "govc": ["about", "env", "ls", "find", "vm.info x", "host.info", "import.ova x", "session.login", "plan -k", "tree",
             "device.info", "pool.create x", "vm.create x", "vm.power x", "host.maintenance.enter x",
             "object.collect", "events",
             "plan -u x"],
    "ansible": ["playbook x", "inventory", "vault x", "apply --check", "apply -C", "apply --diff", "apply -D",
                "apply -i x", "apply --become", "apply -b", "apply --ask-vault-pass", "galaxy install x",
                "apply -e a=b", "apply --extra-vars a=b", "apply --limit x", "apply --tags x",
                "apply --list-tasks", "apply --list-hosts", "apply --syntax-check"],
    "pulumi and helm": ["up", "preview", "stack ls", "down", "install x", "upgrade x", "uninstall x",
                        "rollback x", "template x", "list", "status"],
}  # fmt: skip


@pytest.mark.parametrize("typed", DONE)
def test_it_is_done(typed, capsys):
    assert main(typed.split()) == 0
    assert DONE[typed] in capsys.readouterr().out


@pytest.mark.parametrize("typed", [words for those in ANSWERED.values() for words in those])
def test_it_is_answered_with_what_does_it_here(typed, capsys):
    assert main(typed.split()) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("bfinfra")
    answer = error.partition(";")[2]
    assert "did you mean" not in answer
    assert len(answer.replace("see bfinfra", "").strip(" ;")) > 20


@pytest.mark.parametrize("answer", [*COMMANDS.values(), *OPTIONS.values()])
def test_an_answer_names_commands_and_options_that_exist(answer):
    known = {" ".join(each.path): each for each in commands(build())}
    flags = {flag for each in known.values() for option in each.options for flag in option.flags}
    words = answer.replace(";", " ;").replace(":", " ").replace(",", " ").split()
    for number, word in enumerate(words):
        if word == "bfinfra" and words[number + 1 : number + 2] and words[number + 1] in words:
            follows = words[number + 1]
            assert follows in (*VERBS, "keeps", "evaluates", "logs", "reads", "always")
        if word.startswith("--"):
            assert word in flags


def test_an_answer_fits_the_command_that_the_option_follows(capsys):
    for typed, answer in {
        "fmt -recursive": "bfinfra fmt . prod",
        "explain resource_pool --recursive": "bfinfra kinds KIND",
        "apply -k x": "--overlay prod.yaml",
        "plan -k": "bfinfra trust SITE",
    }.items():
        assert main(typed.split()) == 1
        assert answer in capsys.readouterr().err.splitlines()[-1]


def test_nothing_typed_prints_the_help(capsys):
    assert main([]) == 1
    printed = capsys.readouterr()
    assert (printed.out, "\n    init " in printed.err) == ("", True)


@pytest.mark.parametrize("word", COMMANDS)
def test_a_word_of_another_tool_is_no_command_of_ours(word):
    assert word not in VERBS


def test_a_site_may_come_from_standard_input(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(SITE.encode())))
    assert main(["validate", "-"]) == 0
    assert capsys.readouterr().out.startswith("poc: 1 resource, no problems")


def test_what_is_wrong_in_standard_input_is_reported_with_its_line(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"site: poc\nresource_pol: {}\n")))
    assert main(["validate", "-"]) == 1
    assert "<stdin>:2:1: error: there is no kind resource_pol" in capsys.readouterr().err


def test_a_plan_of_standard_input_is_not_saved(capsys):
    assert main(["plan", "-", "--out", "plan.json"]) == 1
    assert "put the site into a file" in capsys.readouterr().err
    assert not Path("plan.json").exists()


def test_without_a_site_a_command_says_which_file_it_looks_for(capsys):
    Path("site.yaml").unlink()
    assert main(["plan"]) == 1
    assert "there is no site.yaml in this folder; write one with: bfinfra init" in capsys.readouterr().err


def test_a_field_that_there_is_not_is_held_against_those_that_there_are(capsys):
    assert main(["explain", "resource_pool.cpuu"]) == 1
    assert "did you mean cpu?" in capsys.readouterr().err


def test_a_field_is_explained_to_programs(capsys):
    assert main(["explain", "resource_pool.cpu", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fields"][0]["field"] == "cpu"


@pytest.mark.parametrize(
    "url", ["vc.example.org", "https://vc.example.org/sdk", "https://me:secret@vc.example.org"]
)
def test_the_server_may_come_from_govcs_environment(url, monkeypatch, capsys):
    Path("site.yaml").write_text(SITE.replace("{server: vc.example.org}", "{username: me}"))
    monkeypatch.setenv("GOVC_URL", url)
    assert main(["privileges", "--as", "govc", "--account", "bf@vsphere.local"]) == 0
    assert "secret" not in capsys.readouterr().out


def test_without_a_server_anywhere_its_place_is_named(monkeypatch, capsys):
    Path("site.yaml").write_text(SITE.replace("{server: vc.example.org}", "{username: me}"))
    for name in ("BFINFRA_VCENTER_SERVER", "GOVC_URL", "VSPHERE_SERVER", "VMWARE_HOST"):
        monkeypatch.delenv(name, raising=False)
    assert main(["validate"]) == 1
    error = capsys.readouterr().err
    assert "site.yaml:2:1: error: vcenter.server is missing" in error
    assert "next: write it, or set BFINFRA_VCENTER_SERVER or GOVC_URL" in error


@pytest.mark.parametrize("typed", ["plan -var a=b", "-var=a=b plan", "apply -var-file x"])
def test_an_option_of_terraform_is_not_read_as_one_of_its_letters(typed, capsys):
    assert main(typed.split()) == 1
    error = capsys.readouterr().err
    assert "there is no '-var" in error
    assert ("--values FILE" if "file" in typed else "--set NAME=VALUE") in error
