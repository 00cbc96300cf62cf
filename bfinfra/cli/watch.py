"""watch: survey once, then report drift when it happens; only reads servers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse

    from bfinfra.app.watch import Sight
    from bfinfra.cli.screen import Screen


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.site(arguments.verb(verbs, "watch", about, run))
    parser.add_argument(
        "--interval",
        type=arguments.seconds,
        metavar="TIME",
        help="how often to read what no server reports by itself: supervisors, libraries, machines (1m)",
    )
    parser.add_argument("--once-settled", action="store_true", help="end after the first report")


def run(args: argparse.Namespace) -> int:
    """Report drift until a signal ends it; returns the exit code that `drift` would return then."""
    import gc

    from bfinfra.app.watch import INTERVAL, WatchOptions, watch
    from bfinfra.cli.findings import exit_code, notify
    from bfinfra.cli.screen import Screen
    from bfinfra.model.errors import BfinfraError, Problem

    screen = Screen.of(args)
    if screen.output not in ("text", "jsonl"):
        raise BfinfraError(
            Problem(
                f"watch does not print {screen.output}",
                why="it prints a report each time that drift starts or ends",
                next="use --output jsonl: a report is one line",
            )
        )
    site, setting = context.load(args)
    gc.set_threshold(700, 10, 10)  # Python's default: this process lives for months
    gc.enable()
    args.stop.serves = True
    args.stop.begin_writing()  # a look that has started ends, and the session with it
    first = True

    def show(sight: Sight) -> None:
        nonlocal first
        _show(sight, screen, first=first)
        notify(site, sight.report, setting, screen)
        first = False

    options = WatchOptions(args.interval or INTERVAL, args.once_settled)
    last = watch(
        site,
        show,
        options=options,
        context=setting,
        interrupted=lambda why: screen.say(f"changes are not followed until a new survey succeeds: {why}"),
    )
    return 1 if last is None else exit_code(last)


def _show(sight: Sight, screen: Screen, *, first: bool) -> None:
    from bfinfra.render import drift as render

    if sight.why:
        screen.say(f"changes were not followed for {sight.blind:.0f} s: {sight.why}")
    found = sight.report
    screen.show(
        lambda style: render.text(found, style) if first or found.blind else render.changes(found, style),
        lambda: render.data(found),
    )
    sys.stdout.flush()
