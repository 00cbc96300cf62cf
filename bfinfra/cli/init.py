"""init: write a new site, with commented examples or describing the objects of a vCenter."""

from __future__ import annotations

import getpass
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context
from bfinfra.formats.shell import word

if TYPE_CHECKING:
    import argparse

    from bfinfra.model.errors import BfinfraError
    from bfinfra.model.initial import Initial

VARIABLE = "VCENTER_PASSWORD"


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.verb(verbs, "init", about, run)
    parser.add_argument(
        "folder",
        nargs="?",
        default=".",
        metavar="FOLDER",
        help="the folder to write to; default: the current one",
    )
    parser.add_argument(
        "--from", dest="source", metavar="VCENTER", help="address of a vCenter to describe; it is only read"
    )
    parser.add_argument(
        "--world",
        metavar="SITE",
        help="instead of a site: the sandbox world of this site, in worlds/ beside it",
    )
    parser.add_argument("--site", metavar="NAME", help="the site's name; default: the folder's")
    parser.add_argument(
        "--kind", action="append", default=[], metavar="KIND", help="only resources of this kind; repeat"
    )
    parser.add_argument(
        "--user",
        metavar="NAME",
        help="vCenter's account; default: that of GOVC_USERNAME and similar variables",
    )
    parser.add_argument(
        "--password",
        metavar="REFERENCE",
        help="reference to its password: env:NAME, file:PATH or keyring:SERVICE/USER; default: that of "
        "VCENTER_PASSWORD, GOVC_PASSWORD and similar variables, else you are asked",
    )
    parser.add_argument(
        "--trust",
        metavar="FILE|SHA256",
        help="PEM file of vCenter's certificate authority, or the SHA-256 of its certificate",
    )
    parser.add_argument(
        "--datacenter",
        metavar="NAME",
        help="describe what this datacenter has, by name or path; default: all of them",
    )
    parser.add_argument(
        "--sandbox", metavar="WORLD", help="read the sandbox that this file describes instead"
    )
    arguments.variant(parser)


def run(args: argparse.Namespace) -> int:
    """Returns 0. Writes nothing if one of the files exists."""
    from bfinfra.app import init
    from bfinfra.cli.screen import Screen
    from bfinfra.model.errors import BfinfraError, Problem
    from bfinfra.render import data as documents
    from bfinfra.render import init as render
    from bfinfra.spec.schema import schema
    from bfinfra.spec.site_text import SCHEMA

    if args.world:
        return _world(args)
    if options := context.options(args):
        raise BfinfraError(
            Problem(
                f"{options[0]} goes with --world only", next="write the site first; it has no variants yet"
            )
        )
    folder = Path(args.folder)
    init.free(folder, (init.SITE, SCHEMA))
    name = args.site or _name(folder)
    found = init.commented(name) if args.source is None else _described(args, name)
    files = init.put(folder, {init.SITE: found.text, SCHEMA: documents.text(schema()) + "\n"})
    Screen.of(args).show(lambda _: render.text(found, files), lambda: render.data(found, files))
    return 0


def _world(args: argparse.Namespace) -> int:
    """Write the sandbox world of a site; returns 0."""
    from bfinfra import worlds
    from bfinfra.app import init
    from bfinfra.app.load import load_variant
    from bfinfra.app.sandbox_world import SCHEMA, world_of
    from bfinfra.cli.screen import Screen
    from bfinfra.model.errors import BfinfraError, Problem
    from bfinfra.render import data as documents
    from bfinfra.render import init as render
    from bfinfra.sandbox.world_schema import schema

    if args.source or args.sandbox:
        raise BfinfraError(Problem("--world and --from don't go together", next="write the site first"))
    site = Path(args.world)
    options = context.options(args)
    file = worlds.beside_of(site)
    init.free(file.parent, (file.name,))
    found = world_of(load_variant([site], context.variant(args)))
    files = {file.name: found.text}
    if not (file.parent / SCHEMA).exists():
        files[SCHEMA] = documents.text(schema()) + "\n"
    written = init.put(file.parent, files)
    Screen.of(args).show(
        lambda _: render.world([str(site), *options], written, found.left_out),
        lambda: render.world_data(written, found.left_out),
    )
    return 0


