"""Container runtimes of the sandbox's machines: strict as the real ones where images are loaded, listed and
removed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from bfinfra.sandbox.factories.image import make_image
from bfinfra.sandbox.linux import runtimes
from bfinfra.sandbox.linux.machine import Machine, Node, Service
from bfinfra.sandbox.linux.node import NodeMachine

FULL = "docker.io/team/webhook:1"
CTR = ["--namespace", "k8s.io"]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """One with docker and containerd, and an archive."""
    made = Machine.fresh(
        "one", ("ubuntu", "20.04"), (), ("root", "ubuntu"), ("docker.service", "containerd.service")
    )
    make_image(tmp_path / "a.tar", image="team/webhook:1")
    made.files["/a.tar"] = Node((tmp_path / "a.tar").read_bytes())
    return made


def run(
    machine: Machine, program: str, *words: str, user: str = "root", used: tuple[str, ...] = ()
) -> tuple[str, int]:
    return runtimes.run(program, machine, list(words), user, used)


def test_an_image_is_loaded_listed_and_removed_and_leaves_nothing(machine: Machine) -> None:
    before = machine.save()
    assert run(machine, "docker", "load", "--input", "/a.tar") == ("Loaded image: team/webhook:1\n", 0)
    (id_,) = run(machine, "docker", "image", "ls", "--no-trunc", "--quiet", "team/webhook:1")[0].split()
    assert run(machine, "docker", "image", "ls", "--no-trunc", "--quiet", FULL) == ("", 0), (
        "docker compares with names as it shows them"
    )
    assert run(machine, "docker", "image", "ls", "--no-trunc", "--format", runtimes.LISTED) == (
        f"team/webhook:1 {id_}\n",
        0,
    )
    assert run(machine, "docker", "image", "rm", FULL)[1] == 0
    assert machine.save() == before


def test_docker_and_containerd_have_images_and_ids_of_their_own(machine: Machine) -> None:
    run(machine, "docker", "load", "--input", "/a.tar")
    assert FULL not in run(machine, "ctr", *CTR, "images", "ls")[0]
    run(machine, "ctr", *CTR, "images", "import", "/a.tar")
    there = run(machine, "ctr", *CTR, "images", "ls", f"name=={FULL}")[0].splitlines()[1].split()
    assert (
        there[0] == FULL
        and there[2]
        not in run(machine, "docker", "image", "ls", "--no-trunc", "--quiet", "team/webhook:1")[0]
    )


def test_a_daemon_that_is_down_a_user_who_may_not_and_a_program_that_is_not_there_fail(
    machine: Machine,
) -> None:
    assert run(machine, "docker", "load", "--input", "/a.tar", user="ubuntu")[1] == 1
    machine.services["docker.service"] = Service(enabled=True)
    text, code = run(machine, "docker", "load", "--input", "/a.tar")
    assert (code, "Is the docker daemon running?" in text) == (1, True)
    assert run(machine, "podman", "image", "ls") == ("podman: command not found\n", 127)


def test_a_broken_archive_is_not_loaded_and_an_image_in_use_is_not_removed(machine: Machine) -> None:
    whole = machine.read("/a.tar") or b""
    for broken in (whole[:2000], whole.replace(b"a stand-in", b"another 10")):
        machine.files["/b.tar"] = Node(broken)
        assert run(machine, "docker", "load", "--input", "/b.tar")[1] == 1
    run(machine, "docker", "load", "--input", "/a.tar")
    assert "container 4c01db0b339c is using" in run(machine, "docker", "image", "rm", FULL, used=(FULL,))[0]
    run(machine, "ctr", *CTR, "images", "import", "/a.tar")
    assert run(machine, "ctr", *CTR, "containers", "ls", "--quiet", f"image=={FULL}", used=(FULL,))[0]
    assert run(machine, "ctr", *CTR, "images", "rm", FULL, used=(FULL,))[1] == 0, "containerd asks nobody"


def test_a_node_has_what_a_runtime_that_runs_has(machine: Machine) -> None:
    run(machine, "docker", "load", "--input", "/a.tar")
    node = NodeMachine(machine, dict)
    assert node.has_image("team/webhook:1") and not node.has_image("team/webhook:2")
    machine.services["docker.service"] = Service(enabled=True)
    assert not node.has_image("team/webhook:1")
