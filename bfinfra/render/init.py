"""Prints what was written of a new site, and the next commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from bfinfra.formats import shell
from bfinfra.model.initial import Initial
from bfinfra.model.refs import Key
from bfinfra.render import data as documents
from bfinfra.render.safe import safe, safe_lines
from bfinfra.render.values import count

FILL_IN = "# fill in: "
"""The comment that spec/writing.py writes."""


def text(found: Initial, files: Sequence[Path]) -> str:
    """Return what was written, what was left out, and the next commands."""
    site = files[0]
    kinds = Counter(key.kind for key in found.resources)
    counts = [f"{kind} {number}" for kind, number in sorted(kinds.items())]
    lines = [f"Wrote {' and '.join(map(safe, files))}."]
    if counts:
        lines.append(f"{count(len(found.resources), 'resource')}: {', '.join(counts)}.")
    if found.left_out:
        lines += ["", "Not described:"]
        lines += [f"  {safe(what)}: {safe(why)}" for what, why in found.left_out.items()]
    if found.differing:
        lines += ["", "Adopting these would change something, or fail:"]
        lines += [f"  {safe(what)}: {safe(why)}" for what, why in found.differing.items()]
    elif found.resources:
        lines.append("Adopting them changes no field; bfinfra checked that.")
    return "\n".join([*lines, "", "Next:", *_next(found, site)])


def _next(found: Initial, site: Path) -> list[str]:
    gaps = found.text.count(FILL_IN)
    steps = [f"  {safe(site)}: complete {count(gaps, 'place')} marked `# fill in`"] if gaps else []
    verbs = ["validate", "adopt" if found.resources else "trust", "plan"]
    return [*steps, *(_command(verb, site, *(["all"] if verb == "adopt" else [])) for verb in verbs)]


def _command(*words: object) -> str:
    """A line of the next commands."""
    return f"  {shell.line(('bfinfra', *words))}"


def data(found: Initial, files: Sequence[Path]) -> dict[str, object]:
    """The same for programs."""
    return documents.document(
        "init",
        files=[str(file) for file in files],
        resources=[str(key) for key in found.resources],
        left_out=dict(found.left_out),
        differing=dict(found.differing),
        fill_in=found.text.count(FILL_IN),
    )


def world(site: Sequence[str], files: Sequence[Path], left_out: Mapping[str, str]) -> str:
    """The written sandbox world of a site, and the next commands. `site`: words of its file and options."""
    lines = [f"Wrote {' and '.join(map(safe, files))}."]
    if left_out:
        lines += ["", "The sandbox has no stand-in for:"]
        lines += [f"  {safe(what)}: {safe(why)}" for what, why in left_out.items()]
    steps = [_command(verb, *site, "--sandbox") for verb in ("plan", "apply")]
    return "\n".join([*lines, "", "Next:", *steps])


def world_data(files: Sequence[Path], left_out: Mapping[str, str]) -> dict[str, object]:
    """The same for programs."""
    return documents.document("world", files=[str(file) for file in files], left_out=dict(left_out))


def imported(key: Key, file: Path, text: str, *, managed: bool) -> str:
    """Return what was added to a file, and the next commands. `managed`: whether an adoption marks the
    object.
    """
    steps = [f"  {safe(file)}: complete what is marked `# fill in`"] if FILL_IN in text else []
    steps += [_command("adopt", file, key)] if managed else []
    steps += [_command("plan", file)]
    return "\n".join(
        [f"Wrote {safe(key)} into {safe(file)}:", "", *safe_lines(text, len(text)), "", "Next:", *steps]
    )


def imported_data(key: Key, file: Path) -> dict[str, object]:
    """The same for programs."""
    return documents.document("import", address=str(key), file=str(file))
