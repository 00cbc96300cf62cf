"""The custom resource definition of a Site: made from the site language, structural, and what a site's file
becomes in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import bfinfra
from bfinfra import kinds as registry
from bfinfra.cli.main import main
from bfinfra.operator.crd import definition
from bfinfra.operator.structural import structural
from bfinfra.operator.written import shaped, written
from bfinfra.spec.merge import SETTINGS
from bfinfra.spec.schema import schema

ROOT = Path(__file__).parents[2]
SITES = sorted([*ROOT.glob("specs/*.yaml"), *ROOT.glob("specs/kinds/*.yaml")])


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    """As it is deployed: the first test holds it against what the kinds make, which takes longer."""
    return yaml.load((ROOT / "deploy/operator/crd.yaml").read_text(), yaml.CSafeLoader)


@pytest.fixture(scope="module")
def language(made: dict[str, Any]) -> dict[str, Any]:
    return made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"][
        "site"
    ]


def nodes(schema: dict[str, Any], at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield at, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{at}.{name}")
    for key in ("items", "additionalProperties"):
        if key in schema:
            yield from nodes(schema[key], f"{at}.{key}")


def test_the_manifest_that_is_deployed_is_what_the_kinds_make(made: dict[str, Any]) -> None:
    assert definition(schema(values=False)) == made, "renew it: script/pages"


def test_it_is_structural_all_the_way_down(made: dict[str, Any]) -> None:
    for at, node in nodes(made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]):
        assert (
            isinstance(node.get("type"), str)
            or node.get("x-kubernetes-int-or-string")
            or node.get("x-kubernetes-preserve-unknown-fields")
        ), at
        assert not {
            "$ref",
            "allOf",
            "patternProperties",
            "propertyNames",
            "const",
            "definitions",
            "default",
        } & node.keys() or ("default" in node and at.startswith(".spec.")), at
        assert not ("properties" in node and "additionalProperties" in node), at


def test_the_server_checks_nothing_only_where_the_language_leaves_a_choice(made: dict[str, Any]) -> None:
    whole = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert [at for at, node in nodes(whole) if node.get("x-kubernetes-preserve-unknown-fields")] == [
        ".spec.site.bitfusion_server.additionalProperties.properties.additionalProperties",
        ".spec.site.gpu_operator.additionalProperties.values.additionalProperties",
        ".spec.site.manifests.additionalProperties.values.additionalProperties",
        ".spec.site.service_vm.additionalProperties.properties.additionalProperties",
        ".spec.site.tanzu_cluster.additionalProperties.trust.additionalProperties",
        ".spec.site.virtual_machine.additionalProperties.properties.additionalProperties",
        ".spec.site.vks_addon.additionalProperties.values.additionalProperties",
        ".spec.site.vks_cluster.additionalProperties.variables.additionalProperties",
        ".spec.site.vks_cluster.additionalProperties.control_plane.variables.additionalProperties",
        (
            ".spec.site.vks_cluster.additionalProperties.workers.additionalProperties"
            ".variables.additionalProperties"
        ),
    ]


def test_the_server_takes_each_pattern(made: dict[str, Any]) -> None:
    """Go's regular expressions repeat a thousand times at most, and know neither looking around nor \\Z."""
    whole = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    patterns = [each["pattern"] for _, each in nodes(whole) if "pattern" in each]
    assert len(patterns) > 20
    for pattern in patterns:
        assert not re.search(r"\(\?(?!:)|\\Z|\\[1-9]", pattern), pattern
        counts = [
            int(count) for found in re.findall(r"\{(\d*),?(\d*)\}", pattern) for count in found if count
        ]
        assert max(counts, default=0) <= 1000, pattern


def test_every_kind_is_in_it_with_its_documentation(language: dict[str, Any]) -> None:
    assert set(language["properties"]) == {*registry.names(), *SETTINGS}
    assert language["properties"]["gpu_host"]["additionalProperties"]["properties"]["reboot"]["description"]


