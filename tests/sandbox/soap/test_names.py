"""Names as vSphere has them: unique among siblings, at most 80 characters, `/`, `\\` and `%` escaped; and the
rights that a new name wants.
"""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import pytest
from pyVmomi import vim

import bfinfra.sandbox
from bfinfra.sandbox.rest.state import Records
from bfinfra.sandbox.soap.authorization import privilege_ids
from bfinfra.sandbox.soap.placing import kept_name
from bfinfra.sandbox.soap.vm_life import RENAMING

SOURCES = tuple(Path(bfinfra.sandbox.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("plain", "plain"),
        ("a/b", "a%2fb"),
        ("a\\b", "a%5cb"),
        ("50%", "50%25"),
        ("%zz", "%25zz"),
        ("a%2fb", "a%2fb"),
        ("ä b", "ä b"),
    ],
)
def test_a_name_is_kept_escaped_and_what_is_escaped_stays(given: str, kept: str) -> None:
    assert kept_name(given) == kept
    assert kept_name(kept) == kept


def test_every_right_that_is_demanded_is_one_that_a_role_can_have() -> None:
    texts = [path.read_text() for path in SOURCES]
    demanded = {right for text in texts for right in re.findall(r'call\.need\(\s*"([\w.]+)"', text)}
    demanded |= {right for _, right in RENAMING}
    assert len(demanded) > 30
    assert sorted(demanded - set(privilege_ids()) - {"System.Read", "System.View"}) == []


def test_records_can_be_read_while_others_come_and_go() -> None:
    records, over = Records({str(number): number for number in range(100)}), threading.Event()

    def change() -> None:
        while not over.is_set():
            for number in range(100, 200):
                records[str(number)] = number
            for number in range(100, 200):
                del records[str(number)]

    other = threading.Thread(target=change)
    other.start()
    try:
        for _ in range(2_000):
            assert sum(value for name, value in records.items() if int(name) < 100) == 4950
            assert sum(value for value in records.values() if value < 100) == 4950
            assert sum(int(name) for name in records if int(name) < 100) == 4950
    finally:
        over.set()
        other.join()


@pytest.mark.thorough
def test_siblings_have_different_names_whatever_makes_moves_or_renames_them(client: Any) -> None:
    folder = client.find("Singapore/vm")
    made = folder.CreateFolder("a/b")
    assert made.name == "a%2fb"
    for again in ("a/b", "a%2fb"):
        with pytest.raises(vim.fault.DuplicateName) as raised:
            folder.CreateFolder(again)
        assert (raised.value.name, raised.value.object) == ("a%2fb", made)
    with pytest.raises(vim.fault.InvalidName):
        folder.CreateFolder("x" * 81)
    assert folder.CreateFolder("/" * 80).name == "%2f" * 80
    other = folder.CreateFolder("other")
    with pytest.raises(vim.fault.DuplicateName):
        client.run(other.Rename("a/b"))
    client.run(other.Rename("50%"))
    assert other.name == "50%25"
    inner = made.CreateFolder("50%")
    with pytest.raises(vim.fault.DuplicateName):
        client.run(folder.MoveInto([inner]))


@pytest.mark.thorough
def test_pools_too(client: Any) -> None:
    root = client.find("Singapore/host/gpu-farm").resourcePool
    shares = vim.ResourceAllocationInfo(
        shares=vim.SharesInfo(level="normal", shares=4000),
        reservation=0,
        limit=-1,
        expandableReservation=True,
    )
    spec = vim.ResourceConfigSpec(cpuAllocation=shares, memoryAllocation=shares)
    one = root.CreateResourcePool("p/q", spec)
    assert one.name == "p%2fq"
    inner = one.CreateResourcePool("p/q", spec)
    with pytest.raises(vim.fault.DuplicateName):
        root.MoveInto([inner])
    with pytest.raises(vim.fault.DuplicateName):
        root.CreateResourcePool("p%2fq", spec)
