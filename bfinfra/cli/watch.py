"""watch: survey once, then report drift when it happens; only reads servers."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse

    from bfinfra.app.context import RunContext
    from bfinfra.app.listener import Listener, Listeners
    from bfinfra.cli.screen import Screen
    from bfinfra.model.site import Site


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
    parser.add_argument(
        "--html", metavar="FILE", help="keep a page in this file, which a browser reads again by itself"
    )
    parser.add_argument(
        "--metrics", type=arguments.address, metavar="ADDRESS:PORT", help="serve metrics for Prometheus here"
    )
    parser.add_argument(
        "--metrics-file", metavar="FILE.prom", help="keep the metrics in this file, for node_exporter"
    )


def run(args: argparse.Namespace) -> int:
    """Report drift until a signal ends it; returns the exit code that `drift` would return then."""
    from bfinfra.app.watch import INTERVAL, WatchOptions, watch
    from bfinfra.cli.findings import exit_code
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
    context.can_write(args, args.html, args.metrics_file)
    site, run_context = context.load(args)
    context.serve(args.stop)
    listeners = _listeners(args, site, run_context, screen)
    options = WatchOptions(args.interval or INTERVAL, args.once_settled, own_process=True)
    try:
        last = watch(site, listeners, options=options, context=_beating(run_context, listeners))
    finally:
        listeners.close()
    return exit_code(last) if last and listeners.following else 1


def _beating(run_context: RunContext, listeners: Listeners) -> RunContext:
    """The same, which gives a sign of life before each pause of a retry too: an outage may last."""
    from dataclasses import replace

    def sleep(seconds: float) -> None:
        listeners.beat()
        run_context.retry.halt.wait(seconds)

    return replace(run_context, retry=replace(run_context.retry, sleep=sleep))


def _listeners(args: argparse.Namespace, site: Site, run_context: RunContext, screen: Screen) -> Listeners:
    """What hears the watch, by the arguments and the site."""
    from bfinfra.app.listener import Listeners
    from bfinfra.cli.service import Service
    from bfinfra.cli.watched import Printed

    each: list[Listener] = [Printed(screen)]
    if service := Service.of(os.environ):
        each.append(service)
    if site.drift.notify:
        from bfinfra.app.notifier import Notifier

        each.append(Notifier(site, context=run_context, failed=screen.say))
    if args.html:
        from bfinfra.cli.watched import WatchedPage

        each.append(WatchedPage(args.html, site, screen.say))
    if args.metrics or args.metrics_file:
        each.append(_metrics(args, site, screen))
    return Listeners(each)


def _metrics(args: argparse.Namespace, site: Site, screen: Screen) -> Listener:
    from bfinfra.model.errors import BfinfraError, Problem
    from bfinfra.model.extras import missing

    name = args.metrics_file or ""
    if name and not name.endswith(".prom"):
        raise BfinfraError(
            Problem("node_exporter reads files that end with .prom", name, next=f"name it {name}.prom")
        )
    try:
        from bfinfra.app.metrics import WatchMetrics
    except ModuleNotFoundError as error:
        raise missing("--metrics", "metrics", error) from None
    return WatchMetrics(site, args.metrics, name, screen.say)
