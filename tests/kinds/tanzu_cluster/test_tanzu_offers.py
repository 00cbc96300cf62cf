"""What a supervisor namespace offers, read from each form in which supervisors say it."""

from __future__ import annotations

from typing import Any

import pytest

from bfinfra.kinds.supervisor.base import offers
from bfinfra.model.errors import Missing

CLASS = {"metadata": {"name": "best-effort-small", "namespace": "team-a"}}
ELSEWHERE = {"metadata": {"name": "best-effort-small"}}
BINDING = {"metadata": {"name": "b", "namespace": "team-a"}, "classRef": {"name": "best-effort-small"}}


class Served:
    """A cluster that has these objects by kind; of what isn't named there is no definition."""

    def __init__(self, **kinds: list[Any]) -> None:
        self._kinds = kinds

    def list(self, api_version: str, kind: str, namespace: str = "", labels: str = "") -> list[Any]:
        if kind not in self._kinds:
            raise Missing(f"there is no {kind}")
        return self._kinds[kind]


@pytest.mark.parametrize(
    ("served", "offered"),
    [
        (
            Served(VirtualMachineClassBinding=[BINDING], VirtualMachineClass=[ELSEWHERE]),
            {"best-effort-small"},
        ),
        (Served(VirtualMachineClassBinding=[], VirtualMachineClass=[CLASS]), {"best-effort-small"}),
        (Served(VirtualMachineClass=[CLASS]), {"best-effort-small"}),
        (Served(VirtualMachineClassBinding=[], VirtualMachineClass=[ELSEWHERE]), set()),
        (Served(), None),
    ],
    ids=["bindings", "bindings that nothing fills", "classes only", "nothing bound", "nothing listed"],
)
def test_vm_classes_are_found_where_the_supervisor_has_them(served: Served, offered: set[str] | None) -> None:
    assert offers.read(served, "team-a").vm_classes == offered
