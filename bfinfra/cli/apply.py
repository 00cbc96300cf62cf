"""apply: run the plan of a site, or a saved plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli import arguments, context

if TYPE_CHECKING:
    import argparse


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.verb(verbs, "apply", about, run)
    arguments.execution(parser, "a site's files or folders, or one saved plan")
    arguments.targets(arguments.allowances(parser))
    parser.add_argument(
        "--site",
        metavar="FOLDER",
        help="for a saved plan: the site's folder; default: the folder where the plan was made",
    )


def run(args: argparse.Namespace) -> int:
    """Returns 0; 1 on errors; 3 if something is not ready yet."""
    from bfinfra.app import saved
    from bfinfra.cli.execute import execute
    from bfinfra.model.errors import BfinfraError, Problem

    if any(saved.is_plan(Path(path)) for path in args.sites):
        return _apply_plan(args)
    if args.site and all(Path(path).exists() for path in args.sites):
        raise BfinfraError(
            Problem(
                "--site needs a saved plan",
                args.site,
                "without a saved plan, name the site itself",
                "bfinfra apply SITE, or bfinfra apply PLANFILE --site FOLDER",
            )
        )
    return execute(args, targets=context.targets(args))


def _apply_plan(args: argparse.Namespace) -> int:
    from bfinfra.app import saved
    from bfinfra.cli.execute import execute
    from bfinfra.model.errors import BfinfraError, Problem

    if len(args.sites) > 1:
        raise BfinfraError(
            Problem("give a saved plan alone", ", ".join(args.sites), next="bfinfra apply PLANFILE")
        )
    own = {"--overlay": args.overlay, "--set": args.set, "--values": args.values, "--target": args.target}
    if given := [name for name, words in own.items() if words]:
        raise BfinfraError(
            Problem(
                f"{', '.join(given)} can't be given to a saved plan",
                args.sites[0],
                "it contains the options that it was made with",
                "plan again with other arguments: bfinfra plan SITE --out FILE",
            )
        )
    announced = saved.SavedPlan.read(Path(args.sites[0]))
    folder = Path(args.site) if args.site else None
    paths, variant = announced.at(folder.parent if folder and folder.is_file() else folder)
    if folder and folder.is_file() and folder.resolve() not in [each.resolve() for each in paths]:
        raise BfinfraError(
            Problem(
                f"the plan was not made from {folder}",
                args.sites[0],
                f"it was made from {', '.join(map(str, paths))}",
                "name the site's folder, or one of its files, with --site",
            )
        )
    args.sites = [str(path) for path in paths]
    args.overlay, args.values = variant.overlays, variant.value_files
    args.set = [(each.name, each.data) for each in variant.given]
    return execute(args, saved=announced, destroy=announced.destroy, targets=announced.targets)
