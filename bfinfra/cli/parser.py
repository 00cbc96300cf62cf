"""The arguments. Imports nothing but argparse: `bfinfra --help` is instant."""

from __future__ import annotations

import argparse
import functools
from typing import NoReturn

from bfinfra import __version__

OUTPUTS = ("text", "json", "jsonl", "markdown")
USES = ("plan", "apply", "destroy")
SHELLS = ("bash", "zsh", "fish")
PLUGIN_VERSIONS = ("0.1", "0.2", "0.3", "0.4")
SITES = "a site's files or folders"
EXITS = (
    "exit codes: 0 done; 1 error; 2 drift, or changes with plan --detailed-exitcode; 3 still waiting; "
    "130 and 143 stopped by a signal\n"
    "environment: NO_COLOR, BFINFRA_TRACEBACK=1, BFINFRA_/GOVC_/VSPHERE_/VMWARE_ names for credentials, "
    "XDG folders"
)


class Parser(argparse.ArgumentParser):
    """argparse, but wrong arguments end with 1: 2 means drift or changes."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and how the command is used."""
        self.print_usage()
        self.exit(1, f"{self.prog}: error: {message}\n")

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            from bfinfra.model.suggest import nearest

            raise argparse.ArgumentError(
                action,
                (
                    f"there is no {str(value)!r}; {nearest(str(value), map(str, action.choices))}; see "
                    f"{self.prog} --help"
                ),
            )

    def print_usage(self, file: object = None) -> None:
        """Always where errors go."""
        import sys

        super().print_usage(sys.stderr)


Verbs = "argparse._SubParsersAction[Parser]"


def build() -> Parser:
    """The whole command line."""
    parser = Parser(
        prog="bfinfra",
        description="One declarative file for GPU sites on vSphere and Tanzu.",
        epilog=EXITS,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"bfinfra {__version__}")
    _common(parser, first=True)
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True, parser_class=Parser)
    _reading(verbs)
    _writing(verbs)
    _knowing(verbs)
    _schedule(verbs)
    _operator(verbs)
    _sandbox(verbs)
    return parser


def _reading(verbs: argparse._SubParsersAction[Parser]) -> None:
    _site(_verb(verbs, "validate", "reading", "say everything that can be said without a network"))
    plan = _site(
        _verb(verbs, "plan", "reading", "look at the world and say what apply would do; never writes")
    )
    plan.add_argument(
        "--out", metavar="FILE", help="save the plan; apply FILE then does exactly this or nothing"
    )
    plan.add_argument("--destroy", action="store_true", help="what destroy would do")
    plan.add_argument("--detailed-exitcode", action="store_true", help="end with 2 where there are changes")
    drift = _site(
        _verb(
            verbs,
            "drift",
            "drifting",
            (
                "say what no longer agrees with the site and who moved it, the world or the file; never "
                "writes to a server; ends with 2 on drift"
            ),
        )
    )
    drift.add_argument(
        "--changes-only",
        action="store_true",
        help="report only drift that started or ended since the last check on this machine",
    )
    drift.add_argument("--news", dest="changes_only", action="store_true", help=argparse.SUPPRESS)
    drift.add_argument("--forget", action="store_true", help="don't keep what was seen for the next check")
    drift.add_argument("--junit", metavar="FILE", help="also write a JUnit report, a test case a resource")
    drift.add_argument(
        "--html",
        metavar="FILE",
        help="also write one page with a picture of the site, which needs nothing else to be shown",
    )
    _site(
        _verb(
            verbs,
            "trust",
            "trusting",
            "show the certificates of a site's servers, or of one server, and the line that would trust "
            "each; "
            "writes nothing; ends with 1 where one is not trusted",
        ),
        "a site's files or folders, or one server as host or host:port",
    )
    _sites(
        _verb(verbs, "history", "reading", "say what was applied from this machine"),
        "a site's files, or its name",
    )
    graph = _sites(_verb(verbs, "graph", "reading", "show what waits for what"), SITES)
    graph.add_argument("--dot", action="store_true", help="for Graphviz")
    _site(
        _verb(
            verbs,
            "doctor",
            "rights",
            "look for whatever would stop an apply, and say what to do; never writes",
        )
    )
    _site(
        _verb(
            verbs,
            "health",
            "health",
            (
                "say what flexdirect health says on each machine; never writes; ends with 1 where one is "
                "worse than the site accepts"
            ),
        )
    )
    privileges = _site(
        _verb(verbs, "privileges", "rights", "say which rights an account needs for this site; asks nobody")
    )
    privileges.add_argument(
        "--for",
        dest="uses",
        action="append",
        choices=USES,
        help="plan, apply (creates and changes) or destroy (deletes and replaces); repeat; default all",
    )
    privileges.add_argument(
        "--as",
        dest="form",
        choices=("govc", "rbac"),
        help="govc: commands that give the rights on vCenter; rbac: a manifest that kubectl applies",
    )
    privileges.add_argument("--account", metavar="NAME", help="who shall have them; else vcenter.username")
    privileges.add_argument(
        "--cluster", metavar="ADDRESS", help="whose manifest, where the site has several clusters"
    )
    kubeconfig = _site(
        _verb(verbs, "kubeconfig", "reading", "print a kubeconfig for one of the site's clusters")
    )
    kubeconfig.add_argument("address", metavar="ADDRESS", help="kind/name, such as tanzu_cluster/cluster-01")
    kubeconfig.add_argument(
        "--out", metavar="FILE", help="write it there, readable by you only, instead of printing it"
    )


