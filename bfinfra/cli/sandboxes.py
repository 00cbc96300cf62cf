"""sandbox start, stop, reset, status, faults."""

from __future__ import annotations

import http.client
import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfinfra import sandbox, worlds
from bfinfra.cli.screen import Screen
from bfinfra.model import foreign
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.sources import small
from bfinfra.render.data import document
from bfinfra.render.values import count

if TYPE_CHECKING:
    import argparse

    from bfinfra.sandbox import Running

TIMEOUT = 10  # seconds


def start(args: argparse.Namespace) -> int:
    """Start the sandbox of a world, or find it running."""
    file = worlds.world_of(*args.sites, world=args.world or "")
    with worlds.spoken():
        found = sandbox.running(worlds.state(file)) or sandbox.start(file, worlds.state(file))
    _show(args, {worlds.state(file): found})
    return 0


def stop(args: argparse.Namespace) -> int:
    """Stop it; its state stays for the next start."""
    folders = [folder for folder in _meant(args) if sandbox.running(folder)]
    with worlds.spoken():
        for folder in folders:
            sandbox.stop(folder)
    Screen.of(args).say(f"stopped {', '.join(f.name for f in folders)}" if folders else "no sandbox runs")
    return 0


def reset(args: argparse.Namespace) -> int:
    """Set it back to its beginning."""
    folder = _one(args)
    with worlds.spoken():
        sandbox.reset(folder)
    Screen.of(args).say(f"{folder.name} is as at its beginning")
    return 0


def status(args: argparse.Namespace) -> int:
    """Where its servers listen."""
    _show(args, {folder: found for folder in _meant(args) if (found := sandbox.running(folder))})
    return 0


def faults(args: argparse.Namespace) -> int:
    """Add fault rules, or clear them."""
    if bool(args.rules) == args.clear:
        raise BfinfraError(Problem("say either --rules FILE or --clear"))
    folder = _one(args)
    running = sandbox.running(folder)
    if running is None:
        raise BfinfraError(
            Problem(f"the sandbox {folder.name} does not run", next="bfinfra sandbox start SITE")
        )
    if args.clear:
        _control(running, "DELETE", None)
        Screen.of(args).say("no more faults")
        return 0
    rules = _rules(args.rules)
    _control(running, "POST", rules)
    Screen.of(args).say(f"{count(len(rules), 'fault')} added")
    return 0


def _rules(path: str) -> list[Any]:
    try:
        documents = foreign.documents(
            sys.stdin.read(foreign.LARGEST + 1) if path == "-" else small(Path(path))
        )
    except foreign.Unfit as error:
        raise BfinfraError(Problem("the faults can't be read", path, str(error))) from None
    found = documents[0] if len(documents) == 1 else documents
    rules = found if isinstance(found, list) else [found]
    if not rules or not all(isinstance(rule, dict) for rule in rules):
        raise BfinfraError(Problem("expected faults", path, "a list of {door, method, do, …}"))
    return rules


def _control(running: Running, method: str, body: Any) -> None:
    """One call of the sandbox's control door, which is plain HTTP on loopback."""
    connection = http.client.HTTPConnection(running.control, timeout=TIMEOUT)
    try:
        connection.request(
            method,
            "/faults",
            None if body is None else json.dumps(body),
            {"Content-Type": "application/json"},
        )
        answer = connection.getresponse()
        words = answer.read().decode(errors="replace")
        if answer.status >= 400:
            raise BfinfraError(Problem("the sandbox refuses the faults", why=words))
    except (OSError, http.client.HTTPException) as error:
        raise BfinfraError(
            Problem("the sandbox does not answer", running.control, str(error), "bfinfra sandbox status")
        ) from None
    finally:
        connection.close()


def _meant(args: argparse.Namespace) -> list[Path]:
    """The sandbox that the arguments name, by its site, world or own name, or all there are."""
    if args.sites and not args.world and (named := worlds.states() / args.sites[0]).is_dir():
        return [named]
    if args.sites or args.world:
        return [worlds.state(worlds.world_of(*args.sites, world=args.world or ""))]
    return sorted(path for path in worlds.states().glob("*") if path.is_dir())


def _one(args: argparse.Namespace) -> Path:
    found = [folder for folder in _meant(args) if sandbox.running(folder)] or _meant(args)
    if len(found) == 1:
        return found[0]
    names = ", ".join(path.name for path in found)
    raise BfinfraError(
        Problem(
            "which sandbox?" if found else "there is no sandbox",
            why=names,
            next="name it, or the SITE whose world it is, or --world FILE",
        )
    )


def _show(args: argparse.Namespace, found: dict[Path, Running]) -> None:
    """Lines for a shell, without the passwords: those stand in a file that the last line reads."""
    screen = Screen.of(args)
    if not found and screen.output not in ("json", "jsonl"):
        screen.say("no sandbox runs")
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
        screen.say(
            'For govc, kubectl and others, let a shell take these lines in: eval "$(bfinfra sandbox '
            f'status {next(iter(found)).name})"'
        )


def _text(folder: Path, found: Running) -> Iterator[str]:
    yield f"# {folder.name}: process {found.pid}, control http://{found.control}"
    longest = max(map(len, found.addresses), default=0)
    for address, here in found.addresses.items():
        yield f"#   {address:<{longest}}  {here}"
    for name, value in found.clients.items():
        yield f"export {name}={shlex.quote(value)}"
    yield f". {shlex.quote(str(found.env_file))}  # the same with the passwords, which only you may read"
