"""What the linter says of a place in a file."""

from __future__ import annotations

from typing import Literal

from bfinfra.model.errors import Place, Problem
from bfinfra.model.records import dataclass


@dataclass(frozen=True, slots=True)
class Remark:
    """An error: the pod won't run as it is meant to. A warning: it may not."""

    level: Literal["error", "warning"]
    problem: Problem


def error(what: str, where: Place | str, why: str = "", next: str = "") -> Remark:
    """It won't run so."""
    return Remark("error", Problem(what, where, why, next))


def warning(what: str, where: Place | str, why: str = "", next: str = "") -> Remark:
    """It may not run so."""
    return Remark("warning", Problem(what, where, why, next))
