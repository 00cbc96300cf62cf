"""apply, destroy, adopt, token rotate: plan, confirm, guard, run."""

from __future__ import annotations

import contextlib
import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfinfra import app
from bfinfra.cli import ask, where
from bfinfra.cli.pipes import unread
from bfinfra.cli.screen import Screen
from bfinfra.engine import saved
from bfinfra.engine.apply import Options
from bfinfra.engine.guard import Allow
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.events import Ending, Event, Progressed, Sink
from bfinfra.model.plan import Plan
from bfinfra.model.refs import Key

if TYPE_CHECKING:
    import argparse

EXITS = {Ending.DONE: 0, Ending.WAITING: 3}


def apply(args: argparse.Namespace) -> int:
    """Make the world as the site or a saved plan says."""
    ask.must_be_able(args)
    if any(saved.is_plan(Path(path)) for path in args.sites):
        if len(args.sites) > 1:
            raise BfinfraError(
                Problem("a saved plan stands alone", ", ".join(args.sites), next="bfinfra apply PLANFILE")
            )
        announced = saved.Saved.read(Path(args.sites[0]))
        args.sites = list(announced.files)
        return _run(args, saved=announced, destroy=announced.destroy)
    return _run(args)


def destroy(args: argparse.Namespace) -> int:
    """Delete what the site made."""
    ask.must_be_able(args)
    return _run(args, destroy=True)


def adopt(args: argparse.Namespace) -> int:
    """Put the mark on an object that stands there already."""
    ask.must_be_able(args)
    try:
        key = Key.parse(args.address)
    except ValueError as error:
        raise BfinfraError(Problem(str(error))) from None
    return _run(args, adopt=frozenset({key}))


def rotate(args: argparse.Namespace) -> int:
    """Put the token that its source has now wherever it is held; the last word may be its name."""
    args.verb, args.allow_delete, args.allow_disruption = "rotate", [], []
    ask.must_be_able(args)
    token = args.sites.pop() if len(args.sites) > 1 and not Path(args.sites[-1]).exists() else ""
    return _run(args, rotation=app.Rotation(token, args.restart))


def _run(args: argparse.Namespace, **how: Any) -> int:
    gc.enable()  # it may last for hours
    allow, screen, stop = ask.allowed(args), Screen.of(args), args.stop
    site, setting = where.site(args)
    with contextlib.ExitStack() as stack:
        display = Display(stack)

        def approve(found: Plan) -> Allow | None:
            given = allow if args.yes else _confirmed(found, allow, args, screen)
            if given is not None:
                if args.yes:
                    _announce(found, screen)
                display.opens = screen.progress(found)
                stop.begin_writing()
            return given

        options = Options(parallelism=args.parallelism, deadline=args.deadline, stop=stop.flag)
        outcome = app.apply(site, approve=approve, options=options, on_event=display, context=setting, **how)
    if outcome.declined:
        screen.say("Left as it is: nothing was written.")
        return 1
    with unread():
        screen.outcome(outcome, display.events)
    return EXITS.get(outcome.ending, 1)


def _announce(found: Plan, screen: Screen) -> None:
    """The plan before its run; where one document is wanted, only the outcome is printed."""
    if screen.output in ("text", "jsonl") and not (found.problems or found.unreadable):
        screen.plan(found)


def _confirmed(found: Plan, allow: Allow, args: argparse.Namespace, screen: Screen) -> Allow | None:
    if found.problems or found.unreadable:  # the guard says them
        return allow
    screen.plan_to_people(found)
    return ask.allowance(found, allow, args.verb, args.stop)


class Display:
    """The sink of a run: keeps what the summary needs, hands on what is shown. What can't be shown never
    stops an apply.
    """

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.events: list[Event] = []
        self.opens: contextlib.AbstractContextManager[Sink] | None = None
        """What is shown from the first event on, and closed with the stack: a guard that says no leaves no
        empty board.
        """
        self._stack = stack
        self._sink: Sink = _nowhere

    def __call__(self, event: Event) -> None:
        """Take one event."""
        if not isinstance(event, Progressed):
            self.events.append(event)
        try:
            if opens := self.opens:
                self.opens = None
                self._sink = self._stack.enter_context(opens)
            self._sink(event)
        except Exception as error:  # noqa: BLE001 - objects are being made: a closed pipe or a wrong picture must not end that
            self._sink = _nowhere
            with contextlib.suppress(OSError, ValueError):
                print(f"progress is no longer shown: {type(error).__name__}", file=sys.stderr, flush=True)


def _nowhere(_: Event) -> None:
    """Shows nothing."""
