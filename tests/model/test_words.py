"""Texts of the model that people and files read: names that are made, suggestions, sentences of records."""

from __future__ import annotations

from pathlib import Path

import pytest

from bfinfra.model import device_plugin, image_notes
from bfinfra.model.choice import each_once, one_of
from bfinfra.model.description import free_name, variable
from bfinfra.model.document import Document
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import FieldError
from bfinfra.model.extras import missing
from bfinfra.model.names import storage_class
from bfinfra.model.outcome import OutOfService
from bfinfra.model.partial import Partial
from bfinfra.model.refs import Key
from bfinfra.model.rights import DATACENTER_FOLDERS, Entity, Verb, holds, may, path_in
from bfinfra.model.secret import Secret
from bfinfra.model.site import Site
from bfinfra.model.suggest import close, few, nearest
from bfinfra.model.unreadable import by_cause


@pytest.mark.parametrize(
    ("text", "taken", "name"),
    [
        ("GPU Server 01", {}, "gpu-server-01"),
        ("--ML & AI--", {}, "ml-ai"),
        ("Größe", {}, "gr-e"),
        ("…", {}, "unnamed"),
        ("x" * 49 + " y", {}, "x" * 49),
        ("x" * 60, {}, "x" * 50),
        ("a", {"a": 1}, "a-2"),
        ("a", {"a": 1, "a-2": 1}, "a-3"),
        ("a", {"a": 1, "a-2": 1, "a-3": 1}, "a-4"),
    ],
)
def test_a_name_is_made_of_any_text(text: str, taken: dict[str, object], name: str) -> None:
    assert free_name(text, taken) == name


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("bf-01", "password"), "BF_01_PASSWORD"),
        (("10.0.0.1", "pw"), "_10_0_0_1_PW"),
        (("-a--b-", "c"), "A_B_C"),
        (("x11", "max"), "X11_MAX"),
    ],
)
def test_the_name_of_a_variable_is_made_of_words(words: tuple[str, ...], name: str) -> None:
    assert variable(*words) == name


def test_a_storage_class_has_the_name_that_a_supervisor_gives_it() -> None:
    assert storage_class("vSAN Default Storage Policy") == "vsan-default-storage-policy"
    assert storage_class("(gold.1)") == "gold.1"


def test_each_document_has_a_heading() -> None:
    assert Document.FLEXDIRECT.heading == ("Network-attached full or partial GPUs with Bitfusion FlexDirect")
    assert len({each.heading for each in Document}) == len(Document)


def test_the_most_similar_name_is_suggested_else_those_that_there_are() -> None:
    assert nearest("clutser", ["host", "cluster"]) == close("clutser", ["cluster"]) == "did you mean cluster?"
    assert nearest("x", ["host", "cluster"]) == "there are: cluster, host"
    assert nearest("x", []) == close("x", ["host"]) == ""
    many = [f"name-{number}" for number in range(9)]
    assert nearest("x", many[:8]) == f"there are: {', '.join(many[:8])}"
    assert nearest("x", many) == f"there are: {', '.join(many[:8])} and 1 more"
    assert few("abcd") == "a, b, c, d"
    assert few("abcde") == "a, b, c, d and 1 more"


@pytest.mark.parametrize(("wrong", "suggested"), [("abcxx", True), ("abcxxxxx", False)])
def test_only_what_is_mostly_the_same_is_similar(wrong: str, suggested: bool) -> None:
    assert bool(close(wrong, ["abcyy"])) is suggested


def test_exactly_one_of_several_fields_is_given() -> None:
    one_of(a=1, b=None)
    one_of(a=False, b=None)
    with pytest.raises(ValueError, match=r"^give either a or b; see there$") as refused:
        one_of("; see there", a=None, b=None)
    assert not isinstance(refused.value, FieldError)
    with pytest.raises(FieldError, match=r"^give either a or b or c$") as several:
        one_of(a=1, b=None, c=0)
    assert several.value.path == ("c",)
    with pytest.raises(FieldError) as several:
        one_of(a=1, b=2, c=3)
    assert several.value.path == ("c",)


def test_what_is_listed_twice_is_reported_where_it_is_for_the_second_time() -> None:
    each_once("hosts", ["a", "b"])
    with pytest.raises(FieldError, match=r"^b is listed twice$") as refused:
        each_once("hosts", ["a", "b", "c", "b", "a"])
    assert refused.value.path == ("hosts", 3)


def test_an_endpoint_is_named_by_what_leads_to_it() -> None:
    assert str(Endpoint("sv.test", "ml", "tkc")) == "sv.test/ml/tkc"
    assert str(Endpoint("sv.test", "ml")) == "sv.test/ml"
    kubeconfig = Secret("file", "k.yaml")
    assert str(Endpoint(kubeconfig=kubeconfig)) == "kubeconfig {file: k.yaml}"
    assert str(Endpoint(kubeconfig=kubeconfig, context="gpu")) == "kubeconfig {file: k.yaml} context gpu"


def test_what_is_not_installed_is_named_with_what_installs_it() -> None:
    found = missing("the operator", "operator", ModuleNotFoundError(name="kopf"))
    assert str(found) == (
        'the operator needs bfinfra[operator]; the package of kopf is not installed; pip install "bfinfra[operator]"'
    )


