"""The whole command line, gathered from its verbs: each adds its own arguments."""

from __future__ import annotations

import argparse
from importlib import import_module

from bfinfra import __version__
from bfinfra.cli.arguments import Parser, common

VERBS = (
    "validate",
    "plan",
    "drift",
    "trust",
    "history",
    "graph",
    "doctor",
    "health",
    "privileges",
    "kubeconfig",
    "apply",
    "destroy",
    "adopt",
    "token",
    "kinds",
    "schema",
    "ova",
    "lint",
    "completion",
    "schedule",
    "operator",
    "sandbox",
    "explain",
    "version",
    "help",
)
"""In the order of --help; each is a module beside this one."""
VERSION = "--version"
EXITS = (
    "exit codes: 0 done; 1 error; 2 drift, or changes with plan --detailed-exitcode; 3 still waiting; "
    "130 and 143 stopped by a signal\n"
    "environment: NO_COLOR, BFINFRA_TRACEBACK=1, BFINFRA_/GOVC_/VSPHERE_/VMWARE_ names for credentials, "
    "XDG folders"
)


def build(first: str = "") -> Parser:
    """The command line, as far as it takes to read one that begins with this word: a verb's module is
    imported where that verb is typed, or where it takes all of them.
    """
    parser = Parser(
        prog="bfinfra",
        description="One declarative file for GPU sites on vSphere and Tanzu.",
        epilog=EXITS,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(VERSION, action="version", version=f"bfinfra {__version__}")
    common(parser, first=True)
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True, parser_class=Parser)
    for name in () if first == VERSION else (first,) if first in VERBS else VERBS:
        import_module(f"bfinfra.cli.{name}").add(verbs)
    return parser
