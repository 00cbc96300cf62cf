"""`bfinfra schedule`: what it prints for systemd, cron and Kubernetes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from bfinfra.cli.main import main
from bfinfra.model.schedule import Schedule
from bfinfra.render.schedule import ScheduledCheck, cron
from bfinfra.render.systemd import timed

SITE = """\
site: poc
vcenter: {server: vc.test, username: me, password: {env: VCENTER_PASSWORD}, trust: {ca_file: certs/ca.pem}}
kubernetes_cluster:
  one: {kubeconfig: {file: secrets/one.kubeconfig}}
namespace:
  training: {cluster: one}
"""
KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "current-context": "c",
    "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    "clusters": [{"name": "k", "cluster": {"server": "https://k.test:6443"}}],
    "users": [{"name": "u", "user": {"token": "planted-token"}}],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "certs").mkdir()
    (tmp_path / "secrets").mkdir()
    (tmp_path / "site.yaml").write_text(SITE)
    (tmp_path / "certs/ca.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    (tmp_path / "secrets/one.kubeconfig").write_text(yaml.safe_dump(KUBECONFIG))
    monkeypatch.setenv("VCENTER_PASSWORD", "planted-password")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_timer_and_its_service_name_absolute_paths_and_where_secrets_come_from(folder, capsys):
    assert main(["schedule", "systemd", "site.yaml", "--every", "6h", "--out", "."]) == 0
    service, timer = (folder / f"bfinfra-drift-poc.{each}" for each in ("service", "timer"))
    assert f"drift --changes-only {folder}/site.yaml" in service.read_text()
    assert "EnvironmentFile=/etc/bfinfra/poc.env" in service.read_text()
    assert "# VCENTER_PASSWORD: one NAME=value a line" in service.read_text()
    assert "OnCalendar=*-*-* 00/6:" in timer.read_text()
    assert "systemctl enable --now bfinfra-drift-poc.timer" in capsys.readouterr().err


def test_a_watch_is_one_service_that_tells_systemd_how_it_is(folder, capsys):
    assert main(["schedule", "systemd", "site.yaml", "--watch", "--out", "."]) == 0
    (unit,) = folder.glob("bfinfra-*")
    lines = unit.read_text().splitlines()
    assert unit.name == "bfinfra-watch-poc.service"
    assert any(line.endswith(f"bfinfra watch {folder}/site.yaml") for line in lines)
    assert {
        "Type=notify",
        "WatchdogSec=300",
        "KillMode=mixed",
        "Restart=always",
        "SuccessExitStatus=2",
        "StateDirectory=bfinfra-watch-poc",
        "EnvironmentFile=/etc/bfinfra/poc.env",
        "ProtectSystem=strict",
        "WantedBy=multi-user.target",
    } <= set(lines)
    assert "systemctl enable --now bfinfra-watch-poc.service" in capsys.readouterr().err


def test_a_line_of_a_crontab_is_what_a_shell_reads_back(folder, capsys):
    assert main(["schedule", "cron", "site.yaml", "--every", "15m"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    words = shlex.split(line.split(None, 5)[5])
    assert words[-3:] == ["drift", "--changes-only", f"{folder}/site.yaml"]


def kubernetes(capsys: Any, *more: str) -> tuple[dict[str, Any], str]:
    assert main(["schedule", "kubernetes", "site.yaml", "--image", "registry.test/bfinfra:1", *more]) == 0
    output = capsys.readouterr()
    return {each["kind"]: each for each in yaml.safe_load_all(output.out)}, output.err


def test_a_cronjob_has_the_sites_files_and_gets_its_secrets_from_a_secret(folder, capsys):
    found, output = kubernetes(capsys)
    pod = found["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"] == ["drift", "--forget", "/site/site.yaml"]
    assert sorted(found["ConfigMap"]["data"].values()) == sorted([SITE, "-----BEGIN CERTIFICATE-----\n"])
    sources = pod["volumes"][0]["projected"]["sources"]
    assert [
        [item["path"] for item in source[kind]["items"]]
        for source, kind in zip(sources, ("configMap", "secret"), strict=True)
    ] == [["site.yaml", "certs/ca.pem"], ["secrets/one.kubeconfig"]]
    assert [each["name"] for each in pod["containers"][0]["env"] if "valueFrom" in each] == [
        "VCENTER_PASSWORD"
    ]
    assert "kubectl create secret generic bfinfra-drift-poc --from-literal=VCENTER_PASSWORD" in output
    assert "planted" not in str(found) + output


def test_a_pod_of_a_check_may_do_nothing_that_it_need_not(folder, capsys):
    found, _ = kubernetes(capsys)
    pod = found["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert (pod["automountServiceAccountToken"], pod["securityContext"]["runAsNonRoot"]) == (False, True)
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"] is True
    assert "ClusterRole" not in found


def test_in_its_own_cluster_its_account_may_read_and_only_read(folder, capsys):
    found, _ = kubernetes(
        capsys, "--in-cluster", "kubernetes_cluster/one", "--namespace", "ops", "--claim", "memory"
    )
    assert {verb for rule in found["ClusterRole"]["rules"] for verb in rule["verbs"]} <= {"get", "list"}
    assert found["ClusterRoleBinding"]["subjects"] == [
        {"kind": "ServiceAccount", "name": "bfinfra-drift-poc", "namespace": "ops"}
    ]
    assert (
        found["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["args"][1]
        == "--changes-only"
    )
    assert (
        main(
            ["schedule", "kubernetes", "site.yaml", "--image", "x", "--in-cluster", "kubernetes_cluster/two"]
        )
        == 1
    )
    assert "there is: kubernetes_cluster/one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            SITE.replace("{env: VCENTER_PASSWORD}", "{keyring: vcenter/me}"),
            "a keyring belongs to this machine",
        ),
        (
            SITE.replace("{env: VCENTER_PASSWORD}", "{command: [pass, vcenter]}"),
            "a command belongs to this machine",
        ),
        (SITE.replace("certs/ca.pem", "/etc/ssl/certs/ca.pem"), "outside of the site's folder"),
    ],
)
def test_what_a_container_can_not_have_is_reported(folder, capsys, text, why):
    (folder / "site.yaml").write_text(text)
    assert main(["schedule", "kubernetes", "site.yaml", "--image", "x"]) == 1
    assert why in capsys.readouterr().err


def test_files_that_no_config_map_holds_are_reported_by_name(folder, capsys):
    (folder / "certs/ca.pem").write_text("x" * 1_000_000)
    assert main(["schedule", "kubernetes", "site.yaml", "--image", "x"]) == 1
    assert "certs/ca.pem" in capsys.readouterr().err


CHECK = ScheduledCheck(
    "poc", "/opt/my tools/bfinfra", ("/srv/100%/$HOME/a'b\"c.yaml",), Schedule.every("1h", "poc")
)


def test_words_of_paths_mean_nothing_to_systemd_or_a_crontab():
    command = next(
        line
        for line in timed(CHECK)["bfinfra-drift-poc.service"].splitlines()
        if line.startswith("ExecStart=")
    )
    assert (
        command == 'ExecStart="/opt/my tools/bfinfra" drift --changes-only "/srv/100%%/$$HOME/a\'b\\"c.yaml"'
    )
    line = cron(CHECK)
    assert r"'\%'" in line
    assert shlex.split(line.split(None, 5)[5]) == [CHECK.program, "drift", "--changes-only", *CHECK.sites]


STARTED = (
    SITE
    + """\
