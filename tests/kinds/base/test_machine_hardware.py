"""What vSphere doesn't do to an existing VM is refused before it is stopped."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kinds.base.test_machine_placement import FIRST, HERE

from bfinfra.kinds.vcenter.base.machine.hardware import check_cpus, grows
from bfinfra.model.errors import Refusal

GIB = 1 << 30
DISK = replace(FIRST, capacity=10 * GIB)


def test_a_disk_grows_and_one_of_the_right_size_stays() -> None:
    assert grows(DISK, 20 * GIB, "w1", "disk") == {DISK.key: 20 * GIB}
    assert grows(DISK, 10 * GIB, "w1", "disk") == {}
    assert grows(replace(DISK, linked=True), 10 * GIB, "w1", "disk") == {}


@pytest.mark.parametrize(
    ("linked", "size", "field", "why"),
    [
        (
            False,
            5 * GIB,
            "disk",
            "the disk of w1 has 10GiB already; a disk can't shrink; write 10GiB, or leave it out",
        ),
        (
            True,
            5 * GIB,
            "disks.scsi0:1.size",
            "the disk scsi0:1 of w1 has 10GiB already; a disk can't shrink; write 10GiB",
        ),
        (
            True,
            20 * GIB,
            "disk",
            (
                "the disk scsi0:0 of w1 can't grow; it holds only what differs from another file: the VM has a "
                "snapshot, or is a linked clone; delete the snapshots or consolidate the disk in vCenter, then "
                "run this again"
            ),
        ),
    ],
)
def test_no_disk_shrinks_and_none_with_a_snapshot_grows(
    linked: bool, size: int, field: str, why: str
) -> None:
    with pytest.raises(Refusal) as refused:
        grows(replace(DISK, linked=linked), size, "w1", field)
    assert (refused.value.field, str(refused.value)) == (field, why)


@pytest.mark.parametrize("per_socket", [None, 1, 3])
def test_cpus_fill_whole_sockets(per_socket: int | None) -> None:
    check_cpus(HERE, 6, per_socket)


def test_cpus_that_fill_no_whole_sockets_are_refused_only_where_they_change() -> None:
    with pytest.raises(Refusal, match="6 CPUs are no multiple of the 4 cores per socket of w1") as refused:
        check_cpus(HERE, 6, 4)
    assert refused.value.field == "cpus"
    (problem,) = refused.value.problems
    assert problem.why == "vCenter refuses that"
    assert problem.next.startswith("write a multiple of 4")
    check_cpus(replace(HERE, cpus=6), 6, 4)
