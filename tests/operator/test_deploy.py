"""What installs the operator: the Containerfile as hadolint reads it, alert rules as PromQL, figures as
Prometheus reads them, manifests.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import promql_parser
import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

import bfinfra
from bfinfra.cli import parser
from bfinfra.operator.decide import Look
from bfinfra.operator.desired import Desired
from bfinfra.operator.figures import Figures
from bfinfra.operator.result import Moved, Outcome, Planned, Result
from bfinfra.operator.status import after, watched

DEPLOY = Path(__file__).parents[2] / "deploy"
RESULT = Result(
    Outcome.APPROVAL,
    "",
    4,
    2,
    (Moved("a/b", "c", "drift"),),
    0,
    "a" * 16,
    3,
    (Planned("a/b", "delete"),),
    "",
    0,
    (1.5, 2.0),
    {"vc.test:443": 1_900_000_000},
    {"main": 1_800_000_000},
)


def figures() -> dict[str, list[tuple[dict[str, str], float]]]:
    """As whoever scrapes sees them."""
    shown = Figures()
    wanted = Desired("ns", "poc", "u", 1, {"site": "poc"}, watch=True)
    status = after(wanted, Look("j", "k", 1.0, 1, result=RESULT), "2027-01-01T00:00:00Z")
    status = watched(replace(wanted, status=status), "2027-01-01T00:00:00Z", alive=False, fresh=False)
    shown.show(
        lambda: [
            (Desired("ns", "poc", "u", 1, {}, status=status), RESULT, 1_700_000_000.0),
            (Desired("ns", "new", "v", 1, {}), None, 0.0),
        ],
        lambda: 5,
        lambda: True,
    )
    shown.waited(3)
    shown.looked(RESULT)
    text = generate_latest(shown.registry).decode()
    return {
        sample.name: [(each.labels, each.value) for each in family.samples if each.name == sample.name]
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_prometheus_reads_the_figures_of_each_site() -> None:
    found, poc = figures(), {"namespace": "ns", "site": "poc"}
    assert found["bfinfra_site_ready"] == [(poc, 0)]
    assert found["bfinfra_site_watched"] == [(poc, 0)]
    assert found["bfinfra_site_drifted"] == [(poc, 2)]
    assert (poc, 3) in found["bfinfra_site_changes_waiting"]
    assert found["bfinfra_site_look_seconds"] == [(poc, 3.5)]
    assert found["bfinfra_certificate_expiry_timestamp_seconds"] == [
        (poc | {"server": "vc.test:443"}, 1_900_000_000)
    ]
    assert found["bfinfra_token_expiry_timestamp_seconds"] == [(poc | {"token": "main"}, 1_800_000_000)]
    assert found["bfinfra_look_wait_seconds_count"] == [({}, 1)]
    assert ({"outcome": "ApprovalNeeded"}, 1) in found["bfinfra_looks_total"]
    assert (found["bfinfra_jobs_running"], found["bfinfra_operator_leading"]) == ([({}, 5)], [({}, 1)])


RULES = [
    rule
    for group in yaml.safe_load((DEPLOY / "operator/alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_an_alert_is_promql_on_figures_that_there_are(rule: dict[str, Any]) -> None:
    promql_parser.parse(rule["expr"])
    named = set(re.findall(r"bfinfra_\w+", rule["expr"]))
    assert named
    assert named <= figures().keys()
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"\d+[mhd]", rule["for"])
    labels = {label for name in named for found, _ in figures()[name] for label in found}
    assert set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"]))) <= labels


def test_what_is_no_promql_would_be_found() -> None:
    with pytest.raises(ValueError, match="invalid promql"):
        promql_parser.parse("bfinfra_site_drifted > > 0")


def hadolint(file: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("hadolint"), "--failure-threshold", "info", file],
        capture_output=True,
        text=True,
        check=False,
    )


def test_hadolint_finds_nothing_in_the_containerfile(tmp_path: Path) -> None:
    found = hadolint(DEPLOY / "Containerfile")
    assert (found.returncode, found.stdout) == (0, "")
    (tmp_path / "Containerfile").write_text(
        (DEPLOY / "Containerfile").read_text().replace("# hadolint ignore=DL3008\n", "")
    )
    assert "DL3008" in hadolint(tmp_path / "Containerfile").stdout


def test_the_image_has_what_the_package_is_built_of_and_runs_as_nobody() -> None:
    lines = (DEPLOY / "Containerfile").read_text().splitlines()
    copied = {
        word
        for line in lines
        if line.startswith("COPY ") and "--from" not in line
        for word in line.split()[1:-1]
    }
    assert all((DEPLOY.parent / each).exists() for each in copied)
    wheel = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["tool"]["hatch"]["build"][
        "targets"
    ]["wheel"]
    assert {
        *wheel["packages"],
        *wheel["force-include"],
        *wheel["shared-data"],
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "requirements-operator.lock",
    } == copied
    assert [line for line in lines if line.startswith("USER")] == ["USER 65532:65532"]


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "operator" / name).read_text()))


def test_the_operator_may_read_no_secret_and_delete_nothing() -> None:
    (rules,) = [
        each["rules"]
        for each in documents("rbac.yaml")
        if each["kind"] == "ClusterRole" and each["metadata"]["name"] == "bfinfra-operator"
    ]
    assert not {"secrets", "*", "roles", "rolebindings"} & {
        resource for rule in rules for resource in rule["resources"]
    }
    assert not {"delete", "deletecollection", "*", "update"} & {
        verb for rule in rules for verb in rule["verbs"]
    }


def of_watcher(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((DEPLOY / "watcher" / name).read_text()))


def test_a_watcher_may_do_nothing_outside_of_its_namespace_and_lists_no_secret() -> None:
    made = {each["kind"]: each for each in of_watcher("rbac.yaml")}
    assert made.keys() == {"ServiceAccount", "Role", "RoleBinding"}
    verbs = {resource: set(rule["verbs"]) for rule in made["Role"]["rules"] for resource in rule["resources"]}
    assert verbs["secrets"] == verbs["configmaps"] == {"get"}
    assert verbs.keys() == {"sites", "sites/status", "secrets", "configmaps", "leases"}
    assert not {"delete", "update", "*"} & set.union(*verbs.values())
    assert "patch" not in verbs["sites"]


def test_a_watchers_budget_service_and_deployment_mean_the_same_pods() -> None:
    (deployment,), (service,) = of_watcher("deployment.yaml"), of_watcher("service.yaml")
    (budget,) = of_watcher("disruption.yaml")
    pod = deployment["spec"]["template"]
    labels = pod["metadata"]["labels"]
    assert service["spec"]["selector"] == budget["spec"]["selector"]["matchLabels"] == labels
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    (container,) = pod["spec"]["containers"]
    assert service["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    assert parser.build(container["args"]).parse_args(container["args"]).sites == 100
    (state,) = pod["spec"]["volumes"]
    assert state["emptyDir"]["medium"] == "Memory"


def test_manifests_and_chart_name_the_version_of_the_package() -> None:
    (deployment,) = documents("deployment.yaml")
    (watcher,) = of_watcher("deployment.yaml")
    assert watcher["spec"]["template"]["spec"]["containers"][0]["image"] == f"bfinfra:{bfinfra.__version__}"
    (own,) = (each["pairs"] for each in of_watcher("kustomization.yaml")[0]["labels"])
    assert own["app.kubernetes.io/version"] == bfinfra.__version__
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    (labels,) = (each["pairs"] for each in documents("kustomization.yaml")[0]["labels"])
    chart = yaml.safe_load((DEPLOY / "helm/bfinfra-operator/Chart.yaml").read_text())
    assert image == f"bfinfra:{bfinfra.__version__}"
    assert {labels["app.kubernetes.io/version"], chart["appVersion"], chart["version"]} == {
        bfinfra.__version__
    }


def test_every_default_of_the_chart_is_allowed_by_its_schema_and_nothing_else() -> None:
    chart = DEPLOY / "helm/bfinfra-operator"
    judge = jsonschema.Draft7Validator(json.loads((chart / "values.schema.json").read_text()))
    values = yaml.safe_load((chart / "values.yaml").read_text())
    judge.validate(values)
    assert set(judge.schema["properties"]) == {*values, "global"}  # helm itself adds that one
    for name in judge.schema["properties"]["metrics"]["properties"]:
        assert name in values["metrics"]


def test_the_service_leads_to_the_port_of_the_pods() -> None:
    (service,), (deployment,) = documents("service.yaml"), documents("deployment.yaml")
    pod = deployment["spec"]["template"]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    (port,) = service["spec"]["ports"]
    (target,) = pod["spec"]["containers"][0]["ports"]
    assert (port["targetPort"], port["port"]) == (target["name"], target["containerPort"])


def test_the_selector_stays_what_the_first_manifests_had_so_that_kubectl_apply_upgrades_them() -> None:
    """A Deployment's selector is immutable."""
    (deployment,) = documents("deployment.yaml")
    selector = deployment["spec"]["selector"]["matchLabels"]
    assert selector == {"app.kubernetes.io/name": "bfinfra", "app.kubernetes.io/component": "operator"}
    assert selector.items() <= deployment["spec"]["template"]["metadata"]["labels"].items()
    (labels,) = documents("kustomization.yaml")[0]["labels"]
    assert not labels.get("includeSelectors"), "kustomize would add its labels to the selector"


def test_the_lock_of_the_image_has_the_operators_libraries() -> None:
    lock = (DEPLOY.parent / "requirements-operator.lock").read_text()
    assert re.search(r"^kopf==", lock, re.MULTILINE)
    assert re.search(r"^prometheus-client==", lock, re.MULTILINE)
    assert re.search(r"^hatchling==", lock, re.MULTILINE)
    plain = (DEPLOY.parent / "requirements.lock").read_text()
    pinned, without_machines = (
        set(re.findall(r"^([\w-]+==[\w.]+)", text, re.MULTILINE)) for text in (lock, plain)
    )
    assert {each for each in without_machines if not each.startswith("asyncssh==")} <= pinned
