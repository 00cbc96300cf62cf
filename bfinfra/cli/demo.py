"""demo: apply a whole site to the embedded sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.cli import arguments, output

if TYPE_CHECKING:
    import argparse

    from bfinfra.cli.screen import Screen

SITE = "singapore-poc.yaml"
FILES = (SITE, "manifests/pytorch-mock-bitfusion.yaml", f"worlds/{SITE}")


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its arguments."""
    parser = arguments.verb(verbs, "demo", about, run)
    parser.add_argument(
        "folder",
        nargs="?",
        default="bfinfra-demo",
        metavar="FOLDER",
        help="where to write the site; default: bfinfra-demo",
    )


def run(args: argparse.Namespace) -> int:
    """Write the files that are missing, then apply them; returns the exit code of apply."""
    from bfinfra.cli.parser import build
    from bfinfra.cli.screen import Screen
    from bfinfra.formats.shell import line
    from bfinfra.formats.visible import visible

    folder = Path(args.folder)
    _write(folder, Screen.of(args))
    words = ["apply", str(folder / SITE), "--sandbox", "--yes", "--output", args.output]
    inner = build(words).parse_args([*words, *(["--no-color"] if args.no_color else [])])
    inner.stop = args.stop
    code = int(inner.run(inner))
    if code == 0 and args.output == "text":
        site = folder / SITE
        drift, plan = (line(("bfinfra", verb, site, "--sandbox")) for verb in ("drift", "plan"))
        output.text(f"\nNext: {drift}; change {visible(site)}; {plan}")
    return code


def _write(folder: Path, screen: Screen) -> None:
    """Write the files that are missing. Raises BfinfraError."""
    from bfinfra.model.files import create, make_folder, reported

    for name in FILES:
        file = folder / name
        if file.exists():
            continue
        with reported(file):
            make_folder(file.parent)
        create(file, _packaged(name).read_bytes())
        screen.say(f"wrote {file}")


def _packaged(name: str) -> Path:
    """A file of the demo: beside the installed package, or in specs/ of a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "sandbox" / name if name.startswith("worlds/") else package / "demo" / name
    return installed if installed.exists() else package.parent / "specs" / name
