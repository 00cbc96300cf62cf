"""FlexDirect in containers: the program and its configuration are the node's, and GPUs are where a server's
scheduler listens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from kube_serving import http_of
from waiting import until

from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.kubernetes.guest import RunningCluster
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.linux.gpus import LICENSES, SCHEDULER
from bfinfra.sandbox.linux.machine import Machine, Node, Service
from bfinfra.sandbox.linux.node import NodeMachine
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.server import Listeners

HOME = "/api/v1/namespaces/default"
PROGRAM, LICENSE, CONF = "/usr/bin/flexdirect", f"{LICENSES}/host_id", "/etc/bitfusionio/servers.conf"
RUN = ["flexdirect", "run", "-n", "1", "-p", "0.5", "/bin/bash", "-c", "python train.py"]
HEALTH = ["/bin/bash", "-c", "flexdirect health"]


def fresh(name: str, *gpus: int) -> Machine:
    return Machine.fresh(name, ("ubuntu", "20.04"), gpus, ("root",))


@pytest.fixture
def node() -> Machine:
    """A CPU host with all that it needs."""
    made = fresh("n1")
    for folder in ("/etc/bitfusionio", LICENSES):
        made.files[folder] = Node(None)
    made.files |= {PROGRAM: Node(b"x", 0o755), LICENSE: Node(b"one\n"), CONF: Node(b"# by hand\n10.0.0.9\n")}
    return made


@pytest.fixture
def server() -> Machine:
    """A GPU server whose scheduler runs."""
    made = fresh("v100", 16384, 16384)
    made.files |= {
        LICENSE: Node(b"two\n"),
        f"/etc/systemd/system/{SCHEDULER}": Node(b"ExecStart=/usr/bin/flexdirect resource_scheduler -n 1\n"),
    }
    made.services = {SCHEDULER: Service(active=True)}
    return made


@pytest.fixture
def guest(clock: Clock, node: Machine, server: Machine) -> Iterator[RunningCluster]:
    machine = NodeMachine(
        node, lambda: {"10.0.0.9:56001": server} if server.services[SCHEDULER].active else {}
    )
    running = RunningCluster(
        "g", "v1.27.5", clock, Outside(host=lambda name: machine if name == "n1" else None)
    )
    running.start()
    running.add_node("n1", cpus=4, memory=2**35, version="v1.27.5")
    until(lambda: running.cluster.get("", "serviceaccounts", "default", "default"))
    yield running
    running.cluster.close()


@pytest.fixture
def http(guest: RunningCluster, listeners: Listeners, pki: Pki) -> Iterator[httpx2.Client]:
    with http_of(guest.cluster, listeners, pki) as client:
        yield client


def made(
    http: httpx2.Client, args: list[str], path: str = "/etc/bitfusionio", at: str = "/etc/bitfusionio"
) -> None:
    container: dict[str, Any] = {
        "name": "c",
        "image": "x:1",
        "args": args,
        "volumeMounts": [{"name": "bitfusionio", "mountPath": at}],
    }
    volume = {"name": "bitfusionio", "hostPath": {"path": path, "type": "Directory"}}
    body = {
        "metadata": {"name": "p"},
        "spec": {"restartPolicy": "Never", "containers": [container], "volumes": [volume]},
    }
    answer = http.post(f"{HOME}/pods", json=body)
    assert answer.status_code == 201, answer.text


def ended(http: httpx2.Client) -> tuple[str, str]:
    """How the pod ended, and its log."""
    until(lambda: http.get(f"{HOME}/pods/p").json()["status"]["phase"] in ("Succeeded", "Failed"))
    return http.get(f"{HOME}/pods/p").json()["status"]["phase"], http.get(f"{HOME}/pods/p/log").text


def test_where_all_is_there_gpus_are_locked(http: httpx2.Client) -> None:
    made(http, RUN)
    phase, log = ended(http)
    assert phase == "Succeeded"
    assert "Requesting GPUs [0] with 8192 MiB of memory" in log
    assert "Locked 1 GPUs with partial memory 0.5" in log


@pytest.mark.parametrize(
    ("gone", "args", "says"),
    [
        (PROGRAM, RUN, 'exec: "flexdirect": executable file not found in $PATH'),
        (PROGRAM, HEALTH, "/bin/bash: line 1: flexdirect: command not found"),
        (LICENSE, RUN, "run flexdirect init"),
        (CONF, RUN, "open /etc/bitfusionio/servers.conf: no such file or directory"),
    ],
)
def test_what_lacks_on_the_node_is_what_it_says(
    http: httpx2.Client, node: Machine, gone: str, args: list[str], says: str
) -> None:
    node.remove(gone)
    made(http, args)
    phase, log = ended(http)
    assert phase == "Failed"
    assert says in log


def test_the_folder_mounted_elsewhere_is_no_program(http: httpx2.Client) -> None:
    made(http, RUN, at="/etc/bifusionio")
    assert ended(http)[0] == "Failed"


def test_no_server_that_listens_is_no_gpu(http: httpx2.Client, server: Machine) -> None:
    server.services[SCHEDULER].active = False
    made(http, RUN)
    phase, log = ended(http)
    assert phase == "Failed"
    assert "none of the servers responded" in log


def test_more_gpus_than_a_scheduler_gives_out_are_not_to_be_had(http: httpx2.Client) -> None:
    made(http, ["flexdirect", "run", "-n", "2", "python"])
    phase, log = ended(http)
    assert (phase, "insufficient GPUs: requested 2, available 1" in log) == ("Failed", True)


def test_a_health_check_names_the_servers_of_the_nodes_list(http: httpx2.Client) -> None:
    made(http, HEALTH)
    phase, log = ended(http)
    assert phase == "Succeeded"
    assert log.startswith("Health report for server: 10.0.0.9:56001\n[PASS    ] Check flexdirect install")


def test_a_node_without_the_folder_keeps_the_pod_waiting_until_it_is_there(
    http: httpx2.Client, guest: RunningCluster, node: Machine
) -> None:
    node.remove("/etc/bitfusionio")
    made(http, RUN)
    until(lambda: "FailedMount" in http.get(f"{HOME}/events").text)
    says = (
        'MountVolume.SetUp failed for volume \\"bitfusionio\\" : hostPath type check failed: '
        "/etc/bitfusionio is not a directory"
    )
    assert says in http.get(f"{HOME}/events").text
    node.files |= {path: Node(None) for path in ("/etc/bitfusionio", LICENSES)} | {
        LICENSE: Node(b"one\n"),
        CONF: Node(b"10.0.0.9\n"),
    }
    guest.loop.look_at_all()
    assert ended(http)[0] == "Succeeded"
