"""Runs many small commands at once: builds a script that prints each output and exit code, and parses it.
Commands must only read.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from bfinfra.model.records import dataclass

BEGIN, END = "\x1e", "\x1d"
PIECE = re.compile(f"{BEGIN}(\\d+)\n(.*?){END}(\\d+)\n", re.DOTALL)
LARGEST = 4 << 20  # bytes of all answers of a machine


@dataclass(frozen=True, slots=True)
class Answer:
    """A command's output, both streams, and its exit code."""

    text: str
    code: int

    @property
    def ok(self) -> bool:
        """True if its exit code is 0."""
        return self.code == 0


def script(commands: Mapping[str, Sequence[str]]) -> str:
    """A POSIX shell script that runs each command; its output has three lines for each."""
    lines = []
    for number, argv in enumerate(commands.values()):
        lines += [
            f"printf '\\036%s\\n' {number}",
            f"{shlex.join(argv)} 2>&1 < /dev/null",
            "printf '\\035%s\\n' $?",
        ]
    return "\n".join(lines)


def answers(commands: Mapping[str, Sequence[str]], output: bytes) -> dict[str, Answer]:
    """Command's name → Answer. Raises ValueError if one is missing."""
    if len(output) > LARGEST:
        raise ValueError(f"it answers more than {LARGEST >> 20} MiB")
    found = {
        int(number): Answer(text, int(code))
        for number, text, code in PIECE.findall(output.decode(errors="replace"))
    }
    if missing := [name for number, name in enumerate(commands) if number not in found]:
        raise ValueError(f"no answer to {', '.join(missing)}")
    return {name: found[number] for number, name in enumerate(commands)}
