"""sandbox faults: make its servers fail."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfinfra.cli import arguments

if TYPE_CHECKING:
    import argparse

    from bfinfra.sandbox import Running

TIMEOUT = 10  # seconds


def add(inner: arguments.Verbs) -> None:
    """Add the command and its arguments."""
    parser = arguments.world(arguments.verb(inner, "faults", "make its servers fail", run))
    parser.add_argument(
        "--rules", metavar="FILE", help="faults as a YAML or JSON list; - reads them from standard input"
    )
    parser.add_argument("--clear", action="store_true", help="remove all faults")


def run(args: argparse.Namespace) -> int:
    """Add fault rules, or remove all; returns 0."""
    from bfinfra import sandbox
    from bfinfra.cli.sandbox.folders import the_one
    from bfinfra.cli.screen import Screen
    from bfinfra.model.errors import BfinfraError, Problem
    from bfinfra.render.values import count
    from bfinfra.sandbox.faults import old_names

    if bool(args.rules) == args.clear:
        raise BfinfraError(Problem("give either --rules FILE or --clear"))
    folder = the_one(args)
    running = sandbox.running(folder)
    if running is None:
        raise BfinfraError(
            Problem(f"the sandbox {folder.name} is not running", next="bfinfra sandbox start SITE")
        )
    if args.clear:
        _call(running, "DELETE", None)
        Screen.of(args).say("no more faults")
        return 0
    rules = _rules(args.rules)
    for renamed in old_names(rules):
        Screen.of(args).say(f"in the faults, {renamed}")
    _call(running, "POST", rules)
    Screen.of(args).say(f"{count(len(rules), 'fault')} added")
    return 0


def _rules(path: str) -> list[Any]:
    from bfinfra.model import foreign
    from bfinfra.model.errors import BfinfraError, Problem
    from bfinfra.model.sources import small

    try:
        documents = foreign.documents(
            sys.stdin.read(foreign.LARGEST + 1) if path == "-" else small(Path(path))
        )
    except foreign.Unfit as error:
        raise BfinfraError(Problem("the faults can't be read", path, str(error))) from None
    found = documents[0] if len(documents) == 1 else documents
    rules = found if isinstance(found, list) else [found]
    if not rules or not all(isinstance(rule, dict) for rule in rules):
        raise BfinfraError(Problem("expected faults", path, "a list of {api, method, do, …}"))
    return rules


def _call(running: Running, method: str, body: object) -> None:
    """One call of the sandbox's control server, which is plain HTTP on loopback."""
    import http.client
    import json

    from bfinfra.model.errors import BfinfraError, Problem

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
