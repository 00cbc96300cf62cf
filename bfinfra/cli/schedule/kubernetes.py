"""schedule kubernetes: a CronJob with its account, its rights and the site's files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfinfra.cli import arguments, context, output

if TYPE_CHECKING:
    import argparse

    from bfinfra.model.site import Site
    from bfinfra.render.schedule import ScheduledCheck


def add(inner: arguments.Verbs) -> arguments.Parser:
    """Add the command and its own arguments."""
    about = "a CronJob with its account, its rights and the site's files"
    parser = arguments.verb(inner, "kubernetes", about, run)
    parser.add_argument(
        "--image", metavar="IMAGE", required=True, help="a container image that contains bfinfra"
    )
    parser.add_argument("--namespace", metavar="NAME", help="the namespace to run in")
    parser.add_argument(
        "--claim",
        metavar="NAME",
        help="a volume claim for results of earlier checks; without it each check is the first",
    )
    parser.add_argument(
        "--in-cluster",
        metavar="ADDRESS",
        help="the site's cluster that it runs in; its account gets the rights that a check needs there",
    )
    return parser


def run(args: argparse.Namespace) -> int:
    """Print the manifests, and to stderr the command that makes the Secret; returns 0."""
    from dataclasses import replace

    from bfinfra.cli.bundle import below, bundle
    from bfinfra.cli.references import no_keyring, secret
    from bfinfra.cli.schedule.check import check_of, options
    from bfinfra.cli.screen import Screen
    from bfinfra.render import schedule as render

    site, _ = context.load(args)
    no_keyring(site, commands=True)
    check = check_of(args, site)
    base = Path(next(iter(site.files))).absolute().parent
    given = bundle(site, base, (*site.files, *site.variant_files), applies=False)
    secrets = given.secrets

    def mounted(path: Path) -> str:
        return f"{render.MOUNT}/{below(path, base)}"

    check = replace(check, sites=tuple(map(mounted, site.files)), options=options(site, mounted))
    made = render.kubernetes(
        check, args.image, given.files, secrets, namespace=args.namespace or "", claim=args.claim or ""
    )
    output.exact(render.manifest([*made, *_rights(args, site, check)] if args.in_cluster else made))
    if given.left:
        Screen.of(args).say(*given.words())
    if check.env or secrets:
        files = {key: base / path for path, key in secrets.items()}
        Screen.of(args).say(*secret(check.name, args.namespace or "", check.env, files))
    return 0


def _rights(args: argparse.Namespace, site: Site, check: ScheduledCheck) -> list[dict[str, Any]]:
    """The rights of its account in the cluster that it runs in. Raises BfinfraError if the site has no such
    cluster.
    """
    from bfinfra.app.privileges import privileges as needed
    from bfinfra.model.errors import BfinfraError, Problem
    from bfinfra.model.refs import Key
    from bfinfra.model.rights import Use
    from bfinfra.render import privileges
    from bfinfra.render import schedule as render

    found, cluster = needed(site, [Use.PLAN]), Key.parse(args.in_cluster)
    if cluster not in privileges.clusters(found):
        there = ", ".join(map(str, privileges.clusters(found))) or "none"
        raise BfinfraError(
            Problem(f"the site has no cluster {cluster}", "--in-cluster", f"there is: {there}")
        )
    return render.bound(check, privileges.manifests(found, check.name, cluster), args.namespace or "default")
