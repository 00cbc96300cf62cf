"""lint: show what the Bitfusion device plug-in will refuse, skip or break in pods."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli import arguments

if TYPE_CHECKING:
    import argparse

PLUGIN_VERSIONS = ("0.1", "0.2", "0.3", "0.4")


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.verb(verbs, "lint", about, run)
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="manifests of pods or of workloads; - reads standard input"
    )
    parser.add_argument(
        "--plugin-version",
        choices=PLUGIN_VERSIONS,
        default=PLUGIN_VERSIONS[-1],
        help=f"the plug-in's release (default {PLUGIN_VERSIONS[-1]})",
    )
    parser.add_argument(
        "--total-gpu-memory",
        type=arguments.positive,
        default=0,
        metavar="MB",
        help="the plug-in's total_gpu_memory, the limit of gpu-memory",
    )


def run(args: argparse.Namespace) -> int:
    """Returns 1 if a pod won't run as intended, else 0."""
    from bfinfra.cli.screen import Screen
    from bfinfra.lint import Asked, lint
    from bfinfra.render import lint as render

    asked = Asked(args.plugin_version, args.total_gpu_memory)
    found = [remark for file in args.files for remark in lint(Path(file), _text(file), asked)]
    Screen.of(args).show(
        lambda style: render.text(found, asked.version, style), lambda: render.data(found, asked.version)
    )
    return 1 if any(each.level == "error" for each in found) else 0


def _text(file: str) -> str:
    """A file's text. Bytes that are not UTF-8 become characters that the YAML reader reports."""
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return data.decode(errors="replace")
