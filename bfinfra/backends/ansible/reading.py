"""Many small commands in one go: a script that prints what each says and how it ended, and the way back. No
writing command belongs here.
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
    """What a command printed, both streams, and its exit code."""

    text: str
    code: int

    @property
    def ok(self) -> bool:
        """It ended with 0."""
        return self.code == 0


def script(commands: Mapping[str, Sequence[str]]) -> str:
    """A POSIX shell script that runs each; three lines a command."""
    lines = []
    for number, argv in enumerate(commands.values()):
        lines += [
            f"printf '\\036%s\\n' {number}",
            f"{shlex.join(argv)} 2>&1 < /dev/null",
            "printf '\\035%s\\n' $?",
        ]
    return "\n".join(lines)


def answers(commands: Mapping[str, Sequence[str]], output: bytes) -> dict[str, Answer]:
    """By the commands' names. ValueError where one is missing."""
    if len(output) > LARGEST:
        raise ValueError(f"it says more than {LARGEST >> 20} MiB")
    found = {
        int(number): Answer(text, int(code))
        for number, text, code in PIECE.findall(output.decode(errors="replace"))
    }
    if missing := [name for number, name in enumerate(commands) if number not in found]:
        raise ValueError(f"no answer to {', '.join(missing)}")
    return {name: found[number] for number, name in enumerate(commands)}
