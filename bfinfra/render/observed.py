"""Resources as they are on the servers: as a table, as names, as data."""

from __future__ import annotations

from collections.abc import Sequence

from bfinfra.formats.yaml import dumped
from bfinfra.model.observed import Observed
from bfinfra.model.plan import plain
from bfinfra.model.redact import clean
from bfinfra.render import data as documents
from bfinfra.render.safe import safe, width

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
    """The same as YAML."""
    return dumped(clean(data(site, found))).rstrip("\n")
