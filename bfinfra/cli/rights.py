"""privileges: what an account needs the right to. doctor: whatever would stop an apply, rights among it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra import app
from bfinfra.cli import where
from bfinfra.cli.screen import Screen
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.finding import Health
from bfinfra.model.refs import Key
from bfinfra.model.rights import Rights, Use
from bfinfra.render import findings
from bfinfra.render import privileges as render

if TYPE_CHECKING:
    import argparse


def privileges(args: argparse.Namespace) -> int:
    """In the form that was asked for."""
    site, _ = where.site(args)
    found = app.privileges(site, [use for use in Use if use in (args.uses or Use)])
    account = args.account or (site.vcenter and site.vcenter.username) or "ACCOUNT"
    if args.form == "govc" and not args.account:
        raise BfinfraError(
            Problem(
                "the commands give rights to an account, and none is named",
                why="the site's own may be an administrator, who would have fewer then",
                next="add --account bfinfra@vsphere.local, or whichever account shall run bfinfra",
            )
        )
    if args.form == "govc":
        print(render.govc(found, account))
    elif args.form == "rbac":
        print(render.manifest(found, account, _cluster(found, args.cluster)))
    else:
        Screen.of(args).show(
            lambda style: render.text(found, account, style), lambda: render.data(found, account)
        )
    return 0


def doctor(args: argparse.Namespace) -> int:
    """1 where anything is bad."""
    site, setting = where.site(args)
    found = app.doctor(site, context=setting)
    Screen.of(args).show(lambda style: findings.text(found, style), lambda: findings.data(site.name, found))
    return 1 if any(each.health is Health.BAD for each in found) else 0


def _cluster(found: Rights, wanted: str | None) -> Key:
    """The one cluster, or the one that was named."""
    known = render.clusters(found)
    if wanted is None and len(known) == 1:
        return known[0]
    named = next((key for key in known if str(key) == wanted), None)
    if named is None:
        what = (
            f"the site has no cluster {wanted}"
            if wanted
            else "whose manifest?"
            if known
            else "the site has no cluster that takes roles"
        )
        there = ", ".join(map(str, known)) or "supervisor namespaces give rights by access"
        raise BfinfraError(
            Problem(
                what,
                "--cluster",
                f"there is: {there}",
                "name one of these" if known else "leave --as rbac out",
            )
        )
    return named
