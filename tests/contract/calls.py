"""What a contract test says of itself: which call of which backend it is about, and who lacks what it asks
for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from bfinfra.backends.kubernetes import ClusterClient
from bfinfra.model.errors import BfinfraError, Busy, Conflict

T = TypeVar("T", bound=Callable[..., Any])
WORDS = re.compile(r"\b(?:[A-Z][a-z]+){2,}\b|\b[A-Z]+_[A-Z_]+\b|\((\d{3})\)")
NO_FAULT = {
    "VirtualMachine",
    "ResourcePool",
    "HostSystem",
    "UserDirectory",
    "ConfigMap",
    "PropertyCollector",
    "ServiceInstance",
    "SessionManager",
    "OvfManager",
    "CurrentTime",
    "SetField",
    "ManageCustomFields",
}
"""What else stands in a message in this spelling: types, methods, privileges."""


def call(*names: str, case: str) -> Callable[[T], T]:
    """This test is about these calls (`machines.power_on`), in this case."""
    return pytest.mark.call(names, case=case)


def lacks(text: str, *, run: bool = True) -> Callable[[T], T]:
    """`vcsim: leases never time out`: that side can't do what the test asks; live, the test must fail there
    (unless not `run`).
    """
    who, _, what = text.partition(": ")
    return pytest.mark.lacks(who, what, run=run)


@dataclass
class Account:
    """What a side did in one test, for the table."""

    lines: list[str] = field(default_factory=list)

    @contextmanager
    def refused(self, *errors: type[BfinfraError]) -> Iterator[pytest.ExceptionInfo[BfinfraError]]:
        """The call fails with one of these errors, and with exactly that class; the account keeps class and
        fault.
        """
        with pytest.raises(errors) as failed:
            yield failed
        found = failed.value
        assert type(found) in errors, f"{type(found).__name__}: {found}"
        self.lines.append(" ".join((type(found).__name__, *_fault(str(found)))))

    def note(self, text: str) -> None:
        """Something that a side does in a way of its own, which the test allows."""
        self.lines.append(text)


def applied(cluster: ClusterClient, wanted: dict[str, Any]) -> bool:
    """Applied; False where the object's own controller wrote in between: to be tried again."""
    try:
        cluster.apply(wanted, force=True)
    except Conflict:
        return False
    return True


def created(cluster: ClusterClient, wanted: dict[str, Any]) -> dict[str, Any]:
    """Made; empty where the namespace is so young that its account isn't there yet: to be tried again."""
    try:
        return cluster.create(wanted)
    except Busy:
        return {}


def _fault(text: str) -> tuple[str, ...]:
    named = [m[1] or m[0] for m in WORDS.finditer(text) if m[0] not in NO_FAULT]
    return (f"({named[-1]})",) if named else ()
