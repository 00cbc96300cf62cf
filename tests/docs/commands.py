"""The commands of a page, run as a reader runs them. A page shows them in `console` blocks, behind `$ `, each
followed by what it prints. A block with `title="NAME"` is a file that the reader saves first.

The output on a page may be shortened: `…` in a line stands for any text, a line `…` alone for any lines. Times
and digests are not compared. `<!-- meanwhile: {…} -->` is what somebody else does on a server at that point.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from bfinfra.cli import main
from bfinfra.cli.parser import build
from bfinfra.sandbox import Running

FENCE = re.compile(
    r"^```(\S*)(?: title=\"([^\"]+)\")?\n(.*?)^```$|^<!-- (meanwhile): (.*?) -->$", re.DOTALL | re.MULTILINE
)
SHELL = re.compile(r"[|&;<>$`]")
INTO = re.compile(r"(bfinfra [^|&;<>$`]+) > (\S+)")
VARIES = re.compile(
    r"\b(?:[0-9A-F]{2}:){31}[0-9A-F]{2}"  # first: a digest may begin like a time
    r"|20\d\d-\d\d-\d\d(?:[ T][\d:]+(?:Z| UTC))?|\d\d:\d\d:\d\d|\b\d+(?:\.\d+)?s\b|\b\d+ requests|\b\d+ writes?\b"
    r"|\b[0-9a-f]{64}\b|\b[0-9a-f]{8}\b"
)
WAITS = re.compile(r"\d\d:\d\d:\d\d  \S+: waits: ")  # as often as the server takes its time
DEADLINE = 120  # seconds


@dataclass(frozen=True)
class Block:
    """One fenced block of a page, or what somebody else does meanwhile."""

    language: str
    title: str
    text: str


@dataclass(frozen=True)
class Command:
    """One command and the output that the page shows for it."""

    line: str
    printed: str


def blocks(page: str) -> Iterator[Block]:
    for language, title, text, meanwhile, change in FENCE.findall(page):
        yield Block(meanwhile or language, title, change or text)


def commands(block: Block) -> list[Command]:
    """The commands of a `console` block."""
    _, *parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    found = []
    for part in parts:
        line, _, printed = re.sub(r"\\\n\s*", "", part).partition("\n")
        found.append(Command(line, printed.strip("\n")))
    return found


@dataclass
class Reader:
    """Somebody who follows a page in a folder of their own. `world` describes the servers that answer; every
    command of bfinfra that may run on a sandbox runs on that one.
    """

    folder: Path
    world: Path
    sandbox: Running | None = None
    code: int = 0

    def saves(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def types(self, line: str) -> str:
        """What the command prints; `code` is how it ended."""
        if line == "echo $?":
            return str(self.code)
        if line.startswith("bfinfra ") and not SHELL.search(line):
            self.code, printed = self._here(shlex.split(line)[1:])
        elif into := INTO.fullmatch(line):
            with (self.folder / into[2]).open("w") as file:
                self.code, printed = self._here(shlex.split(into[1])[1:], file)
        else:
            self.code, printed = self._shell(line)
        return printed.strip("\n")

    def _here(self, words: list[str], into: TextIO | None = None) -> tuple[int, str]:
        out = io.StringIO()
        with redirect_stdout(into or out), redirect_stderr(out):
            code = main([*words, *self._on_world(words)])
        return code, out.getvalue()

    def _on_world(self, words: list[str]) -> list[str]:
        """`--world FILE` for a command that takes it, unless the page names a sandbox."""
        if {"--world", "--sandbox"} & set(words) or words[0] == "sandbox" or words[-1] == "--help":
            return []
        takes = any("--world" in action.option_strings for action in _verb(words)._actions)
        return ["--world", str(self.world)] if takes else []

    def _shell(self, line: str) -> tuple[int, str]:
        shim = self.folder.parent / "bin/bfinfra"
        if not shim.exists():
            shim.parent.mkdir()
            tests, folder, world = str(Path(__file__).parents[1]), str(self.folder), str(self.world)
            shim.write_text(SHIM.format(python=sys.executable, tests=tests, folder=folder, world=world))
            shim.chmod(0o755)
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env={**os.environ, "PATH": f"{shim.parent}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
        return done.returncode, done.stdout


SHIM = """#!{python}
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from docs.commands import Reader
from bfinfra.cli import main
words = sys.argv[1:]
sys.exit(main([*words, *Reader(Path({folder!r}), Path({world!r}))._on_world(words)]))
"""
"""The command `bfinfra` of a reader's shell."""


def _verb(words: list[str]):
    """The parser of the command that is typed."""
    parser = build(words)
    for word in words:
        inner = next(
            (each for each in parser._actions if hasattr(each, "choices") and each.nargs == "A..."), None
        )
        if not inner or word not in inner.choices:
            break
        parser = inner.choices[word]
    return parser


def differs(shown: str, printed: str) -> str:
    """How the output differs from what the page shows; empty where it does not."""
    if not shown:
        return ""
    pattern = "\n".join(
        r"(?:.*\n)*?.*" if line.strip() == "…" else re.escape(_plain(line)).replace("…", ".*")
        for line in shown.splitlines()
    )
    found = (_plain(line) for line in printed.splitlines() if not WAITS.match(line))
    if re.fullmatch(pattern, "\n".join(found)):
        return ""
    return f"the page shows\n{shown}\nand the command prints\n{printed}"


def _plain(line: str) -> str:
    return VARIES.sub("#", line.rstrip())
