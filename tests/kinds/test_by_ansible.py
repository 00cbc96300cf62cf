"""Kinds whose writes go through Ansible, each through its life in as few runs as that takes; with --peers
they go through all that every kind goes through.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from kinds.lifecycle import (
    EXAMPLES,
    KILLED,
    apply,
    by_ansible,
    difference,
    endings,
    kill_at,
    made,
    plan,
    world,
)
from kinds.unmanaged import entry, on_machine

from bfinfra.kinds import names
from bfinfra.sandbox import Running

pytestmark = pytest.mark.peers  # half a minute each: Ansible's own start, several times
SLOW = [kind for kind in names() if by_ansible(kind)]
MIDDLE = {
    "bitfusion_client": 6,
    "flexdirect_host": 5,
    "flexdirect_pool": 1,
    "kubeadm_cluster": 12,
    "loaded_image": 3,
    "nvidia_container_toolkit": 7,
    "vgpu_license": 3,
}
"""The write at which it is killed: one in the midst of what it does."""


def of_another_site(path: Path, folder: Path) -> Path:
    given = yaml.load(path.read_text(), yaml.BaseLoader)
    (folder / "theirs.yaml").write_text(yaml.safe_dump({**given, "site": "theirs"}))
    return folder / "theirs.yaml"


@pytest.mark.thorough("loaded_image-2")
@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("kind", SLOW)
def test_what_a_run_leaves_that_was_killed_as_it_began_goes_with_the_next_destroy(
    kind: str, nth: int, sandbox: Running, tmp_path: Path
) -> None:
    before = world(sandbox)
    assert kill_at(EXAMPLES[kind], sandbox, nth, "after", tmp_path / "state") == KILLED
    gone = apply(EXAMPLES[kind], sandbox, destroy=True)
    assert made(gone), endings(gone)
    assert world(sandbox) == before, difference(world(sandbox), before)


@pytest.mark.thorough("vgpu_license")
@pytest.mark.parametrize("kind", SLOW)
def test_the_life_of_a_kind_by_ansible(kind: str, sandbox: Running, tmp_path: Path) -> None:
    path, before = EXAMPLES[kind], world(sandbox)
    entry(kind).plant(sandbox, tmp_path, entry(kind).at)
    assert any("bfinfra adopt" in str(problem) for problem in plan(path, sandbox).problems), (
        "what nobody marked is a stranger's"
    )
    sandbox.reset()
    assert kill_at(path, sandbox, MIDDLE[kind], "after", tmp_path / "state") == KILLED
    finished = apply(path, sandbox)
    assert made(finished), endings(finished)
    whole, writes = world(sandbox), sandbox.tally()["written"]
    again = apply(path, sandbox)
    assert set(endings(again).values()) == {"kept"}
    assert plan(path, sandbox).pending == ()
    assert "belongs to" in str(plan(of_another_site(path, tmp_path), sandbox).problems)
    assert (world(sandbox), sandbox.tally()["written"]) == (whole, writes)
    gone = apply(path, sandbox, destroy=True)
    assert made(gone), endings(gone)
    assert world(sandbox) == before


def _hostile(kind: str, canary: Path) -> tuple[str, str]:
    """A file that a kind merges, as whoever runs the machine may have written it."""
    template = f"""{{{{ lookup("pipe", "touch {canary}") }}}} {{{{ bfinfra_sudo }}}} {{# {{% $HOME"""
    if kind == "vgpu_license":
        return "/etc/nvidia/gridd.conf", f"# {template}\u2028FeatureType=1\n\nFeatureType=0\n#\r\n"
    own = {"log-opts": {"tag": "{{.ImageName}}/{{.Name}}", "labels": template}}
    return "/etc/docker/daemon.json", f"{json.dumps(own, indent=4)}\n"


@pytest.mark.parametrize("kind", ["vgpu_license", "nvidia_container_toolkit"])
def test_what_is_written_on_a_machine_is_text_through_the_whole_life(
    kind: str, sandbox: Running, tmp_path: Path
) -> None:
    path, text = _hostile(kind, tmp_path / "canary")
    look = on_machine(sandbox, "gpu-01", path, text)
    assert made(apply(EXAMPLES[kind], sandbox))
    kept = str(look())
    if kind == "vgpu_license":
        assert kept.startswith(text.replace("FeatureType=0", "FeatureType=4"))
    else:
        assert json.loads(text).items() <= json.loads(kept).items()
        assert "nvidia" in kept
    assert made(apply(EXAMPLES[kind], sandbox, destroy=True))
    assert look() == text
    assert not (tmp_path / "canary").exists()
