"""bfinfra privileges: the rights of a site, for people, for programs, as govc or PowerCLI commands and as a
manifest.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

import bfinfra
from bfinfra.app import privileges
from bfinfra.cli import main
from bfinfra.model.rights import Entity, Rights, Use
from bfinfra.render.powercli import powercli

SPECS = Path(__file__).parents[2] / "specs"
POC = SPECS / "singapore-poc.yaml"


@pytest.fixture(autouse=True)
def _secrets(monkeypatch):
    for name in ("VCENTER_PASSWORD", "BITFUSION_CUSTOMER_PASSWORD", "HARBOR_PASSWORD"):
        monkeypatch.setenv(name, "not needed")


def rights(path, *uses):
    site = bfinfra.load(path)
    found = privileges.privileges(site, uses or tuple(Use))
    return {entity.path: names for entity, names in found.entities.items()}, found.apis


def output(capsys, *argv):
    assert main(["privileges", *map(str, argv)]) == 0
    return capsys.readouterr().out


def test_looking_takes_the_read_only_role_and_storage_policies():
    entities, _ = rights(SPECS / "kinds" / "supervisor_namespace.yaml", Use.PLAN)
    assert entities == {"/": ("StorageProfile.View", "System.Anonymous", "System.Read", "System.View")}


def test_looking_writes_nothing_in_a_cluster():
    for path in (SPECS / "kinds").glob("*.yaml"):
        _, apis = rights(path, Use.PLAN)
        assert {verb.verb for verbs in apis.values() for verb in verbs} <= {"get", "list"}


def test_what_a_wider_place_allows_is_not_listed_again(tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text(
        "site: s\nkubernetes_cluster:\n  c: {kubeconfig: {file: c.kubeconfig}}\nnamespace:\n  bwki: "
        "{cluster: c}\n"
        "bitfusion_device_plugin:\n  plugin: {cluster: c, plugin_namespace: bwki}\n"
    )
    found = {
        (api.names, verb.resource, verb.verb)
        for api, verbs in rights(path, Use.APPLY)[1].items()
        for verb in verbs
    }
    assert (("bwki", "kube-system"), "namespaces", "get") in {
        (tuple(sorted(names)), *rest) for names, *rest in found
    }
    assert (("bwki",), "namespaces", "patch") in found
    assert (("bwki",), "namespaces", "get") not in found


def test_a_host_that_is_never_rebooted_needs_no_maintenance(tmp_path):
    path = tmp_path / "site.yaml"
    path.write_text("site: s\nvcenter: {server: vc}\ngpu_host:\n  esx: {cluster: farm, reboot: never}\n")
    assert rights(path)[0]["/*/host/farm/esx"] == ("Global.SetCustomField", "Host.Config.PciPassthru")


def test_places_are_as_narrow_as_the_site_says(tmp_path, sandbox):
    text = (SPECS / "kinds" / "bitfusion_server.yaml").read_text()
    text = text.replace("trust: {ca_file: ca.pem}", "trust: {ca_file: ca.pem}\n  datacenter: dc")
    text = text.replace(
        "gpus: 1", "gpus: 1\n    datastore: local\n    folder: gpu/bitfusion\n    resource_pool: servers"
    )
    text = text.replace("    reboot: if_needed", "    reboot: if_needed\n    cluster: farm")
    (tmp_path / "site.yaml").write_text(text)
    found = privileges.privileges(bfinfra.load(tmp_path / "site.yaml", sandbox=sandbox))
    assert {(entity.path, entity.propagate) for entity in found.entities} == {
        ("/", True),
        ("/dc/datastore/local", False),
        ("/dc/host/farm/Resources/servers", False),
        ("/dc/host/farm/esx1.small.test", False),
        ("/dc/network/VM Network", False),
        ("/dc/vm/gpu/bitfusion", True),
    }


def test_destroying_takes_other_rights_than_applying(sandbox):
    site = bfinfra.load(SPECS / "kinds" / "supervisor_namespace.yaml", sandbox=sandbox)
    apply, destroy = privileges.privileges(site, [Use.APPLY]), privileges.privileges(site, [Use.DESTROY])
    assert not any(
        verb.resource == "pods" and verb.verb == "delete" for verbs in apply.apis.values() for verb in verbs
    )
    assert any(verb.resource == "services" for verbs in destroy.apis.values() for verb in verbs)


def test_a_watch_may_watch_what_a_plan_lists_and_nothing_else(sandbox):
    site = bfinfra.load(SPECS / "kinds" / "namespace.yaml", sandbox=sandbox)
    plan, watch = privileges.privileges(site, [Use.PLAN]), privileges.privileges(site, [Use.WATCH])
    assert plan.entities == watch.entities
    assert plan.apis
    for api, verbs in plan.apis.items():
        listed = {verb.resource for verb in verbs if verb.verb == "list"}
        more = {(verb.resource, verb.verb) for verb in {*watch.apis[api]} - {*verbs}}
        assert more == {(resource, "watch") for resource in listed}


def test_the_text_says_who_where_and_what(capsys):
    text = output(capsys, POC, "--account", "svc@aiml.local")
    assert "What svc@aiml.local needs to plan, watch, apply and destroy singapore-poc" in text
    assert "vCenter: HostSystem /*/host/gpu-farm/esx209-161.aiml.local\n  Global.SetCustomField\n" in text
    assert "granted by the namespace's access: {user: svc@aiml.local, role: edit}" in text


def test_programs_get_the_same(capsys):
    found = json.loads(output(capsys, POC, "--output", "json", "--for", "plan"))
    assert found["uses"] == ["plan"]
    assert [each["path"] for each in found["vcenter"]] == ["/"]
    assert {each["cluster"] for each in found["kubernetes"]} == {
        "supervisor_namespace/cnasg",
        "tanzu_cluster/cluster-01",
    }


def test_govc_commands_make_each_role_before_they_give_it(capsys):
    made = set()
    for line in output(capsys, POC, "--as", "govc", "--account", "svc@aiml.local").splitlines():
        words = shlex.split(line)
        if words[1] == "role.create":
            made.add(words[2])
        else:
            assert words[:5] == ["govc", "permissions.set", "-principal", "svc@aiml.local", "-role"]
            assert words[5] in made
    assert len(made) == 7


def test_govc_grants_a_host_that_may_be_standalone_on_its_compute_resource_if_the_host_refuses(
    tmp_path, capsys
):
    file = tmp_path / "site.yaml"
    for cluster, commands in (
        ("{}", ["/*/host/*/esx1.small.test", "/*/host/esx1.small.test"]),
        ("{cluster: farm}", ["/*/host/farm/esx1.small.test"]),
    ):
        file.write_text(
            "site: s\nvcenter: {server: vc.small.test, username: a@b, password: {env: P}}\n"
            f"gpu_host: {{esx1.small.test: {cluster}}}\n"
        )
        *_, line = output(capsys, file, "--as", "govc", "--account", "a@b").splitlines()
        assert [shlex.split(each)[-1] for each in line.split(" || ")] == commands
        assert ("A standalone host" in output(capsys, file)) is (len(commands) == 2)


STRING = r"'(?:[^'\u2018-\u201b]|['\u2018-\u201b]{2})*'"
FOUND = rf"(?:Get-\w+(?: -Location \(.+\)| -NoRecursion)* -Name {STRING}|Get-VIObjectByVIView -MORef .+)"


def test_powercli_makes_each_role_before_it_gives_it_where_govc_does(capsys):
    first, *lines = output(capsys, POC, "--as", "powercli", "--account", "svc@aiml.local").splitlines()
    assert first == "$ErrorActionPreference = 'Stop'"
    made, given = {}, []
    for line in lines:
        if found := re.fullmatch(
            rf"New-VIRole -Name ({STRING}) -Privilege \(Get-VIPrivilege -Id (.+)\) \| Out-Null", line
        ):
            made[found[1]] = re.findall(STRING, found[2])
        else:
            role = re.fullmatch(
                rf"{FOUND} \| New-VIPermission -Principal 'aiml\.local\\svc' -Role ({STRING})"
                r" -Propagate:\$(true|false)",
                line,
            )
            assert role and role[1] in made, line
            given.append((role[1].strip("'"), role[2]))
    govc = [
        shlex.split(line) for line in output(capsys, POC, "--as", "govc", "--account", "a@b").splitlines()
    ]
    assert [words[2:] for words in govc if words[1] == "role.create"] == [
        [role.strip("'"), *(each.strip("'") for each in ids)] for role, ids in made.items()
    ]
    assert [
        (words[5], words[6].partition("=")[2]) for words in govc if words[1] == "permissions.set"
    ] == given


@pytest.mark.parametrize(
    ("entity", "command"),
    [
        (("/", "Folder"), "Get-VIObjectByVIView -MORef (Get-View ServiceInstance).Content.RootFolder"),
        (("/dc", "Datacenter"), "Get-Datacenter -Name 'dc'"),
        (("/dc/host/f", "ClusterComputeResource"), "Get-Cluster -Location (DC) -Name 'f'"),
        (
            ("/dc/host/f/h", "HostSystem"),
            "Get-VMHost -Location (Get-Cluster -Location (DC) -Name 'f') -Name 'h'",
        ),
        (("/dc/host/*/h", "HostSystem"), "Get-VMHost -Location (DC) -Name 'h'"),
        (
            ("/dc/host/f/Resources/p", "ResourcePool"),
            "Get-ResourcePool -Location (Get-Cluster -Location (DC) -Name 'f') -Name 'p'",
        ),
        (("/dc/datastore/*", "Datastore"), "Get-Datastore -Location (DC) -Name '*'"),
        (("/dc/network/VM Network", "Network"), "Get-VirtualNetwork -Location (DC) -Name 'VM Network'"),
        (
            ("/dc/vm/gpu", "Folder"),
            "Get-Folder -NoRecursion -Location (Get-Folder -NoRecursion -Location (DC) -Name 'vm') -Name 'gpu'",
        ),
        (("/dc/network/a[1]*", "Network"), "Get-VirtualNetwork -Location (DC) -Name 'a`[1`]`*'"),
        (
            ("/dc/network/it's $x\u2019s", "Network"),
            "Get-VirtualNetwork -Location (DC) -Name 'it''s $x\u2019\u2019s'",
        ),
    ],
)
def test_powercli_finds_the_object_of_a_path_and_no_other(entity, command):
    names = ("VApp.Import",)
    lines = powercli(Rights("s", (), {Entity(*entity): names}, {}), "aiml\\svc").splitlines()
    found = lines[-1].partition(" | New-VIPermission -Principal 'aiml\\svc' ")[0]
    assert found == command.replace("(DC)", "(Get-Datacenter -Name 'dc')")


@pytest.mark.parametrize("file", sorted((SPECS / "kinds").glob("*.yaml")), ids=lambda file: file.stem)
def test_no_permission_is_set_on_what_has_its_parents(file):
    """vSphere API, AuthorizationManager: parts of complex entities."""
    entities, _ = rights(file)
    assert [path for path in entities if re.fullmatch(r"/[^/]+/(vm|host|network|datastore)", path)] == []
    assert [path for path in entities if path.endswith("/Resources")] == []
    commands = powercli(privileges.privileges(bfinfra.load(file)), "a@b").splitlines()
    assert sum("New-VIPermission" in line for line in commands) == len(entities)


def test_commands_are_for_a_named_account_as_the_sites_own_would_lose_its_rights(capsys):
    for form in ("govc", "powercli"):
        assert main(["privileges", str(POC), "--as", form]) == 1
        printed = capsys.readouterr()
        assert printed.out == ""
        assert "add --account" in printed.err


def test_to_look_without_policies_vcenters_own_role_is_enough(capsys):
    path = SPECS / "kinds" / "gpu_host.yaml"
    text = output(capsys, path, "--as", "govc", "--account", "svc@aiml.local", "--for", "plan")
    assert text == "govc permissions.set -principal svc@aiml.local -role ReadOnly -propagate=true /\n"


def test_a_manifest_holds_roles_and_their_bindings(capsys):
    found = list(yaml.safe_load_all(output(capsys, POC, "--as", "rbac")))
    assert [each["kind"] for each in found] == ["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]
    assert found[1]["subjects"][0]["name"] == "sso:administrator@aiml.local"
    assert found[2]["metadata"]["namespace"] == "default"


def test_a_site_without_a_cluster_has_no_manifest(capsys):
    path = SPECS / "kinds" / "gpu_host.yaml"
    assert main(["privileges", str(path), "--as", "rbac"]) == 1
    assert "the site has no cluster that takes roles" in capsys.readouterr().err
