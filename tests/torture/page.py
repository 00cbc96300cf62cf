"""docs/explanation/reliability.md: a section a part, made anew by the part's own run; the others stay."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from torture.counting import Count

import bfinfra

PAGE = Path(__file__).parents[2] / "docs/explanation/reliability.md"


def _commit() -> str:
    told = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--abbrev=8", "--exclude=*"],
        cwd=PAGE.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return told.stdout.strip() or "unknown"


COMMIT = _commit()
"""The commit that is tried, as the run began; with `+` where files differed from it."""
HEAD = """# What an apply survives

`script/torture` makes this page. A section is what one part of it (`tests/torture/parts/`) printed when it last ran. `.ci/run` tries
a share (`script/torture --share`) of a sixth of the parts for each change, of all with `--whole`. A row says what was tried, how often, and how often it held. What did not hold is
listed below its table.
"""


@dataclass(frozen=True)
class Ran:
    """A part that ran."""

    part: str
    says: str
    seed: int
    seconds: float
    counts: Sequence[Count]
    share: bool = False
    only: str = ""
    lasts: int = 0

    @property
    def broken(self) -> int:
        return sum(len(count.broken) for count in self.counts)


def section(ran: Ran) -> str:
    """A part as markdown."""
    title, _, text = ran.says.strip().partition("\n")
    lines = [
        f"<!-- {ran.part}: begin -->",
        f"## {title.rstrip('.')}",
        "",
        *([text.strip(), ""] if text.strip() else []),
        made(ran),
        "",
        "| tried | times | held | |",
        "|---|--:|--:|---|",
    ]
    lines += [f"| {c.what} | {c.tried} | {c.tried - len(c.broken)} | {figures(c)} |" for c in ran.counts]
    broken = [f"- **broken**: {count.what}: {plain(each)}" for count in ran.counts for each in count.broken]
    return "\n".join([*lines, *([""] if broken else []), *broken, f"<!-- {ran.part}: end -->"])


def made(ran: Ran) -> str:
    when = datetime.now(UTC).strftime("%Y-%m-%d")
    machine = (
        f"bfinfra {bfinfra.__version__}, Python {platform.python_version()}, {sys.platform} "
        f"{platform.machine()}"
    )
    words = [
        *(["--share"] if ran.share else []),
        *(["--only", repr(ran.only)] if ran.only else []),
        *(["--seconds", str(ran.lasts)] if ran.lasts else []),
    ]
    command = " ".join(["script/torture", ran.part, *words, "--seed", str(ran.seed)])
    return f"`{command}`, {when}, commit {COMMIT}, {ran.seconds:.0f} s; {machine}."


def figures(count: Count) -> str:
    return ", ".join(
        f"{name}: {value:g}" if isinstance(value, float) else f"{name}: {value}"
        for name, value in count.figures.items()
    )


def plain(text: str) -> str:
    return " ".join(text.split())[:300].replace("|", "\\|").replace("<", "&lt;")


def renewed(before: str, ran: Ran) -> str:
    """The section with these lines instead of its own; it says which command made them."""
    fresh = section(ran).splitlines()
    lines = [
        line
        for line in before.splitlines()
        if not any(line.startswith((f"| {c.what} |", f"- **broken**: {c.what}:")) for c in ran.counts)
    ]
    rows = [line for line in fresh if any(line.startswith(f"| {c.what} |") for c in ran.counts)]
    at = max(number for number, line in enumerate(lines) if line.startswith("|")) + 1
    lines[at:at] = rows
    broken = [line for line in fresh if line.startswith("- **broken**")]
    lines[-1:-1] = broken
    head = next(number for number, line in enumerate(lines) if line.startswith("`script/torture"))
    lines[head] = f"{lines[head]} Later: {made(ran)}"
    words = fresh[
        : next(number for number, line in enumerate(fresh) if line.startswith("`script/torture"))
    ]  # as the part describes itself now
    return "\n".join([*words, *lines[head:]])


def write(ran: Ran, order: Sequence[str], file: Path | None = None) -> None:
    """Put the part's section in its place; what belongs to no part any more goes. Of a run of some of its lines
    the others stay as they were.
    """
    page = file or PAGE
    before = page.read_text() if page.exists() else ""
    found = {
        name: text for text, name in re.findall(r"(?ms)^(<!-- (\w+): begin -->.*?^<!-- \2: end -->)$", before)
    }
    part = ran.only and ran.part in found
    found[ran.part] = renewed(found[ran.part], ran) if part else section(ran)
    page.write_text(HEAD + "".join(f"\n{found[part]}\n" for part in order if part in found))