def _writing(verbs: argparse._SubParsersAction[Parser]) -> None:
    apply = _run(
        _verb(verbs, "apply", "writing", "make the world as the site says"),
        "a site's files or folders, or one saved plan",
    )
    destroy = _run(_verb(verbs, "destroy", "writing", "delete everything that this site made"), SITES)
    adopt = _run(_verb(verbs, "adopt", "writing", "take over an object that stands there already"), SITES)
    adopt.add_argument("address", metavar="ADDRESS", help="kind/name, such as supervisor_namespace/cnasg")
    inner = _verb(verbs, "token", "writing", "work with Bitfusion tokens").add_subparsers(
        dest="what", metavar="rotate", required=True, parser_class=Parser
    )
    rotate = _run(
        _verb(
            inner,
            "rotate",
            "writing",
            (
                "put the token that its source has now wherever it is held: kube-system first, then every "
                "namespace with a copy"
            ),
        ),
        "a site's files or folders, then the token's name where it uses several",
    )
    rotate.add_argument(
        "--restart", action="store_true", help="also start workloads anew that hold the token before"
    )
    for verb in (apply, destroy, adopt):
        verb.add_argument(
            "--allow-delete",
            action="append",
            default=[],
            metavar="ADDRESS|all",
            help="delete or replace this without asking; repeat or separate by commas",
        )
        verb.add_argument(
            "--allow-disruption",
            action="append",
            default=[],
            metavar="ADDRESS|all",
            help="reboot or power-cycle this without asking; repeat or separate by commas",
        )


def _knowing(verbs: argparse._SubParsersAction[Parser]) -> None:
    kinds = _verb(verbs, "kinds", "knowing", "list the kinds of resources, or the fields of one")
    kinds.add_argument("kind", nargs="?", metavar="KIND")
    schema = _verb(verbs, "schema", "knowing", "print the JSON Schema of a site, for editors")
    schema.add_argument("--out", metavar="FILE", help="write it there")
    inner = _verb(verbs, "ova", "knowing", "look into an OVA").add_subparsers(
        dest="what", metavar="inspect", required=True, parser_class=Parser
    )
    inspect = _verb(
        inner, "inspect", "knowing", "its product, signature, properties, networks and disks", run="ova"
    )
    inspect.add_argument("file", metavar="FILE|URL")
    inspect.add_argument("--verify", action="store_true", help="read it whole and check every digest")
    lint = _verb(
        verbs,
        "lint",
        "knowing",
        "say what the Bitfusion device plug-in will refuse, skip or spoil in pods; ends with 1 on errors",
    )
    lint.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="manifests of pods, or of what makes them; - reads standard input",
    )
    lint.add_argument(
        "--plugin-version",
        choices=PLUGIN_VERSIONS,
        default=PLUGIN_VERSIONS[-1],
        help=f"the plug-in's release (default {PLUGIN_VERSIONS[-1]})",
    )
    lint.add_argument(
        "--total-gpu-memory",
        type=_positive,
        default=0,
        metavar="MB",
        help="the plug-in's total_gpu_memory, which gpu-memory is held against",
    )
    completion = _verb(verbs, "completion", "knowing", "print a completion script for a shell")
    completion.add_argument("shell", choices=SHELLS)