pepper: {file: secrets/pepper}
registry_credential:
  pull: {cluster: one, namespaces: [training], server: 10.1.0.3, username: me, password: {file: secrets/registry}}
bitfusion_token:
  team: {source: {tar: tokens/team.tar}}
gpu_host:
  esx1.test: {}
bitfusion_server:
  bf-01: {ova: {file: server.ova}, host: esx1.test, gpus: 0, networks: {Network 1: {network: VM Network}}}
"""
)
LATER = {
    "secrets/registry": "registry_credential/pull: password",
    "tokens/team.tar": "bitfusion_token/team: source.tar",
    "server.ova": "bitfusion_server/bf-01: ova.file",
}


def mounted(found: dict[str, Any]) -> list[str]:
    pod = found["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return [
        item["path"]
        for source in pod["volumes"][0]["projected"]["sources"]
        for each in source.values()
        for item in each["items"]
    ]


def test_what_is_not_there_yet_is_left_out_by_name_and_all_else_is_carried(folder, capsys):
    (folder / "site.yaml").write_text(STARTED)
    found, output = kubernetes(capsys)
    assert mounted(found) == ["site.yaml", "certs/ca.pem", "secrets/one.kubeconfig"]
    for path, field in LATER.items():
        assert f"left out: {path} ({field}): it is not there yet" in output
    assert "left out: secrets/pepper (pepper): no resource of the site uses it" in output
    assert "secrets/registry=" not in output.partition("create secret")[2]


def test_once_it_is_there_it_is_carried(folder, capsys):
    (folder / "site.yaml").write_text(STARTED)
    (folder / "tokens").mkdir()
    for path in LATER:
        (folder / path).write_text("short")
    found, output = kubernetes(capsys)
    assert sorted(mounted(found)) == sorted(["site.yaml", "certs/ca.pem", "secrets/one.kubeconfig", *LATER])
    assert "it is not there yet" not in output


def test_an_appliance_that_is_too_large_is_left_out_of_a_check_which_compares_with_what_was_noted(
    folder, capsys
):
    (folder / "site.yaml").write_text(STARTED)
    (folder / "server.ova").write_text("x" * 1_000_000)
    found, output = kubernetes(capsys)
    assert "server.ova" not in mounted(found)
    assert (
        "left out: server.ova (bitfusion_server/bf-01: ova.file): it is too large for a ConfigMap; " in output
    )


def test_a_site_object_leaves_out_what_is_not_there_yet_but_nothing_that_an_apply_needs(folder, capsys):
    (folder / "site.yaml").write_text(STARTED)
    assert main(["operator", "site", "site.yaml"]) == 0
    output = capsys.readouterr()
    site = next(each for each in yaml.safe_load_all(output.out) if each["kind"] == "Site")
    assert sorted(site["spec"]["files"]) == ["certs/ca.pem", "secrets/one.kubeconfig"]
    assert all(
        f"left out: {path} ({field}): it is not there yet" in output.err for path, field in LATER.items()
    )
    (folder / "server.ova").write_text("x" * 1_000_000)
    assert main(["operator", "site", "site.yaml"]) == 1
    assert "server.ova" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [["schedule", "kubernetes", "site.yaml", "--image", "x"], ["operator", "site", "site.yaml"]]
)
def test_a_file_without_which_nothing_is_seen_must_be_there(folder, capsys, command):
    (folder / "certs/ca.pem").unlink()
    assert main(command) == 1
    output = capsys.readouterr().err
    assert "vcenter.trust.ca_file leads nowhere" in output
    assert "site.yaml:2:" in output


VARIANT = ("--overlay", "overlays/prod.yaml", "--values", "overlays/values.yaml", "--set", "name=poc-prod")


@pytest.fixture
def varied(folder: Path) -> Path:
    (folder / "overlays").mkdir()
    (folder / "site.yaml").write_text(
        SITE.replace("site: poc", "site: {value: name}\nvalues: {name: {}, host: {}}").replace(
            "server: vc.test", "server: {value: host}"
        )
    )
    (folder / "overlays/prod.yaml").write_text("vcenter: {username: prod}\n")
    (folder / "overlays/values.yaml").write_text("host: vc.test\n")
    return folder


def test_a_scheduled_check_is_of_the_same_variant(varied, capsys):
    words = [f"--overlay {varied}/overlays/prod.yaml --values {varied}/overlays/values.yaml"]
    assert main(["schedule", "cron", "site.yaml", *VARIANT]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert f"drift --changes-only {words[0]} --set name=poc-prod {varied}/site.yaml" in line
    assert main(["schedule", "systemd", "site.yaml", *VARIANT]) == 0
    found = capsys.readouterr().out
    assert f"drift --changes-only {words[0]} --set name=poc-prod {varied}/site.yaml\n" in found


def test_a_cronjob_carries_what_makes_the_variant(varied, capsys):
    found, _ = kubernetes(capsys, *VARIANT)
    pod = found["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"] == [
        "drift",
        "--forget",
        "--overlay",
        "/site/overlays/prod.yaml",
        "--values",
        "/site/overlays/values.yaml",
        "--set",
        "name=poc-prod",
        "/site/site.yaml",
    ]
    carried = [each["path"] for each in pod["volumes"][0]["projected"]["sources"][0]["configMap"]["items"]]
    assert carried[:3] == ["site.yaml", "overlays/prod.yaml", "overlays/values.yaml"]
