"""The whole command line, gathered from the commands: each adds its own arguments."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module

from bfinfra import __version__
from bfinfra.cli.arguments import Parser, common

VERBS = {
    "demo": "write a whole site into a folder and apply it to the embedded sandbox",
    "init": "write a new site with commented examples, or with --from one that describes a vCenter's objects",
    "validate": "check a site without a network",
    "fmt": "lay out a site's files in the canonical way; keeps comments; ends with 2 if --check finds a "
    "file that would change",
    "render": "print the site as one YAML document, with overlays merged and values filled in; with -v the "
    "origin of each value",
    "plan": "read the live state and show what apply would do; never writes",
    "show": "show a saved plan; contacts no server",
    "get": "list the site's resources as they are on the servers; never writes",
    "state": "print what of the site exists; there is no state file, so the servers are asked; never writes",
    "drift": "compare the live state with the site and show who changed what; never writes to a server; ends "
    "with 2 on drift",
    "watch": "like drift, but keeps running and reports drift when it happens; never writes to a server; "
    "ends like drift on a signal",
    "trust": "show the certificates of a site's servers, or of one server, and the line that would trust "
    "each; writes nothing; ends with 1 where one is not trusted",
    "history": "show what was applied from this machine",
    "graph": "show the order of the resources",
    "doctor": "find whatever would stop an apply, and show what to do; never writes",
    "health": "show what flexdirect health reports on each machine; never writes; ends with 1 where one is "
    "worse than the site accepts",
    "privileges": "show which rights an account needs for this site; contacts no server",
    "kubeconfig": "print a kubeconfig for one of the site's clusters",
    "apply": "create, change and delete until the servers match the site",
    "destroy": "delete everything that this site made",
    "import": "describe one existing object in the site's file, whose comments are kept",
    "adopt": "put the site's mark on an object that exists already",
    "token": "work with Bitfusion tokens",
    "kinds": "list the kinds of resources, or the fields of one",
    "schema": "print the JSON Schema of a site, or of a sandbox world, for editors",
    "ova": "inspect an OVA",
    "lint": "show what the Bitfusion device plug-in will refuse, skip or break in pods; ends with 1 on "
    "errors",
    "completion": "print a completion script for a shell",
    "schedule": "print the configuration of scheduled drift checks; installs nothing",
    "operator": "apply the Site objects of a Kubernetes cluster",
    "sandbox": "the embedded sandbox that --sandbox uses",
    "explain": "show what a kind of resource is, or one of its fields",
    "version": "show the versions of bfinfra, Python and the libraries in use",
    "help": "show the help of bfinfra, or of one command",
}
"""In the order of --help, each with its line there. Each is a module in this folder."""
MODULES = {"import": "import_object"}
"""Commands whose names can't be a module's."""
VERSION = "--version"
EXITS = (
    "exit codes: 0 done; 1 error; 2 drift, changes with plan --detailed-exitcode, or with fmt --check; "
    "3 still waiting; 130 and 143 stopped by a signal\n"
    "environment: NO_COLOR, BFINFRA_TRACEBACK=1, BFINFRA_/GOVC_/VSPHERE_/VMWARE_ names for credentials, "
    "XDG folders"
)


def build(words: Sequence[str] | None = None) -> Parser:
    """The parser of the whole command line, or of the part that these words need. The modules of other
    commands are not imported; --help shows only their line.
    """
    typed = VERBS if words is None else {word for word in words if word in VERBS}
    first = words[0] if words else ""
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
        if name in typed:
            import_module(f"bfinfra.cli.{MODULES.get(name, name)}").add(verbs, VERBS[name])
        else:
            verbs.add_parser(name, help=VERBS[name], add_help=False)
    return parser
