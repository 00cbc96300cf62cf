"""Arguments that several commands share. Imports only argparse, so that `bfinfra --help` is instant."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeAlias

from bfinfra.cli import output

OUTPUTS = ("text", "json", "jsonl", "markdown")
SITES = "a site's files or folders; - is standard input; default: site.yaml"
DEFAULT_SITES = ("site.yaml",)
"""The site's files if the user names none."""
Run = Callable[[argparse.Namespace], int]


class Parser(argparse.ArgumentParser):
    """An argparse parser that ends with 1 on wrong arguments: 2 means drift or changes."""

    def error(self, message: str) -> NoReturn:
        """Print the error and the usage; exit with 1."""
        self.print_usage()
        self.exit(1, f"{self.prog}: error: {message}\n")

    def refuse(self, left: Sequence[str]) -> NoReturn:
        """Exit for unknown arguments. The message names bfinfra's equivalent, or its most similar option."""
        from bfinfra.cli.habits import option
        from bfinfra.model.suggest import close

        wrong = next((each for each in left if each.startswith("-")), left[0])
        word = wrong.partition("=")[0]
        near = option(word, self.prog.partition(" ")[2]) or close(word, self._option_string_actions)
        self.error(f"there is no {wrong!r};{f' {near};' if near else ''} see {self.prog} --help")

    def _parse_optional(self, arg_string: str) -> tuple[argparse.Action | None, str, str | None] | None:
        """Also accept --word as -word, as users of Terraform and govc type it. Their options that bfinfra
        lacks stay whole: argparse would read -var as -v.
        """
        word = arg_string.partition("=")[0]
        if word[:1] == "-" and (f"-{word}" in self._option_string_actions or _is_foreign(word)):
            arg_string = f"-{arg_string}"
        return super()._parse_optional(arg_string)

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            from bfinfra.cli.habits import command
            from bfinfra.model.suggest import nearest

            words = f"{self.prog} {value}".partition(" ")[2]
            if action.dest in {"verb", "what"} and (here := command(words)):
                self.exit(1, f"{self.prog}: error: there is no {str(value)!r}; {here}\n")
            near = nearest(str(value), map(str, action.choices))
            raise argparse.ArgumentError(
                action, f"there is no {str(value)!r}; {near}; see {self.prog} --help"
            )

    def _print_message(self, message: str, file: object = None) -> None:
        """Print a help or an error, which quotes what was typed."""
        if message:
            output.text(message, None if file is sys.stdout else sys.stderr, end="")

    def print_usage(self, file: object = None) -> None:
        """Print the usage to stderr, as errors."""
        super().print_usage(sys.stderr)


def _is_foreign(word: str) -> bool:
    if word.startswith("--") or len(word) < len("-ab"):
        return False
    from bfinfra.cli.habits import OPTIONS

    return any(word == each.rpartition(" ")[2] for each in OPTIONS)


Verbs: TypeAlias = "argparse._SubParsersAction[Parser]"


def verb(
    verbs: Verbs, name: str, about: str, run: Run | None = None, *, forms: tuple[str, ...] = ()
) -> Parser:
    """The parser of a command. `run`: its function, None if it has subcommands; `forms`: further values of
    --output.
    """
    parser = verbs.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        allow_abbrev=False,
        parents=[_everywhere(forms)],
    )
    parser.set_defaults(run=run, parser=parser)
    return parser


def inner(parser: Parser, names: str) -> Verbs:
    """The subcommands of a command; `names` is their name in the usage."""
    return parser.add_subparsers(dest="what", metavar=names, required=True, parser_class=Parser)


def common(parser: Parser, *, first: bool = False, forms: tuple[str, ...] = ()) -> None:
    """Options accepted before and after the command. Only the first parser sets defaults."""

    def default(value: object) -> object:
        return value if first else argparse.SUPPRESS

    parser.add_argument(
        "-o",
        "--output",
        choices=(*OUTPUTS, *forms),
        default=default("text"),
        help=", ".join(("text (default), json, jsonl (one document a line), markdown", *forms)),
    )
    parser.add_argument(
        "--json",
        dest="output",
        action="store_const",
        const="json",
        default=argparse.SUPPRESS,
        help="the same as --output json",
    )
    parser.add_argument(
        "--no-color", action="store_true", default=default(False), help="no colours; the same as NO_COLOR"
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", default=default(False), help="also list what is up to date"
    )


def address(text: str) -> tuple[str, int]:
    """A host and a port, of ADDRESS:PORT."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not ADDRESS:PORT, such as 127.0.0.1:9464")
    return host.strip("[]"), int(port)


def sites(parser: Parser, about: str = SITES) -> Parser:
    """Add a site's files to the parser, and return it."""
    parser.add_argument("sites", nargs="*", default=DEFAULT_SITES, metavar="SITE", help=about)
    return variant(parser)


