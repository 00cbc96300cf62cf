"""Resources as they are on the servers: as a table, as names, as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bfinfra.formats import yaml
from bfinfra.model.observed import Observed
from bfinfra.model.plan import plain
from bfinfra.model.redact import clean
from bfinfra.render import data as documents
from bfinfra.render.safe import quoted, safe, width

HEADS = ("RESOURCE", "STATUS", "WHY")


def table(found: Sequence[Observed]) -> str:
    """A line for each."""
    if not found:
        return "No resources."
    rows = [HEADS, *((safe(each.key), each.status, safe(each.why or "")) for each in found)]
    widths = [max(width(row[column]) for row in rows) for column in (0, 1)]
    return "\n".join(
        "  ".join(
            (*(cell + " " * (wide - width(cell)) for cell, wide in zip(row, widths, strict=False)), row[2])
        ).rstrip()
        for row in rows
    )


def names(found: Sequence[Observed]) -> str:
    """An address a line."""
    return "\n".join(safe(each.key) for each in found)


def data(site: str, found: Sequence[Observed]) -> dict[str, object]:
    """The same for programs, with all that servers report."""
    return documents.document(
        "resources",
        site=site,
        resources=[
            {
                "address": str(each.key),
                "kind": each.key.kind,
                "name": each.key.name,
                "status": each.status,
                "why": each.why or "",
                "state": None if each.state is None else plain(each.state),
            }
            for each in found
        ],
    )


def as_yaml(site: str, found: Sequence[Observed]) -> str:
    """The same as YAML, which `printed` changes only where YAML reads its escapes."""
    return yaml.dumped(clean(data(site, found)), Dumper=_Dumper).rstrip("\n")


class _Dumper(yaml.Dumper):
    """Writes a text in double quotes where `printed` would change it."""

    def choose_scalar_style(self) -> Any:
        """How a scalar is quoted."""
        return '"' if quoted(self.event.value) else super().choose_scalar_style()
