"""privileges: show which rights an account needs for a site."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context, output

if TYPE_CHECKING:
    import argparse

    from bfinfra.model.refs import Key
    from bfinfra.model.rights import Rights

USES = ("plan", "watch", "apply", "destroy")


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.site(arguments.verb(verbs, "privileges", about, run))
    parser.add_argument(
        "--for",
        dest="uses",
        action="append",
        choices=USES,
        help="plan, watch, apply (creates, changes) or destroy (deletes, replaces); repeat; default all",
    )
    parser.add_argument(
        "--as",
        dest="form",
        choices=("govc", "powercli", "rbac"),
        help="govc, powercli: commands that grant the rights on vCenter; rbac: a manifest for kubectl",
    )
    parser.add_argument(
        "--account", metavar="NAME", help="the account to grant them to; default: vcenter.username"
    )
    parser.add_argument(
        "--cluster", metavar="ADDRESS", help="the cluster of the manifest, if the site has several"
    )


def run(args: argparse.Namespace) -> int:
    """Print the rights in the chosen form; returns 0."""
    from bfinfra.app.privileges import privileges
    from bfinfra.cli.screen import Screen
    from bfinfra.model.errors import BfinfraError, Problem
    from bfinfra.model.rights import Use
    from bfinfra.render import privileges as render
    from bfinfra.render.powercli import powercli

    site, _ = context.load(args)
    found = privileges(site, [use for use in Use if use in (args.uses or Use)])
    account = args.account or (site.vcenter and site.vcenter.username) or "ACCOUNT"
    if args.form in ("govc", "powercli") and not args.account:
        raise BfinfraError(
            Problem(
                "the commands grant rights to an account, and none is named",
                why="the site's own may be an administrator, who would lose rights",
                next="add --account bfinfra@vsphere.local, or another account that is to run bfinfra",
            )
        )
    if args.form == "govc":
        output.exact(render.govc(found, account))
    elif args.form == "powercli":
        output.exact(powercli(found, account))
    elif args.form == "rbac":
        output.exact(render.manifest(found, account, _cluster(found, args.cluster)))
    else:
        Screen.of(args).show(
            lambda style: render.text(found, account, style), lambda: render.data(found, account)
        )
    return 0


def _cluster(found: Rights, wanted: str | None) -> Key:
    """The site's only cluster, or the one that the arguments name. Raises BfinfraError."""
    from bfinfra.model.errors import BfinfraError, Problem
    from bfinfra.render import privileges as render

    known = render.clusters(found)
    if wanted is None and len(known) == 1:
        return known[0]
    named = next((key for key in known if str(key) == wanted), None)
    if named is None:
        what = (
            f"the site has no cluster {wanted}"
            if wanted
            else "for which cluster is the manifest?"
            if known
            else "the site has no cluster that takes roles"
        )
        there = ", ".join(map(str, known)) or "supervisor namespaces grant rights in their access field"
        raise BfinfraError(
            Problem(
                what, "--cluster", f"there is: {there}", "name one of these" if known else "omit --as rbac"
            )
        )
    return named