def variant(parser: Parser) -> Parser:
    """Add overlays and values to the parser, and return it."""
    parser.add_argument(
        "--overlay",
        action="append",
        default=[],
        metavar="FILE",
        help="override the site's fields by those of this file; null removes a field or a resource; repeat",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        type=name_and_value,
        metavar="NAME=VALUE",
        help="give a value that the site declares under values:; repeat",
    )
    parser.add_argument(
        "--values",
        action="append",
        default=[],
        metavar="FILE",
        help="a YAML file of such values, NAME: VALUE; --set overrides it; repeat",
    )
    return parser


def site(parser: Parser, about: str = SITES) -> Parser:
    """Add a site's files, and the choice of its servers or the sandbox, to the parser, and return it."""
    sites(parser, about)
    parser.add_argument(
        "--sandbox",
        action="store_true",
        help="run on the embedded sandbox, which is started if it isn't running",
    )
    parser.add_argument(
        "--world",
        metavar="FILE",
        help="the file that describes the sandbox; default: in worlds/ beside the site",
    )
    return parser


def world(parser: Parser) -> Parser:
    """Add what names a sandbox to the parser, and return it."""
    parser.add_argument(
        "sites", nargs="*", metavar="SITE", help="the site, or a sandbox's name as status shows it"
    )
    parser.add_argument(
        "--world",
        metavar="FILE",
        help="the file that describes the sandbox; default: in worlds/ beside the site",
    )
    return parser


def execution(parser: Parser, about: str = SITES) -> Parser:
    """Add the options of a run that writes to the parser, and return it."""
    site(parser, about)
    parser.add_argument(
        "-y",
        "--yes",
        action="store_true",
        help="don't ask; apply still needs --allow-… to delete or disrupt; "
        "destroy deletes all that the site made, and restarts hosts whose settings it resets",
    )
    parser.add_argument("--auto-approve", dest="yes", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--parallelism", type=positive, default=10, metavar="N", help="resources at a time (default 10)"
    )
    parser.add_argument(
        "--deadline",
        type=seconds,
        metavar="TIME",
        help="how long each step of a resource, and the wait after it, may take, such as 30m; "
        "default: the limits of its kind and of each task",
    )
    parser.add_argument(
        "--html", metavar="FILE", help="also write what was done as one self-contained HTML page"
    )
    return parser


def targets(parser: Parser) -> Parser:
    """Add --target to the parser, and return it."""
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="ADDRESS",
        help="only this resource and what must be done before it: what it needs, or to delete it what needs "
        "it; repeat",
    )
    return parser


def allowances(parser: Parser) -> Parser:
    """Add --allow-delete and --allow-disruption to the parser, and return it."""
    parser.add_argument(
        "--allow-delete",
        action="append",
        default=[],
        metavar="ADDRESS|all",
        help="delete or replace this address without asking, or all; repeat or separate by commas",
    )
    parser.add_argument(
        "--allow-disruption",
        action="append",
        default=[],
        metavar="ADDRESS|all",
        help="restart, reboot or power-cycle this address without asking, or all; repeat or separate by "
        "commas",
    )
    return parser


def in_cluster(parser: Parser) -> Parser:
    """Add the options of a service that runs in a cluster: its metrics' address, and a kubeconfig."""
    parser.add_argument(
        "--metrics",
        type=address,
        default="0.0.0.0:8080",
        metavar="ADDRESS:PORT",
        help="address of the metrics for Prometheus (default 0.0.0.0:8080)",
    )
    parser.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig to use outside of the cluster")
    return parser


def name_and_value(text: str) -> tuple[str, str]:
    """`NAME=VALUE` as a pair."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, such as workers=3, not {text!r}")
    return name, value


def positive(text: str) -> int:
    """A number, at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of 1 or more, not {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """A time such as 30m, in seconds; more than none."""
    number, unit = text[:-1], text[-1:]
    if text.isdecimal() and int(text):
        raise argparse.ArgumentTypeError(f"{text} has no unit: write {text}s, {text}m or {text}h")
    if not number.isdecimal() or unit not in "smh" or not int(number):
        raise argparse.ArgumentTypeError(f"expected a time such as 90s, 30m or 2h, not {text!r}")
    return float(int(number) * {"s": 1, "m": 60, "h": 3600}[unit])


@functools.cache
def _everywhere(forms: tuple[str, ...]) -> Parser:
    """The options of every command, made once for all of them."""
    parser = Parser(add_help=False)
    common(parser, forms=forms)
    return parser
