"""govc as judge of each odd OVA: what it reads of it (`import.spec`) and what becomes of it (`import.ova` onto
vcsim). Where bfinfra refuses, or both differ, tests/odd_ovas.py says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from odd_ovas import ODD, Odd
from peers.conftest import Vcsim, own_vcsim
from peers.found import Peers

from bfinfra.backends.ova import Ova, read

PLACE = ("-pool", "/DC0/host/DC0_C0/Resources", "-ds", "LocalDS_0", "-folder", "/DC0/vm")


@pytest.fixture(scope="module")
def judge(peers: Peers) -> Iterator[Vcsim]:
    with own_vcsim(peers) as found:
        yield found


def options(judge: Vcsim, path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(judge.govc("import.spec", str(path)))
    return found


def disks(judge: Vcsim, path: Path) -> tuple[int, ...]:
    """Bytes of the disks that `govc import.ova` makes of it."""
    try:
        judge.govc("import.ova", *PLACE, "-name", "odd", str(path))
        (machine,) = json.loads(judge.govc("vm.info", "-json", "odd"))["virtualMachines"]
        devices = machine["config"]["hardware"]["device"]
        return tuple(each["capacityInKB"] << 10 for each in devices if "capacityInKB" in each)
    finally:
        judge.govc("vm.destroy", "odd") if "odd" in judge.govc("find", "/DC0/vm", "-type", "m") else None


def same_words(ours: Ova, theirs: dict[str, Any]) -> bool:
    keys = [each["Key"] for each in theirs.get("PropertyMapping") or ()]
    networks = [each["Name"] for each in theirs.get("NetworkMapping") or ()]
    return keys == [key for key, _ in ours.configurable] and networks == [each.name for each in ours.networks]


@pytest.mark.parametrize(
    "odd", [each for each in ODD if not each.refused and not each.apart], ids=lambda odd: odd.name
)
def test_govc_reads_and_makes_the_same(odd: Odd, judge: Vcsim, tmp_path: Path) -> None:
    path = odd.write(tmp_path)
    ours = read(path)
    assert same_words(ours, options(judge, path))
    # vcsim counts in KiB, rounded down
    assert disks(judge, path) == tuple(size >> 10 << 10 for size in odd.sizes)


@pytest.mark.parametrize(
    "odd", [each for each in ODD if not each.refused and each.apart], ids=lambda odd: odd.name
)
def test_where_govc_differs_there_is_a_reason_and_it_does_differ(
    odd: Odd, vcsim: Vcsim, tmp_path: Path
) -> None:
    """Each on a vcsim of its own: after a crash it imports nothing more."""
    path, judge = odd.write(tmp_path), vcsim
    try:
        same = same_words(read(path), options(judge, path)) and disks(judge, path) == odd.sizes
    except AssertionError:  # govc failed
        same = False
    assert not same, f"{odd.name}: govc says the same now; its reason is no longer needed: {odd.apart}"


def test_every_refusal_of_bfinfra_s_has_a_word_on_govc() -> None:
    assert [each.name for each in ODD if each.refused and not each.apart] == []
