"""Shows running sandboxes as lines for a shell."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli.screen import Screen
from bfinfra.formats import shell
from bfinfra.render.data import document

if TYPE_CHECKING:
    import argparse

    from bfinfra.sandbox import Running


def show(args: argparse.Namespace, found: dict[Path, Running]) -> None:
    """Lines for a shell, without the passwords, which are in a file that the last line reads."""
    screen = Screen.of(args)
    if not found and screen.output not in ("json", "jsonl"):
        screen.say("no sandbox is running")
        return
    screen.show(
        lambda _: "\n".join(line for folder, each in found.items() for line in _text(folder, each)),
        lambda: document(
            "sandboxes",
            sandboxes=[
                {
                    "name": folder.name,
                    "state": str(folder),
                    "pid": each.pid,
                    "ca_file": str(each.ca_file),
                    "control": each.control,
                    "addresses": dict(each.addresses),
                    "clients": dict(each.clients),
                    "env_file": str(each.env_file),
                }
                for folder, each in found.items()
            ],
        ),
    )
    if screen.output == "text" and sys.stdout.isatty():
        status = shell.line(("bfinfra", "sandbox", "status", next(iter(found)).name))
        screen.say(f'To use govc, kubectl and others, run in a shell: eval "$({status})"')


def _text(folder: Path, found: Running) -> Iterator[str]:
    yield shell.comment(f"{folder.name}: process {found.pid}, control http://{found.control}")
    longest = max(map(len, found.addresses), default=0)
    for address, here in found.addresses.items():
        yield shell.comment(f"  {address:<{longest}}  {here}")
    for name, value in found.clients.items():
        yield f"export {shell.assignment(name, value)}"
    yield f". {shell.word(found.env_file)}  # the same with the passwords, which only you may read"
