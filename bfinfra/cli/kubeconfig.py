"""kubeconfig: print a kubeconfig for one of the site's clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context, output

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.site(arguments.verb(verbs, "kubeconfig", about, run))
    parser.add_argument("address", metavar="ADDRESS", help="kind/name, such as tanzu_cluster/cluster-01")
    parser.add_argument(
        "--out", metavar="FILE", help="write it to this file, readable only by you, instead of printing it"
    )


def run(args: argparse.Namespace) -> int:
    """Print the kubeconfig, or write it to --out; returns 0."""
    from bfinfra.app.kubeconfig import kubeconfig
    from bfinfra.cli.screen import Screen
    from bfinfra.formats import shell

    context.can_write(args, args.out)
    site, run_context = context.load(args)
    found = kubeconfig(site, args.address, context=run_context)
    if args.out:
        from bfinfra.model.files import PRIVATE, write_named

        write_named(args.out, found, PRIVATE)
        Screen.of(args).say(f"export {shell.assignment('KUBECONFIG', args.out)}")
    else:
        output.exact(found, end="" if found.endswith("\n") else "\n")
    return 0
