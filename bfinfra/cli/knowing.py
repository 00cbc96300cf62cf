"""kinds, schema, ova inspect, lint, completion: what bfinfra knows without a site."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli.screen import Screen
from bfinfra.model.errors import BfinfraError, Problem

if TYPE_CHECKING:
    import argparse


def kinds(args: argparse.Namespace) -> int:
    """All kinds, or the fields of one."""
    from bfinfra import kinds as registry
    from bfinfra.render import kinds as render

    if args.kind and args.kind not in registry.names():
        near = difflib.get_close_matches(args.kind, registry.names(), 1)
        raise BfinfraError(
            Problem(
                f"there is no kind {args.kind}",
                next=f"did you mean {near[0]}?" if near else "bfinfra kinds lists them",
            )
        )
    found = {name: registry.kind(name) for name in ([args.kind] if args.kind else registry.names())}
    Screen.of(args).show(
        lambda style: (
            render.one(args.kind, found[args.kind], style) if args.kind else render.table(found, style)
        ),
        lambda: render.data(found),
    )
    return 0


def schema(args: argparse.Namespace) -> int:
    """The site language as JSON Schema."""
    from bfinfra.render import data
    from bfinfra.spec.schema import schema as made

    if not args.out:
        print(data.text(made()))
        return 0
    Path(args.out).write_text(data.text(made()) + "\n")
    Screen.of(args).say(
        f"wrote {args.out}; a site uses it with the first line: # yaml-language-server: $schema={args.out}"
    )
    return 0


def ova(args: argparse.Namespace) -> int:
    """An OVA's product, properties, networks and disks."""
    from bfinfra.backends.ova import RemoteSource, inspect, read, read_from, verify
    from bfinfra.backends.transport import Transport
    from bfinfra.model.trust import Trust
    from bfinfra.render import data
    from bfinfra.render import ova as render

    seam = Transport(read_only=True)
    try:
        far = args.file.startswith(("https://", "http://"))
        archive = read_from(RemoteSource.of(args.file, Trust(), seam)) if far else read(Path(args.file))
        if args.verify:
            verify(archive, lambda _: None)
    finally:
        seam.close()
    found = inspect(archive, verified=args.verify)
    Screen.of(args).show(lambda style: render.text(found, style), lambda: data.document("ova", **found))
    return 0


def lint(args: argparse.Namespace) -> int:
    """1 where a pod won't run as it is meant to."""
    from bfinfra.lint import Asked
    from bfinfra.lint import lint as look
    from bfinfra.render import lint as render

    asked = Asked(args.plugin_version, args.total_gpu_memory)
    found = [remark for file in args.files for remark in look(Path(file), _text(file), asked)]
    Screen.of(args).show(
        lambda style: render.text(found, asked.version, style), lambda: render.data(found, asked.version)
    )
    return 1 if any(each.level == "error" for each in found) else 0


def _text(file: str) -> str:
    """A file's text; what is no UTF-8 in it can't be read as YAML, and is said there."""
    data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    return data.decode(errors="replace")


def completion(args: argparse.Namespace) -> int:
    """A completion script."""
    from bfinfra.cli.completion import script
    from bfinfra.cli.parser import build

    print(script(build(), args.shell))
    return 0
