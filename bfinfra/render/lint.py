"""The linter's remarks, for people and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bfinfra.render import problems
from bfinfra.render.data import document, problem
from bfinfra.render.style import PLAIN, Style
from bfinfra.render.values import count

if TYPE_CHECKING:
    from bfinfra.model.remark import Remark


def text(found: Sequence[Remark], version: str, style: Style = PLAIN) -> str:
    """A line for each remark, in a compiler's form; then the summary."""
    bad = sum(each.level == "error" for each in found)
    lines = [problems.problem(each.problem, style, each.level) for each in found]
    more = f", {count(len(found) - bad, 'warning')}" if len(found) > bad else ""
    return "\n\n".join([*lines, f"{count(bad, 'error')}{more}, for release {version} of the device plug-in."])


def data(found: Sequence[Remark], version: str) -> dict[str, Any]:
    """The linter's remarks as JSON, each with its place."""
    good = not any(each.level == "error" for each in found)
    return document(
        "lint",
        plugin_version=version,
        good=good,
        remarks=[{"level": each.level, **(problem(each.problem) or {})} for each in found],
    )
