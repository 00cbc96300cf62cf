"""Runs many small commands at once: builds a script that prints each output and exit code, and parses it.
Commands must only read.

What a command prints can't pass for another command's answer: each answer stands between lines with a word
that the machine draws anew for each script.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from bfinfra.model import subprocesses
from bfinfra.model.records import dataclass

DRAWN = re.compile(r"\x1e([0-9a-f-]{36})\n")


@dataclass(frozen=True, slots=True)
class Answer:
    """A command's output, both streams, and its exit code."""

    text: str
    code: int

    @property
    def ok(self) -> bool:
        """True if its exit code is 0."""
        return self.code == 0


def script(commands: Mapping[str, Sequence[str]]) -> bytes:
    """A POSIX shell script that runs each command; its output has three lines for each. Raises OSError for a
    word that no program can be given.
    """
    lines = [b"IFS= read -r drawn < /proc/sys/kernel/random/uuid", b"""printf '\\036%s\\n' "$drawn\""""]
    for number, argv in enumerate(commands.values()):
        subprocesses.encoded(argv)
        lines += [
            f"""printf '\\036%s %s\\n' "$drawn" {number}""".encode(),
            shlex.join(argv).encode(errors="surrogateescape") + b" 2>&1 < /dev/null",
            b"""printf '\\035%s %s\\n' "$drawn" $?""",
        ]
    return b"\n".join([*lines, b""])


def answers(commands: Mapping[str, Sequence[str]], output: bytes) -> dict[str, Answer]:
    """Command's name → Answer. Raises ValueError if one is missing."""
    text = output.decode(errors="replace")
    drawn = DRAWN.search(text)
    piece = re.compile(f"\x1e{drawn[1]} (\\d+)\n(.*?)\x1d{drawn[1]} (\\d+)\n", re.DOTALL) if drawn else None
    found = {
        int(number): Answer(printed, int(code))
        for number, printed, code in (piece.findall(text) if piece else ())
    }
    if missing := [name for number, name in enumerate(commands) if number not in found]:
        raise ValueError(f"no answer to {', '.join(missing)}")
    return {name: found[number] for number, name in enumerate(commands)}
