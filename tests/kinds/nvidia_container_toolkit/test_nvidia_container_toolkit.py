"""NVIDIA's container toolkit, decided without machines: configurations are merged and given back, what
restarts docker under containers disrupts.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from kinds.of_several import of_several
from kinds.unmanaged import Entry, Look, on_machine

from bfinfra.kinds.machine.nvidia_container_toolkit import decide
from bfinfra.kinds.machine.nvidia_container_toolkit.decide import Remove, RemoveRestart, Restart, SetUp
from bfinfra.kinds.machine.nvidia_container_toolkit.runtime import Before, existing, merged, undone, wanted
from bfinfra.kinds.machine.nvidia_container_toolkit.spec import Spec
from bfinfra.kinds.machine.nvidia_container_toolkit.state import Installed, State, ToolkitFacts
from bfinfra.model.awaited import Absent, Awaited
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark
from bfinfra.model.ssh import HostTrust, LinuxMachine
from bfinfra.sandbox import Running

PACKAGE = "ab" * 32
MARK = Mark("site", "nvidia_container_toolkit/workers")
MACHINES = {
    name: LinuxMachine(name, f"10.0.0.{number}", "root", HostTrust(sha256="SHA256:" + "A" * 43))
    for number, name in enumerate(("one", "two"), 1)
}
THEIRS = (
    '{"log-driver": "journald", "runtimes": {"kata": {"path": "/opt/kata"}}, "default-runtime": "kata"}\n'
)
CONTAINERD = """# ours, do not touch
version = 2
root = "/data/containerd"  # on the big disk

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    sandbox_image = "registry.test/pause:3.9"
    [plugins."io.containerd.grpc.v1.cri".containerd]
      default_runtime_name = "runc"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
        runtime_type = "io.containerd.runc.v2"
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
          SystemdCgroup = true
