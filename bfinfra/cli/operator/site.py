"""operator site: print a site's files as a Site object."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context, output

if TYPE_CHECKING:
    import argparse

    from bfinfra.model.site import Site
    from bfinfra.operator.manifest import Given


def add(inner: arguments.Verbs) -> None:
    """Add the command and its arguments."""
    about = "print a site's files as a Site object, and the command that makes its Secret"
    parser = arguments.site(arguments.verb(inner, "site", about, run))
    parser.add_argument(
        "--every", metavar="TIME", default="1h", help="time between checks: 15m, 1h, 1d (default 1h)"
    )
    parser.add_argument("--watch", action="store_true", help="a watcher follows the site between the checks")
    parser.add_argument("--namespace", metavar="NAME", help="the namespace of the Site")


def run(args: argparse.Namespace) -> int:
    """Print the Site, and to stderr the command that makes its Secret; returns 0."""
    from bfinfra.cli.operator.crd import site_definition
    from bfinfra.cli.references import secret
    from bfinfra.cli.screen import Screen
    from bfinfra.operator.manifest import called, manifests
    from bfinfra.operator.written import written
    from bfinfra.render.schedule import manifest

    loaded, _ = context.load(args)
    given, files, left = _given(loaded)
    language = site_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
        "properties"
    ]["site"]
    name = called(loaded.name)
    output.exact(
        manifest(
            manifests(
                name,
                written(loaded, language),
                given,
                namespace=args.namespace or "",
                settings={"interval": args.every, **({"watch": True} if args.watch else {})},
            )
        )
    )
    if left:
        Screen.of(args).say(*left)
    if given.env or files:
        Screen.of(args).say(*secret(name, args.namespace or "", given.env, files))
    return 0


def _given(loaded: Site) -> tuple[Given, dict[str, Path], list[str]]:
    """The files for the Site, those for its Secret by their keys, and what is left out. Raises BfinfraError
    for what a Job can't have.
    """
    from bfinfra.cli.bundle import below, bundle
    from bfinfra.cli.references import no_keyring, variables
    from bfinfra.model.errors import BfinfraError, Problem
    from bfinfra.operator.manifest import Given, unfit

    no_keyring(loaded, commands=True)
    base = Path(next(iter(loaded.files))).absolute().parent
    found = bundle(loaded, base, loaded.files, applies=True)
    secrets = found.secrets
    own = {str(below(path, base)) for path in loaded.files}
    plain = {path: content for path, content in found.files.items() if path not in own}
    if bad := [path for path in (*plain, *secrets) if unfit(path)]:
        raise BfinfraError(
            Problem(
                f"a Site can't contain {', '.join(bad)}",
                str(base),
                "a path may have letters, digits, dots and dashes; site.yaml is the site itself",
                "give it another name",
            )
        )
    files = {key: base / path for path, key in secrets.items()}
    return Given(variables(loaded), secrets, plain), files, found.words()
