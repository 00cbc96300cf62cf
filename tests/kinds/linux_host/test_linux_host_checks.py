"""What the doctor says of Linux machines: who gets in, who is not there yet, which ports are reached from
where. Decided without machines, then on the sandbox's.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import bfinfra
from bfinfra.backends.ansible import Answer
from bfinfra.kinds.machine.linux_host.checks import connect, judged, ways
from bfinfra.model.finding import Finding, Health
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running

HOST = {"key": {"file": "ssh/id_ed25519"}, "trust": {"known_hosts": "ssh/known_hosts"}}
SITE = {
    "site": "example",
    "linux_host": {"cpu-01": {"address": "10.5.0.11", **HOST}, "gpu-01": {"address": "10.5.0.1", **HOST}},
    "kubeadm_cluster": {
        "rdg": {
            "control_plane": "cpu-01",
            "workers": ["gpu-01"],
            "version": "v1.27.3",
            "cni": "pod-network.yaml",
            "ports": [10250, 179],
        }
    },
    "vgpu_license": {"workers": {"hosts": ["gpu-01"], "server": "172.16.7.5"}},
}


def findings(tmp_path: Path, sandbox: Running) -> dict[str, list[Finding]]:
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(SITE))
    found = bfinfra.diagnose(
        bfinfra.load(tmp_path / "site.yaml", sandbox=sandbox), context=bfinfra.RunContext(sandbox=sandbox)
    )
    return {
        check: [each for each in found if each.check == check]
        for check in ("machines.entrance", "machines.ports")
    }


def test_nodes_reach_each_other_their_control_plane_and_the_license_server(tmp_path: Path) -> None:
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(SITE))
    assert ways(bfinfra.load(tmp_path / "site.yaml").resources) == {
        "cpu-01": (("10.5.0.1", 10250), ("10.5.0.1", 179)),
        "gpu-01": (("10.5.0.11", 6443), ("10.5.0.11", 10250), ("10.5.0.11", 179), ("172.16.7.5", 7070)),
    }


def test_machines_are_entered_and_the_ways_between_them_are_open_before_anything_listens(
    tmp_path: Path, sandbox: Running
) -> None:
    found = findings(tmp_path, sandbox)
    assert [(each.about, each.health) for each in found["machines.entrance"]] == [
        ("linux_host/cpu-01", Health.GOOD),
        ("linux_host/gpu-01", Health.GOOD),
    ]
    worker = next(each for each in found["machines.ports"] if each.about == "linux_host/gpu-01")
    assert worker.health is Health.GOOD
    assert worker.what == (
        "it reaches 10.5.0.11:6443, 10.5.0.11:10250, 10.5.0.11:179, 172.16.7.5:7070; "
        "nothing listens yet at 10.5.0.11:6443, 10.5.0.11:10250, 10.5.0.11:179"
    )
    assert sandbox.tally()["written"] == 0


@pytest.mark.parametrize(
    ("answer", "health", "message"),
    [
        (Answer("", 0), Health.GOOD, "it reaches 10.0.0.1:179"),
        (Answer("bash: connect: Connection refused", 1), Health.GOOD, "nothing listens yet at 10.0.0.1:179"),
        (Answer("", 124), Health.BAD, "no answer"),
        (Answer("bash: connect: No route to host", 1), Health.BAD, "No route to host"),
    ],
)
def test_who_refuses_is_there_and_who_is_silent_is_behind_a_firewall(
    answer: Answer, health: Health, message: str
) -> None:
    found = judged(Key("linux_host", "a"), {"10.0.0.1:179": answer})
    assert found.health is health
    assert message in f"{found.what} {found.why}"


def test_a_try_is_one_connection_that_is_let_go() -> None:
    *words, script, name, address, port = connect("10.0.0.1", 179)
    assert (words, name, address, port) == (["timeout", "3", "bash", "-c"], "bash", "10.0.0.1", "179")
    assert "10.0.0.1" not in script