def _schedule(verbs: argparse._SubParsersAction[Parser]) -> None:
    inner = _verb(
        verbs, "schedule", "scheduling", "print what runs drift checks by itself; installs nothing"
    ).add_subparsers(dest="what", metavar="systemd|cron|kubernetes", required=True, parser_class=Parser)
    systemd = _verb(
        inner, "systemd", "scheduling", "a service and its timer; a check that finds drift fails the service"
    )
    systemd.add_argument(
        "--user", metavar="NAME", help="who runs it; else a user that exists only while it runs"
    )
    systemd.add_argument("--out", metavar="FOLDER", help="write the units there, such as /etc/systemd/system")
    cron = _verb(inner, "cron", "scheduling", "a line of a crontab, which mails what is new")
    kubernetes = _verb(
        inner, "kubernetes", "scheduling", "a CronJob with its account, its rights and the site's files"
    )
    kubernetes.add_argument(
        "--image", metavar="IMAGE", required=True, help="a container image with bfinfra in it"
    )
    kubernetes.add_argument("--namespace", metavar="NAME", help="where it shall run")
    kubernetes.add_argument(
        "--claim", metavar="NAME", help="a volume claim for what checks remember; else each is the first"
    )
    kubernetes.add_argument(
        "--in-cluster",
        metavar="ADDRESS",
        help="the cluster of the site that it runs in: its account may read there what a check reads",
    )
    for verb in (systemd, cron, kubernetes):
        verb.add_argument("--every", metavar="TIME", default="1h", help="15m, 1h, 6h, 1d, … (default 1h)")
        _site(verb)


def _operator(verbs: argparse._SubParsersAction[Parser]) -> None:
    inner = _verb(
        verbs, "operator", "operating", "keep Site objects of a Kubernetes cluster as they are described"
    ).add_subparsers(dest="what", metavar="run|crd|site|job", required=True, parser_class=Parser)
    run = _verb(
        inner,
        "run",
        "operating",
        "run the operator: a Job for each look at each Site, what it found in the Site's status",
        run="operate",
    )
    run.add_argument(
        "--image",
        metavar="IMAGE",
        default="",
        help="the Jobs' container image; else that of the pod that this runs in",
    )
    run.add_argument(
        "--namespace",
        dest="namespaces",
        action="append",
        default=[],
        metavar="NAME",
        help="keep the Sites of this namespace; repeat; default all",
    )
    run.add_argument("--jobs", type=_positive, default=20, metavar="N", help="Jobs at a time (default 20)")
    run.add_argument(
        "--pull-secret",
        dest="pull",
        action="append",
        default=[],
        metavar="NAME",
        help="an image pull Secret in the Sites' namespaces; repeat",
    )
    run.add_argument(
        "--lease",
        default="/bfinfra-operator",
        metavar="NAMESPACE/NAME",
        help="the Lease of whoever leads (default bfinfra-operator in the pod's own namespace)",
    )
    run.add_argument(
        "--metrics",
        default="0.0.0.0:8080",
        metavar="ADDRESS:PORT",
        help="where Prometheus reads the figures (default 0.0.0.0:8080)",
    )
    run.add_argument("--kubeconfig", metavar="FILE", help="outside of the cluster: how to get in")
    site = _site(
        _verb(inner, "site", "operating", "print a site's files as a Site object, and how its Secret is made")
    )
    site.add_argument(
        "--every", metavar="TIME", default="1h", help="how often it is looked at: 15m, 1h, 1d (default 1h)"
    )
    site.add_argument("--namespace", metavar="NAME", help="where it shall be")
    job = _verb(
        inner,
        "job",
        "operating",
        (
            "what a Job of the operator does: look at one site, apply what may be applied, leave the result "
            "in a file"
        ),
    )
    job.add_argument("--site", metavar="FILE", required=True, help="the site")
    job.add_argument(
        "--result",
        metavar="FILE",
        required=True,
        help="where the result goes: the container's termination message",
    )
    job.add_argument(
        "--approval",
        choices=("Always", "Disruptive", "Never"),
        default="Disruptive",
        help="which plans wait for approval (default Disruptive)",
    )
    job.add_argument("--approved", metavar="DIGEST", default="", help="the plan that was approved")
    job.add_argument("--destroy", action="store_true", help="delete what the site made")
    job.add_argument(
        "--stood",
        action="store_true",
        help="everything was there when it was last looked at: what is missing has vanished",
    )
    job.add_argument(
        "--known", metavar="IDENTITY", action="append", default=[], help="drift that was found before; repeat"
    )
    _verb(inner, "crd", "operating", "print the custom resource definition of a Site")


