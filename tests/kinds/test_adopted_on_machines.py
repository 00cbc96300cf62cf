"""What stands on a Linux machine, or in the folder of an image, is adopted by its mark alone: every kind by its
existing. The next plan shows what is otherwise than the file says, an apply brings it, a destroy ends it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from kinds.by_hand import leaves, moved
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan

from bfinfra.backends.images.folder import MARK
from bfinfra.kinds import names
from bfinfra.model.plan import Plan
from bfinfra.model.refs import Key
from bfinfra.sandbox import Running

NOTES, LISTS, CONF = "/var/lib/bfinfra", "/etc/bitfusionio", "/etc/nvidia/gridd.conf"


@dataclass(frozen=True)
class Hand:
    """`name`: the resource in the kind's example; `on`: a machine; `files`: what somebody sets in files there,
    or in the folder of an image; `shown`: what the plan after the adoption changes.
    """

    name: str
    on: str
    files: Mapping[str, str]
    shown: tuple[str, ...]
    stays: str = ""
    """What is in the world at the end as it was when it was adopted: bfinfra did not bring it."""


HANDS = {
    "bitfusion_client": Hand(
        "desk",
        "cpu-01",
        {"/etc/bitfusion/servers.conf": "servers: []\n"},
        ("on.cpu-01.files./etc/bitfusion/servers.conf", "on.cpu-01.package"),
    ),
    "client_image": Hand("pytorch", "", {"Dockerfile": "FROM scratch\n"}, ("files.Dockerfile",)),
    "flexdirect_host": Hand(
        "t4",
        "gpu-01",
        {"/etc/systemd/system/flexdirect-scheduler.service": "[Service]\nExecStart=/usr/bin/flexdirect x\n"},
        ("on.gpu-01.license", "on.gpu-01.package", "on.gpu-01.scheduler", "on.gpu-01.unit"),
    ),
    "flexdirect_pool": Hand(
        "T4",
        "cpu-01",
        {f"{LISTS}/T4_servers.conf": "10.9.9.9\n# ours\n", f"{LISTS}/servers.conf": "10.5.0.1:56001\n"},
        ("on.cpu-01.T4_servers.conf",),
    ),
    "kubeadm_cluster": Hand(
        "rdg",
        "gpu-01",
        {"/etc/fstab": "/dev/sda2 none swap sw 0 0\n"},
        ("on.cpu-01.package", "on.gpu-01.package", "on.gpu-01.swap"),
        stays=r"/linux/[^/]+/((files|modes)//(etc/fstab|usr/.*)|packages/kubernetes/.*)",
    ),
    "loaded_image": Hand(
        "webhook",
        "gpu-01",
        {
            "/var/lib/docker/images.json": json.dumps(
                {"docker.io/team/bitfusion-webhook:0.4-1": f"sha256:{'7' * 64}"}
            )
        },
        ("on.gpu-01.content",),
    ),
    "nvidia_container_toolkit": Hand(
        "workers",
        "gpu-01",
        {"/etc/docker/daemon.json": '{\n    "log-driver": "journald"\n}\n'},
        ("on.gpu-01.package", "on.gpu-01.runtime.default-runtime", "on.gpu-01.runtime.runtimes.nvidia.path"),
        stays=r"/linux/gpu-01/((files|modes)//(etc/docker.*|usr/.*)|packages/nvidia-container-toolkit/.*)",
    ),
    "vgpu_license": Hand(
        "workers",
        "gpu-01",
        {CONF: "ServerAddress=10.9.9.9\nEnableUI=TRUE\n"},
        ("on.gpu-01.values.FeatureType", "on.gpu-01.values.ServerAddress", "on.gpu-01.values.ServerPort"),
        stays=r"/linux/gpu-01/(files|modes)//etc/nvidia.*",
    ),
}
NEVER = {
    "container_image": "its image is in a registry, and what was made of it is a note of bfinfra's own",
    "linux_host": "it is a machine of somebody, which bfinfra only reads",
}
"""Kinds that can't be adopted, and why."""


