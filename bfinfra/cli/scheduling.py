"""schedule: what runs drift checks by itself. Prints or writes files; installs nothing."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfinfra import app
from bfinfra.cli import where
from bfinfra.cli.carrying import below, carried
from bfinfra.cli.screen import Screen
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.refs import Key
from bfinfra.model.rights import Use
from bfinfra.model.schedule import Schedule
from bfinfra.model.secret import Secret
from bfinfra.render import privileges
from bfinfra.render import schedule as render
from bfinfra.spec.leads import walk

if TYPE_CHECKING:
    import argparse

    from bfinfra.model.site import Site


def systemd(args: argparse.Namespace) -> int:
    """A service and its timer."""
    site, _ = where.site(args)
    no_keyring(site)
    units = render.systemd(_check(args, site), args.user or "")
    if args.out:
        folder = Path(args.out)
        _write(folder, units)
        Screen.of(args).say(
            f"wrote {', '.join(str(folder / name) for name in units)}\nnext: systemctl daemon-reload && "
            f"systemctl enable --now {list(units)[1]}"
        )
    else:
        print("\n".join(f"# {name}\n{text}" for name, text in units.items()), end="")
    return 0


def cron(args: argparse.Namespace) -> int:
    """A line of a crontab."""
    site, _ = where.site(args)
    no_keyring(site)
    print(render.cron(_check(args, site)))
    return 0


def kubernetes(args: argparse.Namespace) -> int:
    """A CronJob's manifests, and on stderr how its Secret is made."""
    site, _ = where.site(args)
    no_keyring(site, commands=True)
    check = _check(args, site)
    base = Path(next(iter(site.files))).absolute().parent
    given = carried(site, base, applies=False)
    secrets = given.secrets
    check = replace(check, sites=tuple(str(below(file, base)) for file in site.files))
    made = render.kubernetes(
        check, args.image, given.files, secrets, namespace=args.namespace or "", claim=args.claim or ""
    )
    print(render.manifest([*made, *_rights(args, site, check)] if args.in_cluster else made))
    if given.left:
        Screen.of(args).say(given.words())
    if check.env or secrets:
        into = f" --namespace {args.namespace}" if args.namespace else ""
        words = [
            *(f'--from-literal={name}="${name}"' for name in check.env),
            *(f"--from-file={key}={base / path}" for path, key in secrets.items()),
        ]
        Screen.of(args).say(
            f"its Secret is yours to make:\n  kubectl create secret generic {check.name}{into} "
            f"{' '.join(words)}"
        )
    return 0


def _check(args: argparse.Namespace, site: Site) -> render.Check:
    return render.Check(
        site.name,
        _program(),
        tuple(str(Path(each).absolute()) for each in args.sites),
        Schedule.every(args.every, site.name),
        variables(site),
    )


def variables(site: Site) -> tuple[str, ...]:
    """The names that the site's {env: …} refer to."""
    names: dict[str, None] = {}
    walk(
        site,
        lambda _, value: (
            names.update({str(value.target): None})
            if isinstance(value, Secret) and value.way == "env"
            else None
        ),
    )
    return tuple(names)


def _program() -> str:
    """The bfinfra that is running; as a module of its Python where it was started so."""
    here = Path(sys.argv[0]).absolute()
    beside = Path(sys.executable).with_name("bfinfra")
    return str(here if here.name == "bfinfra" else beside)


def _rights(args: argparse.Namespace, site: Site, check: render.Check) -> list[dict[str, Any]]:
    """What its account may read in the cluster that it runs in. BfinfraError where the site has no such
    cluster.
    """
    found, cluster = app.privileges(site, [Use.PLAN]), Key.parse(args.in_cluster)
    if cluster not in privileges.clusters(found):
        there = ", ".join(map(str, privileges.clusters(found))) or "none"
        raise BfinfraError(
            Problem(f"the site has no cluster {cluster}", "--in-cluster", f"there is: {there}")
        )
    return render.bound(check, privileges.manifests(found, check.name, cluster), args.namespace or "default")


def no_keyring(site: Site, *, commands: bool = False) -> None:
    """References that lead nowhere where nobody is logged in, or in a container. BfinfraError with all of
    them.
    """
    found: list[Problem] = []
    ways = ("keyring", "command") if commands else ("keyring",)
    walk(
        site,
        lambda at, value: (
            found.append(
                Problem(
                    f"{at[0] or 'the site'}: {at[1]} can't be read there",
                    site.place(*at) or "",
                    f"a {value.way} is of this machine and its user",
                    "write {env: NAME} or {file: path}",
                )
            )
            if isinstance(value, Secret) and value.way in ways
            else None
        ),
    )
    if found:
        raise BfinfraError(*found)


def _write(folder: Path, files: dict[str, str]) -> None:
    try:
        for name, text in files.items():
            (folder / name).write_text(text)
    except OSError as error:
        raise BfinfraError(Problem("the units can't be written", str(folder), error.strerror or "")) from None