"""


def spec(**how: Any) -> Spec:
    return Spec.model_validate({"hosts": ["one", "two"], "packages": ["toolkit.deb"], **how})


def fresh(config: str | None = None, **how: Any) -> Installed:
    return Installed(
        None,
        configs={"docker": config, "containerd": None},
        services={"docker": "active", "containerd": "active"},
        **how,
    )


def installed_as(given: Spec, **how: Any) -> Installed:
    values = wanted(given, None)
    found = {
        "mark": MARK.committed(given.applied()),
        "package": PACKAGE,
        "kept": True,
        "program": True,
        "runtime": "docker",
        "before": Before(dict.fromkeys(values), made=True),
        "configs": {"docker": merged("docker", None, values), "containerd": None},
        "services": {"docker": "active", "containerd": ""},
        "noted": {"form": "deb", "files": "/a,/b"},
        **how,
    }
    return Installed(**found)


def steps(given: Spec | None, **on: Installed) -> list[Any]:
    installed = {host: each for host, each in on.items() if each.there}
    mark = next((each.mark for each in on.values() if each.mark), None)
    state = (
        State(
            mark=mark,
            hosts=tuple(installed),
            on=installed,
            machines={host: MACHINES[host] for host in installed},
        )
        if installed
        else None
    )
    return list(
        decide.steps(given, state, PlanContext(MARK, facts=ToolkitFacts(MACHINES, on, {"workers": PACKAGE})))
    )


def test_without_its_packages_machines_are_held_against_what_they_have() -> None:
    given, away = spec(), {"workers": ("packages.0", Absent("toolkit.deb is not there yet"))}
    on = dict.fromkeys(("one", "two"), installed_as(given))
    there = State(mark=MARK.committed(given.applied()), hosts=tuple(on), on=on, machines=MACHINES)
    facts = ToolkitFacts(MACHINES, on, {"workers": ""}, away)
    assert list(decide.steps(given, there, PlanContext(MARK, facts=facts))) == []
    with pytest.raises(Awaited) as awaited:
        decide.steps(given, None, PlanContext(MARK, facts=facts))
    assert awaited.value.field == "packages.0"


def test_dockers_configuration_is_merged_and_given_back() -> None:
    values = wanted(spec(), THEIRS)
    before = Before(existing("docker", THEIRS, values))
    out = merged("docker", THEIRS, values)
    assert json.loads(out) == {
        "log-driver": "journald",
        "default-runtime": "nvidia",
        "runtimes": {"kata": {"path": "/opt/kata"}, "nvidia": {"path": "/usr/bin/nvidia-container-runtime"}},
    }
    assert merged("docker", out, values) == out
    later = json.dumps({**json.loads(out), "debug": True})
    assert json.loads(undone("docker", later, Before.decode(before.encode()))) == {
        **json.loads(THEIRS),
        "debug": True,
    }
    made = merged("docker", None, values)
    assert undone("docker", made, Before(dict.fromkeys(values), made=True)) == ""


def test_containerds_configuration_keeps_its_comments_and_runcs_options() -> None:
    given = spec(runtime="containerd")
    values = wanted(given, CONTAINERD)
    out = merged("containerd", CONTAINERD, values)
    for line in (
        "# ours, do not touch",
        'root = "/data/containerd"  # on the big disk',
        'sandbox_image = "registry.test/pause:3.9"',
    ):
        assert line in out
    cri = tomllib.loads(out)["plugins"]["io.containerd.grpc.v1.cri"]["containerd"]
    assert cri["default_runtime_name"] == "nvidia"
    assert cri["runtimes"]["nvidia"] == {
        "runtime_type": "io.containerd.runc.v2",
        "options": {"SystemdCgroup": True, "BinaryName": "/usr/bin/nvidia-container-runtime"},
    }
    assert merged("containerd", out, wanted(given, out)) == out
    back = undone("containerd", out, Before(existing("containerd", CONTAINERD, values)))
    assert tomllib.loads(back) == tomllib.loads(CONTAINERD)
    assert (
        undone(
            "containerd",
            merged("containerd", None, wanted(given, None)),
            Before(dict.fromkeys(wanted(given, None)), made=True),
        )
        == ""
    )


def test_containerd_two_calls_its_plugin_otherwise_and_older_forms_are_refused() -> None:
    assert ("plugins", "io.containerd.cri.v1.runtime", "containerd", "default_runtime_name") in wanted(
        spec(runtime="containerd"), "version = 3\n"
    )
    with pytest.raises(Refusal, match="is of version 1"):
        wanted(spec(runtime="containerd"), "version = 1\n")


@pytest.mark.parametrize("broken", ["{", "[]"])
def test_a_configuration_that_cant_be_read_is_never_overwritten(broken: str) -> None:
    with pytest.raises(Refusal, match=r"daemon\.json"):
        steps(spec(), one=fresh(broken), two=fresh())


@of_several("nvidia_container_toolkit.hosts")
def test_all_is_set_up_in_one_play_where_nothing_exists_and_up_to_date_machines_are_left() -> None:
    (step,) = steps(spec(), one=fresh(), two=fresh(THEIRS))
    assert (type(step), step.names) == (SetUp, "one, two")
    assert all(each["install"] for each in step.todo.values())
    assert steps(spec(), one=installed_as(spec()), two=installed_as(spec())) == []


def test_what_restarts_docker_under_containers_disrupts() -> None:
    (step,) = steps(spec(), one=fresh(containers=True), two=fresh())
    assert type(step) is Restart
    (step,) = steps(spec(), one=installed_as(spec()), two=installed_as(spec(), kept=False, containers=True))
    assert (type(step), step.names) == (SetUp, "two"), "the configuration agrees: docker is not restarted"
    assert [type(each) for each in steps(None, one=installed_as(spec()))] == [Remove]
    assert [type(each) for each in steps(None, one=installed_as(spec(), containers=True))] == [RemoveRestart]


def test_one_moved_setting_is_what_the_plan_names() -> None:
    config = json.dumps(
        {"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}, "default-runtime": "runc"}
    )
    (step,) = steps(
        spec(),
        one=installed_as(spec()),
        two=installed_as(spec(), configs={"docker": config, "containerd": None}),
    )
    assert [(change.field, change.now, change.wanted) for change in step.changes] == [
        ("on.two.runtime.default-runtime", "runc", "nvidia")
    ]


def test_another_runtime_gives_the_first_one_its_own_back() -> None:
    before, given = spec(), spec(runtime="containerd")
    now = {
        name: installed_as(before, services={"docker": "active", "containerd": "active"})
        for name in ("one", "two")
    }
    (step,) = steps(given, **now)
    docker, containerd = step.todo["one"]["configs"]
    assert (docker["path"], docker["text"], docker["restart"], docker["runs"]) == (
        "/etc/docker/daemon.json",
        "",
        True,
        False,
    )
    assert (containerd["path"], containerd["runs"]) == ("/etc/containerd/config.toml", True)


def test_a_program_that_a_repository_upgraded_is_left_unless_a_version_is_named() -> None:
    newest, fixed = (
        {"packages": [], "repository": {"file": "nvidia.list", **more}}
        for more in ({}, {"version": "1.14.6-1"})
    )
    assert (
        steps(spec(**newest), one=installed_as(spec(**newest), kept=False), two=installed_as(spec(**newest)))
        == []
    )
    (step,) = steps(
        spec(**fixed), one=installed_as(spec(**fixed), kept=False), two=installed_as(spec(**fixed))
    )
    assert (step.names, step.common["package"]) == ("one", "nvidia-container-toolkit=1.14.6-1")


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"packages": []}, "give either packages or repository"),
        ({"packages": ["a.deb", "b.rpm"]}, r"all \.deb or all \.rpm"),
        ({"packages": ["x.repo"]}, "goes under repository"),
        ({"packages": [], "repository": {"file": "a.deb"}}, "go under packages"),
        ({"hosts": ["one", "one"]}, "twice"),
    ],
)
def test_what_a_site_may_not_say(how: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        spec(**how)


def test_a_machine_without_the_runtime_and_one_of_others_are_refused() -> None:
    with pytest.raises(Refusal, match=r"there is no docker\.service on two"):
        steps(spec(), one=fresh(), two=Installed(None, services={"docker": ""}))
    with pytest.raises(Refusal, match="the toolkit on two does not belong to"):
        steps(
            spec(),
            one=installed_as(spec()),
            two=installed_as(spec(), mark=Mark("other", "nvidia_container_toolkit/x")),
        )


def unmanaged(sandbox: Running, folder: Path, name: str) -> Look:
    return on_machine(sandbox, "gpu-01", f"/usr/bin/{name}", "theirs\n")


UNMANAGED = Entry(
    at="nvidia-container-runtime", plant=unmanaged, inside="what else is on a machine is no part of it"
)