def test_every_kind_of_machines_and_images_is_here() -> None:
    assert {*names("machine", "image")} == HANDS.keys() | NEVER.keys()


def shown(found: Plan) -> set[str]:
    assert not found.problems, found.problems
    return {change.field for item in found.items for step in item.steps for change in step.changes}


def files(sandbox: Running, machine: str) -> dict[str, str]:
    found: dict[str, str] = sandbox.world()["linux"][machine]["files"]
    return found


def records(kind: str, name: str) -> tuple[str, str]:
    return f"{NOTES}/{kind}", f"{NOTES}/{name}.{kind}"


def put(sandbox: Running, machine: str, path: str, text: str | None) -> None:
    given = {"machine": machine, "path": path} | ({} if text is None else {"text": text})
    sandbox.change(given)


def unmark(sandbox: Running, kind: str, name: str) -> None:
    """All that bfinfra noted of the kind goes, and the folder of its notes if that is empty then."""
    for machine in sandbox.world()["linux"]:
        for path in files(sandbox, machine):
            if path.startswith(records(kind, name)):
                put(sandbox, machine, path, None)
        if not any(path.startswith(f"{NOTES}/") for path in files(sandbox, machine)):
            put(sandbox, machine, NOTES, None)
    for noted in (*sandbox.files.rglob(MARK), *sandbox.files.rglob("client_images.json")):
        noted.unlink()


def bare(sandbox: Running, kind: str, name: str, folder: Path) -> Any:
    """The world and the image's folder, without the marks."""
    found, own = sandbox.world(), {NOTES, *records(kind, name)}
    for machine in found["linux"].values():
        for what in ("files", "modes"):
            machine[what] = {
                path: "\n".join(line for line in str(each).split("\n") if "bfinfra:1 " not in line)
                for path, each in machine[what].items()
                if path not in own
            }
    built = [path for path in folder.rglob("*") if path.is_file() and path.name != MARK]
    return {**found, "built": {path.name: path.read_text(errors="replace") for path in built}}


@pytest.mark.thorough("client_image")
@pytest.mark.parametrize("kind", HANDS)
def test_it_is_adopted_by_its_mark_alone(kind: str, sandbox: Running) -> None:
    path, hand, built = EXAMPLES[kind], HANDS[kind], sandbox.files / "images"
    fresh, adopt = bare(sandbox, kind, hand.name, built), frozenset({Key(kind, hand.name)})
    assert made(apply(path, sandbox))

    unmark(sandbox, kind, hand.name)
    for name, text in hand.files.items():
        if hand.on:
            put(sandbox, hand.on, name, text)
        else:
            next(built.rglob(name)).write_text(text)
    assert any("bfinfra adopt" in str(each) for each in plan(path, sandbox).problems)
    before = bare(sandbox, kind, hand.name, built)

    assert shown(plan(path, sandbox, adopt=adopt, adopt_only=True)) == {"mark"}
    done = apply(path, sandbox, adopt=adopt)
    assert made(done), endings(done)
    assert moved(before, bare(sandbox, kind, hand.name, built)) == {}
    assert shown(plan(path, sandbox)) == {*hand.shown}

    done = apply(path, sandbox)
    assert made(done), endings(done)
    assert plan(path, sandbox).pending == ()
    done = apply(path, sandbox, destroy=True)
    assert made(done), endings(done)
    left, then = moved(fresh, bare(sandbox, kind, hand.name, built)), leaves(before)
    assert {at: now for at, (_, now) in left.items() if not re.fullmatch(hand.stays, at)} == {}
    assert {at: now for at, (_, now) in left.items() if now != then.get(at)} == {}
    assert bool(left) == bool(hand.stays)


@pytest.mark.parametrize("kind", NEVER)
def test_it_can_t_be_adopted(kind: str, sandbox: Running) -> None:
    given = yaml.safe_load(EXAMPLES[kind].read_text())[kind]
    keys = frozenset(Key(kind, name) for name in given)
    (problem,) = plan(EXAMPLES[kind], sandbox, adopt=keys, adopt_only=True).problems
    assert "needs no adoption" in problem.what
