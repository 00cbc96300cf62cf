"""operator run: the operator itself, until it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse


def add(inner: arguments.Verbs) -> None:
    """Add the command and its arguments."""
    about = "run the operator: it checks each Site with a Job and reports in the Site's status"
    parser = arguments.verb(inner, "run", about, run)
    parser.add_argument(
        "--image",
        metavar="IMAGE",
        default="",
        help="the Jobs' container image; default: that of the operator's pod",
    )
    parser.add_argument(
        "--namespace",
        dest="namespaces",
        action="append",
        default=[],
        metavar="NAME",
        help="manage the Sites of this namespace; repeat; default: all",
    )
    parser.add_argument(
        "--jobs", type=arguments.positive, default=20, metavar="N", help="Jobs at a time (default 20)"
    )
    parser.add_argument(
        "--pull-secret",
        dest="pull",
        action="append",
        default=[],
        metavar="NAME",
        help="an image pull Secret in the Sites' namespaces; repeat",
    )
    parser.add_argument(
        "--lease",
        default="/bfinfra-operator",
        metavar="NAMESPACE/NAME",
        help="the Lease of the leader (default bfinfra-operator in the pod's own namespace)",
    )
    arguments.in_cluster(parser)


def run(args: argparse.Namespace) -> int:
    """Run the operator, and return its exit code."""
    from bfinfra.model.errors import BfinfraError, Problem
    from bfinfra.model.extras import missing

    try:
        from bfinfra.operator.running import How
        from bfinfra.operator.running import run as serve
    except ModuleNotFoundError as error:
        raise missing("the operator", "operator", error) from None
    from bfinfra.operator.job import Mould

    namespace, _, name = args.lease.rpartition("/")
    if not name:
        raise BfinfraError(Problem("expected --lease NAMESPACE/NAME"))
    how = How(
        Mould(args.image, tuple(args.pull)),
        args.metrics,
        tuple(args.namespaces),
        args.jobs,
        (namespace, name),
        args.kubeconfig or "",
    )
    context.serve(args.stop)
    return serve(how, args.stop.flag)