def test_what_does_not_serve_is_told_with_what_is_left_to_do() -> None:
    assert str(OutOfService(Key("gpu_host", "a"), "is off")) == "gpu_host/a is off"
    assert str(OutOfService(Key("gpu_host", "a"), "is off", ("start it", "wait"))) == (
        "gpu_host/a is off; left to do: start it, wait"
    )


def test_a_part_of_a_site_is_told_by_its_addresses() -> None:
    a, b = Key("box", "a"), Key("box", "b")
    assert Partial((b,), frozenset({b, a}), 3).data() == {
        "targets": ["box/b"],
        "resources": ["box/a", "box/b"],
        "left_out": 3,
    }


def test_what_could_not_be_read_is_grouped_by_its_cause() -> None:
    found = by_cause({"box/a": "no answer", "lid": "refused", "box": "no answer", "box/b": "no answer"})
    assert [each[:] for each in found] == [
        ("no answer", ("box/a", "box/b"), ("box",)),
        ("refused", (), ("lid",)),
    ]
    assert [each.named for each in found] == [("box/a", "box/b"), ("lid",)]
    lost = "Neither can resources that the file no longer contains."
    assert [each.besides for each in found] == [lost, ""]
    assert by_cause({"box/a": "no answer"})[0].besides == ""


@pytest.mark.parametrize(
    ("root", "text", "path"),
    [
        ("vm", "web", "/DC/vm/web"),
        ("vm", "X", "/DC/vm/X"),
        ("vm", "/Other/vm/X/", "/Other/vm/X"),
        ("vm", "folder/web/", "/DC/vm/folder/web"),
        ("vm", "/web", "/DC/vm/web"),
        ("vm", "", "/DC/vm"),
        ("vm", "/Other/vm/web/", "/Other/vm/web"),
        ("vm", "/Other/vm", "/Other/vm"),
        ("vm", "Other/vm/web", "/DC/vm/Other/vm/web"),
        ("host", "/Other/vm/web", "/DC/host/Other/vm/web"),
    ],
)
def test_an_object_is_named_by_its_name_or_its_whole_path(root: str, text: str, path: str) -> None:
    assert root in DATACENTER_FOLDERS
    assert path_in("DC", root, text) == path


@pytest.mark.parametrize(
    ("path", "type", "alone"),
    [
        ("/DC/host/*/esx1", "HostSystem", "/DC/host/esx1"),
        ("/DC/host/folder/*/esx1", "HostSystem", "/DC/host/folder/esx1"),
        ("/DC/host/cluster/esx1", "HostSystem", ""),
        ("/DC/host/*/esx1", "ClusterComputeResource", ""),
        ("/DC/*/esx1", "HostSystem", ""),
    ],
)
def test_a_host_that_may_be_in_no_cluster_has_its_permissions_one_place_higher(
    path: str, type: str, alone: str
) -> None:
    assert Entity(path, type).alone == alone


def test_rights_are_declared_by_words() -> None:
    assert holds("host", "Host.Config.Maintenance", "System.Read").names == (
        "Host.Config.Maintenance",
        "System.Read",
    )
    assert holds("host").on == "host"
    rule = may("get list", "secrets jobs.batch", "namespaces", optional="no logs")
    assert (rule.on, rule.verbs, rule.resources, rule.optional) == (
        "namespaces",
        ("get", "list"),
        ("secrets", "jobs.batch"),
        "no logs",
    )
    assert may("get", "secrets", "namespaces").optional == ""
    assert not Verb("pods", "get") < Verb("pods", "get")
    assert sorted([Verb("pods", "get"), Verb("jobs", "list"), Verb("jobs", "get")]) == [
        Verb("jobs", "get"),
        Verb("jobs", "list"),
        Verb("pods", "get"),
    ]


def test_where_a_sites_images_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path))
    for site, home in (
        (Site("s", None, {}), tmp_path / "bfinfra/s"),
        (Site("s", None, {}, stand_ins=tmp_path / "sandbox"), tmp_path / "sandbox/.bfinfra/s"),
    ):
        assert image_notes.contexts(site) == home / "client_images.json"
        assert image_notes.records(site) == home / "images"
        assert not image_notes.exist(site)
        (home / "images").mkdir(parents=True)
        assert image_notes.exist(site)
        (home / "images").rmdir()
        (home / "client_images.json").touch()
        assert image_notes.exist(site)


def test_a_client_package_is_named_by_its_release_its_build_and_its_system() -> None:
    clients = device_plugin._debs_and_rpms("450", "4.5.0-4")
    assert clients == device_plugin.RELEASES["0.4"].clients[:4]
    assert [(each.version, each.os, each.folder) for each in clients] == [
        ("450", "ubuntu18", "bitfusion-client-ubuntu1804_4.5.0-4_amd64.deb"),
        ("450", "ubuntu20", "bitfusion-client-ubuntu2004_4.5.0-4_amd64.deb"),
        ("450", "centos7", "bitfusion-client-centos7-4.5.0-4.x86_64.rpm"),
        ("450", "centos8", "bitfusion-client-centos8-4.5.0-4.x86_64.rpm"),
    ]
