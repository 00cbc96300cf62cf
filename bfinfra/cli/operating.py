"""operator: Sites in a Kubernetes cluster, kept as they are described."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bfinfra.cli import where
from bfinfra.cli.screen import Screen
from bfinfra.model.errors import BfinfraError, Problem

if TYPE_CHECKING:
    import argparse

    from bfinfra.model.site import Site


def operate(args: argparse.Namespace) -> int:
    """The operator itself, until it is stopped."""
    try:
        from bfinfra.operator.running import How, run
    except ModuleNotFoundError as error:
        raise BfinfraError(
            Problem(
                "the operator's libraries are not installed",
                why=f"there is no {error.name}",
                next="pip install 'bfinfra[operator]'",
            )
        ) from None
    from bfinfra.operator.job import Mould

    address, _, port = args.metrics.rpartition(":")
    namespace, _, name = args.lease.rpartition("/")
    if not port.isdecimal() or not name:
        raise BfinfraError(Problem("expected --metrics ADDRESS:PORT and --lease NAMESPACE/NAME"))
    how = How(
        Mould(args.image, tuple(args.pull)),
        (address.strip("[]"), int(port)),
        tuple(args.namespaces),
        args.jobs,
        (namespace, name),
        args.kubeconfig or "",
    )
    gc.set_threshold(700, 10, 10)  # Python's own: this one lives for months
    gc.enable()
    args.stop.serves = True
    args.stop.begin_writing()
    return run(how, args.stop.flag)


def crd(_: argparse.Namespace) -> int:
    """The manifest that teaches a cluster what a Site is."""
    from bfinfra.render.schedule import manifest

    print(manifest([_definition()]))
    return 0


def site(args: argparse.Namespace) -> int:
    """A site's files as a Site, and on stderr how its Secret is made."""
    from bfinfra.operator.manifest import called, manifests
    from bfinfra.operator.written import written
    from bfinfra.render.schedule import manifest

    loaded, _ = where.site(args)
    given, commands, left = _given(loaded)
    language = _definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"][
        "properties"
    ]["site"]
    name = called(loaded.name)
    print(
        manifest(
            manifests(
                name,
                written([Path(each) for each in args.sites], language),
                given,
                namespace=args.namespace or "",
                interval=args.every,
            )
        )
    )
    if left:
        Screen.of(args).say(left)
    if commands:
        into = f" --namespace {args.namespace}" if args.namespace else ""
        Screen.of(args).say(
            f"its Secret is yours to make:\n  kubectl create secret generic {name}{into} {' '.join(commands)}"
        )
    return 0


def job(args: argparse.Namespace) -> int:
    """One look at one site. Ends with 0 once the result is written, whatever it is: a Job that is begun again
    finds nothing else.
    """
    from bfinfra.operator.approval import Approval
    from bfinfra.operator.work import Order, work

    args.stop.begin_writing()
    order = Order(
        Approval(args.approval),
        args.approved,
        destroy=args.destroy,
        known=tuple(args.known),
        stood=args.stood,
        stop=args.stop.flag,
    )
    found = work(Path(args.site), order)
    Path(args.result).write_text(found.text())
    print(f"{found.outcome}{f': {found.why}' if found.why else ''}")
    return 0


def _definition() -> dict[str, Any]:
    from bfinfra.operator.crd import definition
    from bfinfra.spec.schema import schema

    return definition(schema())


def _given(loaded: Site) -> tuple[Any, list[str], str]:
    """What the site names outside of itself, the words that make the Secret, and what is left out.
    BfinfraError for what a Job can't have.
    """
    from bfinfra.cli.carrying import below, carried
    from bfinfra.cli.scheduling import no_keyring, variables
    from bfinfra.operator.manifest import Given, unfit

    no_keyring(loaded, commands=True)
    base = Path(next(iter(loaded.files))).absolute().parent
    found = carried(loaded, base, applies=True)
    secrets = found.secrets
    own = {str(below(path, base)) for path in loaded.files}
    plain = {path: content for path, content in found.files.items() if path not in own}
    if bad := [path for path in (*plain, *secrets) if unfit(path)]:
        raise BfinfraError(
            Problem(
                f"a Site can't carry {', '.join(bad)}",
                str(base),
                "letters, digits, dots and dashes may be in a path, and site.yaml is the site itself",
                "give it another name",
            )
        )
    env = variables(loaded)
    words = [
        *(f'--from-literal={name}="${name}"' for name in env),
        *(f"--from-file={key}={base / path}" for path, key in secrets.items()),
    ]
    return Given(env, secrets, plain), words, found.words()
