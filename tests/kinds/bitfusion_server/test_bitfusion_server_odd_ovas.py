"""A server of each odd OVA on the sandbox: deployed as the OVA says, or refused before its host is touched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan
from odd_ovas import ODD, Odd

from bfinfra.model.errors import BfinfraError
from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough
DEPLOYED = (
    "percent-encoded href",
    "dot-slash members",
    "empty third disk",
    "second disk before the first",
    "sound card that may lack",
    "families vmx-13 vmx-11",
)
"""Those of which the whole way to a machine is another one; each takes seconds."""


def site_of(odd: Odd, folder: Path) -> Path:
    odd.write(folder)
    path = folder / "site.yaml"
    path.write_text(EXAMPLES["bitfusion_server"].read_text().replace("server.ova", "odd.ova"))
    return path


def values(within: Any, name: str) -> Iterator[Any]:
    """What a property of this name has, wherever it is."""
    for key, value in within.items() if isinstance(within, dict) else enumerate(within):
        if key == name:
            yield value
        if isinstance(value, dict | list):
            yield from values(value, name)


@pytest.mark.parametrize("odd", [each for each in ODD if each.refused], ids=lambda odd: odd.name)
def test_what_vsphere_refuses_is_refused_at_plan_and_nothing_is_written(
    odd: Odd, sandbox: Running, tmp_path: Path
) -> None:
    site, before = site_of(odd, tmp_path), sandbox.world()
    (problem,) = plan(site, sandbox).problems
    assert odd.refused in problem.why
    assert str(problem.where).startswith(f"{site}:")
    assert problem.next
    with pytest.raises(BfinfraError):
        apply(site, sandbox)
    assert sandbox.world() == before


@pytest.mark.parametrize("name", DEPLOYED)
def test_what_vsphere_takes_becomes_the_machine_that_it_describes(
    name: str, sandbox: Running, tmp_path: Path
) -> None:
    odd = next(each for each in ODD if each.name == name)
    outcome = apply(site_of(odd, tmp_path), sandbox)
    assert made(outcome), endings(outcome)
    (machine,) = (each for at, each in sandbox.world()["inventory"].items() if at.endswith("/bf-01"))
    assert tuple(values(machine, "capacityInBytes")) == odd.sizes
