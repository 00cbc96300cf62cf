"""The linter's remark on a place in a file."""

from __future__ import annotations

from typing import Literal

from bfinfra.model.errors import Place, Problem
from bfinfra.model.records import dataclass


@dataclass(frozen=True, slots=True)
class Remark:
    """An error: the pod won't run as intended. A warning: it may not. `stops`: it is refused, or finds no
    node.
    """

    level: Literal["error", "warning"]
    problem: Problem
    stops: bool = False


def error(what: str, where: Place | str, why: str = "", next: str = "") -> Remark:
    """The pod won't run as intended."""
    return Remark("error", Problem(what, where, why, next))


def refused(what: str, where: Place | str, why: str = "", next: str = "", *, stops: bool = True) -> Remark:
    """The pod is refused, or finds no node."""
    return Remark("error", Problem(what, where, why, next), stops)


def warning(what: str, where: Place | str, why: str = "", next: str = "") -> Remark:
    """The pod may not run as intended."""
    return Remark("warning", Problem(what, where, why, next))
