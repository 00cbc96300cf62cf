"""What the linter says, and what it is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bfinfra.model.device_plugin import NEWEST, Version
from bfinfra.model.errors import Place, Problem


@dataclass(frozen=True, slots=True)
class Asked:
    """The plug-in's release, and its TOTAL_GPU_MEMORY in MB, 0 where it isn't known."""

    version: Version = NEWEST
    total_gpu_memory: int = 0


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
