"""Reads what an apply may do: from options, or from the user's answers to a plan."""

from __future__ import annotations

import contextlib
import io
import select
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from bfinfra.cli import context, output
from bfinfra.engine.guard import Allow, objections
from bfinfra.kinds import kind
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.refs import Key
from bfinfra.model.step import Disruption
from bfinfra.model.stop import Stop
from bfinfra.model.suggest import nearest
from bfinfra.render.safe import safe

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

TICK = 0.1  # seconds between checks whether the run was asked to end


def allowed(args: argparse.Namespace) -> Allow:
    """Return what the options allow. Raises BfinfraError for a text that is not an address."""
    deletes, disrupts = _words(args.allow_delete), _words(args.allow_disruption)
    everything = args.verb == "destroy" or "all" in deletes
    return Allow(
        every_delete=everything,
        every_disruption="all" in disrupts,
        delete=_keys("--allow-delete", deletes),
        disrupt=_keys("--allow-disruption", disrupts),
    )


def must_be_able(args: argparse.Namespace) -> None:
    """Raises BfinfraError if a confirmation is needed and standard input is no terminal."""
    if not (args.yes or _somebody()):
        raise BfinfraError(
            Problem(
                f"{args.verb} needs a confirmation, and there is no terminal to ask on",
                "",
                "standard input or standard error is not a terminal",
                (
                    f"look with: bfinfra plan{' --destroy' if args.verb == 'destroy' else ''} SITE; then "
                    "run with --yes"
                ),
            )
        )


def refuse_unknown(args: argparse.Namespace, found: Plan) -> None:
    """Raises BfinfraError for an allowed address that is not in the plan, if another address still has to be
    allowed. Otherwise a pipeline's command may keep what an earlier plan needed.
    """
    if not objections(found, allowed(args)):
        return
    known = {str(item.key) for item in found.items}
    options = {"--allow-delete": args.allow_delete, "--allow-disruption": args.allow_disruption}
    wrong = [
        Problem(
            f"{each} is not in the plan",
            option,
            "the site has no such resource, and made none",
            nearest(each, known),
        )
        for option, given in options.items()
        for each in _words(given)
        if each not in {"all", *known}
    ]
    if wrong and not found.unreadable:
        raise BfinfraError(*wrong)


def allowance(found: Plan, allow: Allow, verb: str, stop: Stop) -> Allow | None:
    """Return what the user allows: he types `yes`, and the name of every resource with data that is deleted
    or disrupted. None for any other answer.
    """
    if not found.pending or found.problems or found.unreadable:
        return allow
    typed = [item for item in found.pending if _grave(item, allow)]
    for item in typed:
        output.text(f"\n{_what(item)}", sys.stderr)
        if _answer(f"Type {safe(item.key.name)} to allow it: ", stop) != item.key.name:
            return None
    if _answer(f"\n{verb.capitalize()} this plan? Only yes continues: ", stop) != "yes":
        return None
    goes = frozenset(
        item.key
        for item in found.pending
        if item.action in (Action.DELETE, Action.REPLACE) or any(s.destructive for s in item.steps)
    )
    return replace(allow, delete=allow.delete | goes, disrupt=allow.disrupt | {item.key for item in typed})


def _grave(item: Item, allow: Allow) -> bool:
    goes = any(s.destructive for s in item.steps) or (
        item.action in (Action.DELETE, Action.REPLACE) and (item.contents or kind(item.key.kind).holds_data)
    )
    disrupts = item.action is not Action.DELETE and item.disruption in (
        Disruption.RESTART,
        Disruption.REBOOT,
        Disruption.POWER_CYCLE,
    )
    return bool(
        (goes and item.key not in allow.delete)
        or (disrupts and not (allow.every_disruption or item.key in allow.disrupt))
    )


def _what(item: Item) -> str:
    if item.action in (Action.DELETE, Action.REPLACE):
        inside = (
            f" and objects in it that are not this site's: {', '.join(map(safe, item.contents))}"
            if item.contents
            else ""
        )
        return f"This will {item.action} {safe(item.key)}{inside}."
    if destroyed := [safe(s.title()) for s in item.steps if s.destructive]:
        return f"This will {', '.join(destroyed)}: its data can't be recovered."
    why = "; ".join(
        dict.fromkeys(safe(s.why) for s in item.steps if s.why and s.disruption is not Disruption.NONE)
    )
    return f"This needs a {item.disruption} of {safe(item.key)}{': ' + why if why else ''}."


def _answer(question: str, stop: Stop) -> str:
    """One typed line. Raises Interrupted if the run is asked to end meanwhile."""
    output.text(question, sys.stderr, end="", flush=True)
    with contextlib.suppress(io.UnsupportedOperation):  # what has no file descriptor never blocks
        while not select.select([sys.stdin], [], [], TICK)[0]:
            stop.check()
    return sys.stdin.readline().strip()


def _somebody() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _words(given: Iterable[str]) -> list[str]:
    return [word.strip() for words in given for word in words.split(",") if word.strip()]


def _keys(option: str, words: list[str]) -> frozenset[Key]:
    return frozenset(context.address(word, option) for word in words if word != "all")
