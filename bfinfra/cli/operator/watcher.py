"""operator watcher: one of the replicas that follow the Sites of a namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse


def add(inner: arguments.Verbs) -> None:
    """Add the command and its arguments."""
    about = "follow the Sites of a namespace with watch: true, and report drift in their status; run several"
    parser = arguments.verb(inner, "watcher", about, run)
    parser.add_argument(
        "--namespace", metavar="NAME", default="", help="whose Sites to follow (default the pod's own)"
    )
    parser.add_argument(
        "--sites",
        type=arguments.positive,
        default=100,
        metavar="N",
        help="how many Sites to follow at most; fewer where the memory ends (default 100)",
    )
    parser.add_argument(
        "--surveys",
        type=arguments.positive,
        default=4,
        metavar="N",
        help="how many Sites to survey at a time before they are followed (default 4)",
    )
    parser.add_argument(
        "--interval",
        type=arguments.seconds,
        metavar="TIME",
        help="how often to read what no server reports by itself (1m)",
    )
    parser.add_argument(
        "--name", default="", help="this replica's name among the others (default the pod's name)"
    )
    arguments.in_cluster(parser)


def run(args: argparse.Namespace) -> int:
    """Run the watcher, and return its exit code."""
    from bfinfra.app.watch import INTERVAL
    from bfinfra.model.extras import missing

    try:
        from bfinfra.operator.watcher.running import WatcherOptions
        from bfinfra.operator.watcher.running import run as serve
    except ModuleNotFoundError as error:
        raise missing("the watcher", "operator", error) from None

    how = WatcherOptions(
        args.metrics,
        args.namespace,
        args.sites,
        args.surveys,
        args.name,
        args.kubeconfig or "",
        args.interval or INTERVAL,
    )
    context.serve(args.stop)
    return serve(how, args.stop.flag)