def test_a_secret_is_a_variable_or_a_file_and_nothing_that_runs_a_command(language: dict[str, Any]) -> None:
    password = language["properties"]["vcenter"]["properties"]["password"]
    assert set(password["properties"]) == {"env", "file"}
    assert password["oneOf"] == [{"required": ["env"]}, {"required": ["file"]}]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"type": ["string", "number", "boolean"]}, {"type": "string"}),
        (
            {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
            {"type": "integer", "minimum": 1, "nullable": True},
        ),
        (
            {"anyOf": [{"type": ["string", "number", "boolean"], "pattern": "x"}, {"type": "integer"}]},
            {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        ),
        (
            {"type": "number", "exclusiveMinimum": 0},
            {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        ),
        ({"type": "string", "pattern": "^(?=.{1,3}$)a"}, {"type": "string"}),
        ({"$ref": "#/definitions/part"}, {"type": "object", "properties": {"a": {"type": "string"}}}),
        (
            {"allOf": [{"$ref": "#/definitions/part"}], "description": "Of here."},
            {"type": "object", "description": "Of here.", "properties": {"a": {"type": "string"}}},
        ),
        (
            {"type": "object", "patternProperties": {"^a": {"type": "integer"}}},
            {"type": "object", "additionalProperties": {"type": "integer"}},
        ),
        (
            {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]},
            {"type": "array", "items": {"x-kubernetes-preserve-unknown-fields": True}},
        ),
    ],
)
def test_each_form_of_the_language_has_its_structural_one(
    given: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert (
        structural(
            given,
            {
                "part": {
                    "type": "object",
                    "properties": {"a": {"type": "string", "examples": ["x"], "default": "y"}},
                }
            },
        )
        == expected
    )


def test_text_stays_as_it_was_written_and_numbers_become_numbers() -> None:
    kind = {
        "properties": {
            "count": {"type": "integer"},
            "vendor": {"type": "string"},
            "on": {"type": "boolean"},
            "part": {"type": "number"},
        }
    }
    found = shaped({"count": "2", "vendor": "0x10de", "on": "yes", "part": "0.5", "new": "1.20"}, kind)
    assert found == {"count": 2, "vendor": "0x10de", "on": True, "part": 0.5, "new": "1.20"}
    assert shaped({"count": "many"}, kind) == {"count": "many"}


@pytest.mark.parametrize("file", SITES, ids=lambda file: file.stem)
def test_a_sites_file_means_the_same_in_a_site_object(
    file: Path, language: dict[str, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "specs/kinds"
    folder.mkdir(parents=True)
    (tmp_path / "specs/manifests").symlink_to(ROOT / "specs/manifests")
    for beside in file.parent.iterdir():
        if not beside.is_file():
            (folder / beside.name).symlink_to(beside)
    copied = folder / file.name
    copied.write_text(yaml.safe_dump(written(bfinfra.load(file), language)))
    first, second = bfinfra.load(file), bfinfra.load(copied)
    assert second.name == first.name
    assert {key: spec.model_dump(mode="json") for key, spec in second.resources.items()} == {
        key: spec.model_dump(mode="json") for key, spec in first.resources.items()
    }


def test_a_variant_becomes_an_object_with_everything_merged(tmp_path: Path, language: dict[str, Any]) -> None:
    (tmp_path / "site.yaml").write_text(
        "site: {value: n}\nvalues: {n: {}, c: {type: integer, default: 2}}\n"
        "vm_class:\n  big: {cpus: {value: c}, memory: 4GiB}\n  gone: {cpus: 1, memory: 4GiB}\n"
    )
    (tmp_path / "prod.yaml").write_text("vm_class: {gone: null}\n")
    site = bfinfra.load(tmp_path / "site.yaml", overlays=[tmp_path / "prod.yaml"], values={"n": "prod"})
    assert written(site, language) == {"site": "prod", "vm_class": {"big": {"cpus": 2, "memory": "4GiB"}}}


def test_a_site_is_printed_with_where_its_references_lead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs/ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    (tmp_path / "one.kubeconfig").write_text("")
    (tmp_path / "site.yaml").write_text(
        "site: Poc_1\nvcenter: {server: vc.test, username: me, password: {env: PASSWORD}, trust: "
        "{ca_file: certs/ca.pem}}\n"
        "kubernetes_cluster: {one: {kubeconfig: {file: one.kubeconfig}}}\n"
    )
    assert main(["operator", "site", "site.yaml", "--every", "15m"]) == 0
    output = capsys.readouterr()
    config, found = yaml.safe_load_all(output.out)
    assert config["data"] == {"file-0": "-----BEGIN CERTIFICATE-----\n"}
    assert found["metadata"] == {"name": "poc-1"}
    assert found["spec"]["env"] == {"PASSWORD": {"secretKeyRef": {"name": "poc-1", "key": "PASSWORD"}}}
    assert found["spec"]["files"] == {
        "one.kubeconfig": {"secretKeyRef": {"name": "poc-1", "key": "secret-0"}},
        "certs/ca.pem": {"configMapKeyRef": {"name": "poc-1", "key": "file-0"}},
    }
    assert found["spec"]["site"]["vcenter"]["password"] == {"env": "PASSWORD"}
    assert '--from-literal=PASSWORD="$PASSWORD"' in output.err


@pytest.mark.parametrize(
    ("reference", "word"),
    [
        ("{command: [pass, show]}", "command"),
        ("{keyring: a/b}", "keyring"),
        ("{file: '../x'}", "outside of the site's folder"),
        ("{file: 'site.yaml'}", "can't contain"),
    ],
)
def test_what_no_job_can_have_is_refused_before_anything_is_printed(
    reference: str,
    word: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.yaml").write_text(
        f"site: poc\nkubernetes_cluster: {{one: {{kubeconfig: {reference}}}}}\n"
    )
    (tmp_path / "site.yaml").write_text("")
    assert main(["operator", "site", "my.yaml"]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert word in output.err