def _sandbox(verbs: argparse._SubParsersAction[Parser]) -> None:
    inner = _verb(verbs, "sandbox", "sandboxes", "the embedded world that --sandbox uses").add_subparsers(
        dest="what", metavar="start|stop|reset|status|faults", required=True, parser_class=Parser
    )
    for name, about in (
        ("start", "start it, or find it running"),
        ("stop", "stop it; its state stays"),
        ("reset", "set it back to its beginning"),
        ("status", "where its servers listen"),
    ):
        _world(_verb(inner, name, "sandboxes", about, run=name))
    faults = _world(_verb(inner, "faults", "sandboxes", "make its servers misbehave", run="faults"))
    faults.add_argument(
        "--rules", metavar="FILE", help="faults as a YAML or JSON list; - reads them from standard input"
    )
    faults.add_argument("--clear", action="store_true", help="no more faults")


def _verb(
    verbs: argparse._SubParsersAction[Parser], name: str, module: str, about: str, *, run: str = ""
) -> Parser:
    parser = verbs.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        allow_abbrev=False,
        parents=[_everywhere()],
    )
    parser.set_defaults(module=module, run=run or name)
    return parser


@functools.cache
def _everywhere() -> Parser:
    """What each command takes, made once for all of them."""
    parser = Parser(add_help=False)
    _common(parser)
    return parser


def _common(parser: Parser, *, first: bool = False) -> None:
    """Options that stand before or after the command; only the first parser sets what isn't given."""

    def default(value: object) -> object:
        return value if first else argparse.SUPPRESS

    parser.add_argument(
        "--output",
        choices=OUTPUTS,
        default=default("text"),
        help="text (default), json, jsonl (one document a line), markdown",
    )
    parser.add_argument(
        "--no-color", action="store_true", default=default(False), help="no colours; the same as NO_COLOR"
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", default=default(False), help="also what is as wanted"
    )


def _sites(parser: Parser, about: str) -> Parser:
    parser.add_argument("sites", nargs="+", metavar="SITE", help=about)
    return parser


def _site(parser: Parser, about: str = SITES) -> Parser:
    _sites(parser, about)
    parser.add_argument(
        "--sandbox", action="store_true", help="in the embedded world, which is started where it doesn't run"
    )
    parser.add_argument("--world", metavar="FILE", help="the sandbox's world; else worlds/ beside the site")
    return parser


def _world(parser: Parser) -> Parser:
    parser.add_argument(
        "sites",
        nargs="*",
        metavar="SITE",
        help="the site whose world it is, or a sandbox's own name as status shows it",
    )
    parser.add_argument("--world", metavar="FILE", help="the world; else worlds/ beside the site")
    return parser


def _run(parser: Parser, about: str) -> Parser:
    _site(parser, about)
    parser.add_argument(
        "--yes",
        action="store_true",
        help="don't ask: apply still wants --allow-… for what deletes or disrupts, "
        "destroy deletes all that the site made and restarts hosts whose settings it puts back",
    )
    parser.add_argument(
        "--parallelism", type=_positive, default=10, metavar="N", help="resources at a time (default 10)"
    )
    parser.add_argument(
        "--deadline",
        type=_time,
        metavar="TIME",
        help="how long to wait for each resource, such as 30m; else its kind's own",
    )
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, not {text!r}")
    return int(text)


def _time(text: str) -> float:
    number, unit = (text[:-1], text[-1]) if text[-1:] in "smh" else (text, "s")
    if not number.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a time such as 90s, 30m or 2h, not {text!r}")
    return float(int(number) * {"s": 1, "m": 60, "h": 3600}[unit])