def _described(args: argparse.Namespace, name: str) -> Initial:
    from bfinfra.app import init
    from bfinfra.app.context import RunContext
    from bfinfra.model.errors import Denied, Untrusted

    running = None
    if args.sandbox:
        from bfinfra.worlds import embedded

        running = embedded(world=args.sandbox)
    env = {**os.environ, **(running.env if running else {})}
    settings, typed = _settings(args, env)
    site = init.empty(name, settings, Path(args.folder), password=typed, sandbox=running)
    run_context = RunContext(sandbox=running, stop=args.stop)
    try:
        return init.described(site, settings, only=frozenset(args.kind), context=run_context)
    except Untrusted as error:
        then = (
            f"bfinfra trust {word(settings['server'])} shows it: compare, then add --trust with its SHA-256"
        )
        raise _advised(error, then) from None
    except Denied as error:
        raise _advised(error, "check --user, and the password") from None


def _advised(error: BfinfraError, then: str) -> BfinfraError:
    """The first problem of an error, with words for somebody who has no site yet."""
    from bfinfra.model.errors import BfinfraError, Problem

    found = error.problems[0]
    return BfinfraError(Problem(found.what, found.where, found.why, then))


def _settings(args: argparse.Namespace, env: dict[str, str]) -> tuple[dict[str, object], str | None]:
    """The vCenter's settings for the site, and the password if it was typed. Raises BfinfraError."""
    from bfinfra.backends.credentials import PASSWORDS, USERNAMES
    from bfinfra.model.errors import BfinfraError, Problem

    server = re.sub(r"^https?://(?:[^@/]*@)?|/.*$", "", args.source)
    if not server:
        raise BfinfraError(
            Problem(
                "--from names no vCenter",
                why=f"found '{args.source}'",
                next="write its address: host or host:port",
            )
        )
    user = args.user or next((env[each] for each in USERNAMES if env.get(each)), "")
    if not user:
        raise BfinfraError(
            Problem(
                "which account is to be used?",
                server,
                f"{USERNAMES[0]} is not set",
                "name one, such as --user administrator@vsphere.local",
            )
        )
    held = next((each for each in (VARIABLE, *PASSWORDS) if env.get(each)), None)
    reference: dict[str, object] = {"env": held or VARIABLE}
    typed = None
    if args.password:
        reference = _reference(args.password, args.folder)
    elif held is None:
        typed = _asked(user, server)
    settings: dict[str, object] = {"server": server, "username": user, "password": reference}
    if args.datacenter:
        settings["datacenter"] = args.datacenter
    if args.trust:
        settings["trust"] = _trust(args.trust, args.folder)
    return settings, typed


def _trust(text: str, folder: str) -> dict[str, str]:
    from bfinfra.model.errors import BfinfraError, Problem

    if _digest(text):
        return {"sha256": text}
    if re.fullmatch(r"[0-9A-Fa-f:]+", text) and not Path(text).exists():
        raise BfinfraError(
            Problem(
                f"--trust {text} is neither a file nor a SHA-256",
                why="a SHA-256 has 64 hexadecimal digits, in pairs with colons or without",
                next="bfinfra trust HOST shows the one of a server",
            )
        )
    return {"ca_file": _beside(text, folder)}


def _reference(text: str, folder: str) -> dict[str, object]:
    from bfinfra.model.errors import BfinfraError, Problem

    way, colon, target = text.partition(":")
    if way not in ("env", "file", "keyring") or not (colon and target):
        raise BfinfraError(
            Problem(
                "--password takes a reference, never the password itself",
                why="others can see a command line, and the shell keeps it in its history",
                next="write env:NAME, file:PATH or keyring:SERVICE/USER, or leave it out to be asked",
            )
        )
    return {way: _beside(target, folder) if way == "file" else target}


def _asked(user: str, server: str) -> str:
    """A typed text. Raises BfinfraError if standard input is no terminal."""
    from bfinfra.model.errors import BfinfraError, Problem
    from bfinfra.model.redact import hide

    if not sys.stdin.isatty():
        raise BfinfraError(
            Problem(
                f"no password for {user}",
                server,
                "there is no terminal to ask on",
                f"export {VARIABLE}=… or name it with --password env:NAME",
            )
        )
    return hide(getpass.getpass(f"Password of {user} on {server}: "))


def _beside(path: str, folder: str) -> str:
    """The path relative to the site's folder."""
    return os.path.relpath(path, folder) if Path(path).exists() else path


def _digest(text: str) -> bool:
    return re.fullmatch(r"[0-9A-Fa-f]{64}|([0-9A-Fa-f]{2}:){31}[0-9A-Fa-f]{2}", text) is not None


def _name(folder: Path) -> str:
    """The folder's name, made a valid name of a site."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).strip("-._")[:63] or "site"
