from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from bfinfra.kinds.cluster.network_path.probe import SCRIPT
from bfinfra.sandbox.clock import Clock
from bfinfra.sandbox.kubernetes.guest import RunningCluster
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.reachability import reported, tried

SERVER, OTHER = "10.0.0.1:56001", "fd00::1:45201"
NETCAT = """\
#!/bin/sh
[ "$1" = -z ] || exit 1
case " $OPEN " in *" $4:$5 "*) exit 0 ;; esac
echo "nc: can't connect" >&2
exit 1
"""
WITHOUT_Z = """\
#!/bin/sh
[ "$1" = -w ] || { echo "nc: invalid option -- 'z'" >&2; exit 1; }
case " $OPEN " in *" $3:$4 "*) shift 4; [ "$1" = -e ] && exec "$2" ;; esac
exit 1
"""
AT_SECOND = """\
#!/bin/sh
[ -e "$SEEN" ] && exit 0
[ $# -gt 1 ] && : > "$SEEN"
exit 1
"""


def ran(
    folder: Path, netcat: str | None, patience: int, *ways: str, **variables: str
) -> tuple[int, list[str]]:
    """The probe's script in this machine's shell, with a netcat of ours and a sleep that takes no time."""
    for name, text in (("nc", netcat), ("sleep", "#!/bin/sh\n")):
        if text is not None:
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}" if netcat else str(folder)
    if netcat is None:
        (folder / "date").symlink_to("/bin/date")
    done = subprocess.run(
        ["/bin/sh", "-c", SCRIPT, "probe", str(patience), *ways],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": path, **variables},
    )
    return done.returncode, sorted(done.stdout.splitlines())


@pytest.mark.parametrize("netcat", [NETCAT, WITHOUT_Z])
def test_the_sandbox_finds_what_the_script_finds_in_a_real_shell(tmp_path: Path, netcat: str) -> None:
    code, lines = ran(tmp_path, netcat, 0, SERVER, OTHER, OPEN=SERVER)
    ways = tried({"command": ["sh", "-c", SCRIPT, "probe", "0", SERVER, OTHER]})
    paths, fine = reported(ways, {"metadata": {}}, [], lambda way: way == SERVER)
    assert ([line.partition(": ")[0] for line in lines], code) == (sorted(paths), 0 if fine else 1)


def test_the_script_says_why_and_tries_again_while_it_has_patience(tmp_path: Path) -> None:
    assert ran(tmp_path, NETCAT, 0, SERVER, OPEN="") == (1, [f"{SERVER} not reached: nc: can't connect"])
    assert ran(tmp_path, AT_SECOND, 60, SERVER, SEEN=str(tmp_path / "seen")) == (0, [f"{SERVER} reached"])


def test_an_image_without_netcat_is_reported(tmp_path: Path) -> None:
    assert ran(tmp_path, None, 0, SERVER) == (2, ["there is no nc in this image"])


def rule(**more: Any) -> dict[str, Any]:
    return {
        "spec": {
            "podSelector": {"matchLabels": {"app": "train"}},
            "policyTypes": ["Egress"],
            "egress": [more] if more else [],
        }
    }


@pytest.mark.parametrize(
    ("policies", "let_out"),
    [
        ([], True),
        ([rule()], False),
        ([rule(to=[{"ipBlock": {"cidr": "10.0.0.0/24"}}])], True),
        ([rule(to=[{"ipBlock": {"cidr": "10.0.0.0/24", "except": ["10.0.0.1/32"]}}])], False),
        ([rule(to=[{"podSelector": {}}])], False),
        ([rule(), rule(ports=[{"port": 56001}])], True),
        ([rule(ports=[{"port": 56000, "endPort": 56002}])], True),
        ([rule(ports=[{"port": 56001, "protocol": "UDP"}])], False),
    ],
)
def test_policies_that_pick_the_pod_add_up(policies: list[Any], *, let_out: bool) -> None:
    picked, other = ({"metadata": {"labels": {"app": app}}} for app in ("train", "web"))
    assert reported([SERVER], picked, policies, lambda _: True)[1] is let_out
    assert reported([SERVER], other, policies, lambda _: True)[1]


def test_the_last_words_of_a_container_that_failed_are_the_end_of_its_log_where_it_asks_for_that() -> None:
    running = RunningCluster("c", "v1.27.5", Clock(pace=0), Outside(serves=lambda way: way == SERVER))
    running.start()
    running.add_node("n", cpus=4, memory=2**35, version="v1.27.5")
    until(lambda: running.cluster.get("", "serviceaccounts", "default", "default"))
    container = {"name": "c", "image": "busybox", "command": ["sh", "-c", "nc -z …", SERVER, OTHER]}
    for name, policy in (("asks", "FallbackToLogsOnError"), ("asks-not", "File")):
        spec = {"restartPolicy": "Never", "containers": [{**container, "terminationMessagePolicy": policy}]}
        running.cluster.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": "default"},
                "spec": spec,
            }
        )
    ended = {name: until(lambda name=name: end(running, name)) for name in ("asks", "asks-not")}
    running.cluster.close()
    assert {name: (each["exitCode"], each.get("message")) for name, each in ended.items()} == {
        "asks": (1, f"{SERVER} reached\n{OTHER} not reached\n"),
        "asks-not": (1, None),
    }


def end(running: RunningCluster, name: str) -> Any:
    pod = running.cluster.get("", "pods", name, "default") or {"status": {}}
    return next(
        (each["state"].get("terminated") for each in pod["status"].get("containerStatuses") or ()), None
    )
