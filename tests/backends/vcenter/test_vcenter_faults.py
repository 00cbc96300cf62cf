"""What is said of a fault: its own message and properties, in plain words."""

from __future__ import annotations

import pytest
from pyVmomi import vim, vmodl

from bfinfra.backends.vcenter import faults


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (vim.fault.InvalidState(msg="*types.InvalidState"), "invalid state (InvalidState)"),
        (
            vim.fault.InvalidState(msg="The operation is not allowed in the current state."),
            "The operation is not allowed in the current state. (InvalidState)",
        ),
        (
            vim.fault.InvalidPowerState(
                msg="*types.InvalidPowerState", requestedState="poweredOn", existingState="poweredOn"
            ),
            "requestedState: poweredOn; existingState: poweredOn (InvalidPowerState)",
        ),
        (
            vim.fault.InsufficientMemoryResourcesFault(msg="short of memory", unreserved=1, requested=2),
            "short of memory; unreserved: 1; requested: 2 (InsufficientMemoryResourcesFault)",
        ),
        (
            vim.fault.GenericVmConfigFault(
                msg="refused",
                reason="no room",
                faultCause=vmodl.fault.NotSupported(msg="*types.NotSupported"),
            ),
            "refused; reason: no room (GenericVmConfigFault)",
        ),
        (
            vmodl.fault.ManagedObjectNotFound(msg="gone", obj=vim.VirtualMachine("vm-7")),
            "gone; obj: vm-7 (ManagedObjectNotFound)",
        ),
        (vim.fault.InvalidName(msg="odd", name="a/b", entity=vim.Folder("group-1")), "odd; name: a/b"),
    ],
)
def test_a_fault_is_told_by_its_message_and_its_properties_and_never_by_a_go_type(fault, why):
    (problem,) = faults.of_fault(fault, "powering on failed", "vc.test").problems
    assert why in problem.why
    assert "*types" not in str(problem)
