"""The vGPUs that machines ask of one host, counted on its cards, on the sandbox: also those that others use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, made, plan

from bfinfra.sandbox import Running, start, stop

WORLD = Path("specs/worlds/small.yaml")
SHARES = "memory: 128GiB\n        graphics: sharedDirect\n        pci:"  # a T4, which holds two of 8 GiB


@pytest.fixture
def farm(tmp_path: Path) -> Iterator[Running]:
    text, state = WORLD.read_text(), tmp_path / "sandbox"
    assert "memory: 128GiB\n        pci:" in text
    world = tmp_path / "world.yaml"
    world.write_text(text.replace("memory: 128GiB\n        pci:", SHARES))
    yield start(world, state, pace=0)
    stop(state)


def site(folder: Path, name: str, **machines: int) -> Path:
    """`machines`: how many vGPUs each has."""
    found = yaml.safe_load(EXAMPLES["virtual_machine"].read_text())
    (fields,) = found["virtual_machine"].values()
    fields.pop("role", None)  # which asks for more memory
    own = {**fields, "host": "esx1.small.test", "memory": "4GiB", "reserve": True}
    found["virtual_machine"] = {
        each: {**own, "vgpus": ["grid_t4-8c"] * count} for each, count in machines.items()
    }
    path = folder / f"{name}.yaml"
    path.write_text(yaml.safe_dump({**found, "site": name}))
    return path


def test_more_than_the_card_holds_are_refused_and_as_many_run(farm: Running, tmp_path: Path) -> None:
    (problem,) = plan(site(tmp_path, "ours", one=1, two=2), farm).problems
    assert "3 vGPUs are asked of esx1.small.test, whose cards hold 2 grid_t4-8c" in problem.what
    assert made(apply(site(tmp_path, "ours", one=1, two=1), farm))
    again = plan(tmp_path / "ours.yaml", farm)
    assert (again.problems, again.warnings, again.pending) == ((), (), ())


def test_a_card_that_another_site_uses_is_a_warning(farm: Running, tmp_path: Path) -> None:
    assert made(apply(site(tmp_path, "theirs", beside=1), farm))
    found = plan(site(tmp_path, "ours", one=1), farm)
    assert found.problems == ()
    (warned,) = found.warnings
    assert "where cards that no other VM uses hold 0 grid_t4-8c" in warned.problem.what
    assert "it has 1 card for vGPUs; other VMs use 1" in warned.problem.why
