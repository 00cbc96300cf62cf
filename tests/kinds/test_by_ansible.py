"""Kinds whose writes go through Ansible, each through its life in as few runs as that takes; with --peers
they go through all that every kind goes through.
"""

from __future__ import annotations

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
from kinds.unmanaged import entry

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
