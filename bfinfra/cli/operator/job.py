"""operator job: what a Job of the operator runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli import arguments, output

if TYPE_CHECKING:
    import argparse


def add(inner: arguments.Verbs) -> None:
    """Add the command and its arguments."""
    about = (
        "what a Job of the operator runs: check one site, apply what may be applied, write the result to "
        "a file"
    )
    parser = arguments.verb(inner, "job", about, run)
    parser.add_argument(
        "--site", metavar="FILE", required=True, help="the site; the files that it names are beside it"
    )
    parser.add_argument(
        "--variables", metavar="FOLDER", help="a file for each variable that the site names; default: none"
    )
    parser.add_argument(
        "--own",
        metavar="FOLDER",
        required=True,
        help="a folder for the site's files, which is made anew: the site can name nothing else",
    )
    parser.add_argument(
        "--result",
        metavar="FILE",
        required=True,
        help="the file for the result: the container's termination message",
    )
    parser.add_argument(
        "--approval",
        choices=("Always", "Disruptive", "Never"),
        default="Disruptive",
        help="which plans wait for approval (default Disruptive)",
    )
    parser.add_argument("--approved", metavar="DIGEST", default="", help="the approved plan")
    parser.add_argument("--destroy", action="store_true", help="delete what the site made")
    parser.add_argument(
        "--stood",
        dest="existed",
        action="store_true",
        help="everything existed at the last check: what is missing has vanished",
    )
    parser.add_argument("--watched", action="store_true", help="a watcher notifies the site's webhook")
    parser.add_argument(
        "--known",
        metavar="IDENTITY",
        action="append",
        default=[],
        help="drift that an earlier check found; repeat",
    )


def run(args: argparse.Namespace) -> int:
    """Check one site. Returns 0 once the result is written, whatever it is, so that Kubernetes does not
    restart the Job.
    """
    from bfinfra.model.files import overwrite
    from bfinfra.operator.approval import Approval
    from bfinfra.operator.declared import mounted
    from bfinfra.operator.work import Order, work
    from bfinfra.render.safe import safe

    args.stop.begin_writing()
    order = Order(
        Approval(args.approval),
        args.approved,
        destroy=args.destroy,
        known=tuple(args.known),
        existed=args.existed,
        watched=args.watched,
        stop=args.stop.flag,
    )
    variables, own = Path(args.variables) if args.variables else None, Path(args.own)
    found = work(lambda: mounted(Path(args.site), variables).load(own), order)
    overwrite(Path(args.result), found.text())  # the kubelet mounts it by itself, beside nothing else
    output.text(safe(f"{found.outcome}{f': {found.why}' if found.why else ''}"))
    return 0
