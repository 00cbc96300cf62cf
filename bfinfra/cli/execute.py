"""The common part of apply, destroy, adopt and token rotate: plan, confirm, guard, run."""

from __future__ import annotations

import contextlib
import gc
from typing import TYPE_CHECKING, Any

from bfinfra.cli import ask, context, output
from bfinfra.cli.pipes import unread
from bfinfra.cli.screen import Screen
from bfinfra.engine.apply import Options
from bfinfra.engine.guard import Allow
from bfinfra.model.events import Ending, Event, Progressed, Sink
from bfinfra.model.plan import Plan

if TYPE_CHECKING:
    import argparse

EXITS = {Ending.DONE: 0, Ending.WAITING: 3}


def execute(args: argparse.Namespace, **how: Any) -> int:
    """Run, and return the exit code. `how`: further arguments of `apply`."""
    from bfinfra.app.apply import apply

    gc.enable()  # a run may last for hours
    context.can_write(args, args.html)
    allow, screen, stop = ask.allowed(args), Screen.of(args), args.stop
    site, run_context = context.load(args)
    ask.must_be_able(args)  # after what is wrong in the site's files, and before a server is asked
    with contextlib.ExitStack() as stack:
        display = Display(stack)

        def approve(found: Plan) -> Allow | None:
            ask.refuse_unknown(args, found)
            given = allow if args.yes else _confirmed(found, allow, args, screen)
            if given is not None:
                if args.yes:
                    _announce(found, screen)
                display.opens = screen.progress(found)
                stop.begin_writing()
            return given

        options = Options(parallelism=args.parallelism, deadline=args.deadline, stop=stop.flag)
        outcome = apply(site, approve=approve, options=options, on_event=display, context=run_context, **how)
    if outcome.declined:
        screen.say("Cancelled: nothing was written.")
        return 1
    with unread():
        screen.outcome(outcome, display.events)
    if args.html:
        from bfinfra.render import plan_page

        screen.page(
            args.html,
            site,
            lambda before, _: plan_page.outcome(outcome, display.events, site.resources, before),
        )
    return EXITS.get(outcome.ending, 1)


def _announce(found: Plan, screen: Screen) -> None:
    """Print the plan before its run; with --output json or markdown only the outcome is printed."""
    if screen.output in ("text", "jsonl") and not (found.problems or found.unreadable):
        screen.plan(found)


def _confirmed(found: Plan, allow: Allow, args: argparse.Namespace, screen: Screen) -> Allow | None:
    if found.problems or found.unreadable:  # the guard reports them
        return allow
    screen.plan_to_people(found)
    return ask.allowance(found, allow, args.verb, args.stop)


class Display:
    """The sink of a run: keeps events for the summary and passes them to the display. A failing display never
    stops an apply.
    """

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self.events: list[Event] = []
        self.opens: contextlib.AbstractContextManager[Sink] | None = None
        """The display, opened at the first event and closed with the stack, so that a refusing guard leaves
        no empty display.
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
                output.error(f"progress is no longer shown: {type(error).__name__}")


def _nowhere(_: Event) -> None:
    """Show nothing."""
