"""The site and the servers that a command works on: the live servers, or a sandbox that is found or
started.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bfinfra.app.context import RunContext
    from bfinfra.model.refs import Key
    from bfinfra.model.site import Site
    from bfinfra.model.stop import Stop
    from bfinfra.model.variant import Variant
    from bfinfra.sandbox import Running

ARENA_MAX = -8  # M_ARENA_MAX of <malloc.h>
READ = ("sites", "overlay", "values", "world", "plan")
"""Arguments with the names of files that a command reads."""


def load(args: argparse.Namespace) -> tuple[Site, RunContext]:
    """The site that the arguments name, and its RunContext."""
    from bfinfra.app.context import RunContext
    from bfinfra.cli.screen import Screen
    from bfinfra.engine.retry import RetryPolicy

    running = sandbox(args)
    return site(args, running), RunContext(
        sandbox=running,
        stop=args.stop,
        retry=RetryPolicy(halt=args.stop.flag),
        surveying=Screen.of(args).surveying,
    )


def serve(stop: Stop) -> None:
    """Go on as a service, which lives for months: a signal is success, and what has started then ends in
    order. Raises Interrupted if a signal came before.
    """
    import gc

    gc.set_threshold(700, 10, 10)  # Python's default; main sets another for short runs
    gc.enable()
    _share_one_heap()
    stop.serves = True
    stop.begin_writing()


def _share_one_heap() -> None:
    """Let threads that come and go not have heaps of their own: glibc keeps these. With them a watch whose
    session ended 30 times had 116 MiB, and 99 MiB without. Other C libraries have no such setting.
    """
    import contextlib
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(ARENA_MAX, 1)


def site(args: argparse.Namespace, running: Running | None = None) -> Site:
    """The site that the arguments name. `running`: the sandbox that provides values for its references."""
    from bfinfra.app.load import load_variant

    return load_variant([Path(each) for each in args.sites], variant(args), running)


def variant(args: argparse.Namespace) -> Variant:
    """The overlays and values in the arguments."""
    from bfinfra.model.variant import Given, Variant

    given = tuple(Given(name, text, f"--set {name}") for name, text in args.set)
    return Variant(tuple(map(Path, args.overlay)), tuple(map(Path, args.values)), given)


def options(args: argparse.Namespace) -> list[str]:
    """The overlays and values in the arguments, as words of a command line."""
    return [
        *(word for file in args.overlay for word in ("--overlay", file)),
        *(word for file in args.values for word in ("--values", file)),
        *(word for name, text in args.set for word in ("--set", f"{name}={text}")),
    ]


def address(text: str, where: str = "") -> Key:
    """The resource of an address. `where`: the option that it was given to. Raises BfinfraError for a text
    that is not an address.
    """
    from bfinfra.model.errors import BfinfraError, Problem
    from bfinfra.model.refs import Key

    try:
        return Key.parse(text)
    except ValueError as error:
        raise BfinfraError(Problem(str(error), where, next="write it as bfinfra plan shows it")) from None


def targets(args: argparse.Namespace) -> tuple[Key, ...]:
    """The resources that the arguments target. Raises BfinfraError for a text that is not an address."""
    return tuple(address(each, "--target") for each in args.target)


def sandbox(args: argparse.Namespace) -> Running | None:
    """With --sandbox or --world, the sandbox of the site, started if it isn't running; else None."""
    if not (args.sandbox or args.world):
        return None
    from bfinfra.cli.screen import Screen
    from bfinfra.worlds import embedded

    return embedded(*args.sites, world=args.world or "", say=Screen.of(args).say)


def named(args: argparse.Namespace) -> str:
    """The single word if it is no file; "" if the words are files."""
    return args.sites[0] if len(args.sites) == 1 and not Path(args.sites[0]).exists() else ""


def can_write(args: argparse.Namespace, *names: str | None) -> None:
    """Raises BfinfraError if a file that the arguments name could not be written now, is one that they read,
    or is named twice. Called before the servers are read, which takes long, and before they are written.
    """
    from bfinfra.model.errors import BfinfraError, Problem
    from bfinfra.model.files import check_named

    named = list(filter(None, names))
    read = [each for given in READ for each in _words(getattr(args, given, ()))]
    problems: list[Problem] = []
    for number, name in enumerate(named):
        if other := next((each for each in (*read, *named[:number]) if _same(each, name)), None):
            problems.append(
                Problem(
                    "the file can't be written", name, f"it is {other} of this command", "name another file"
                )
            )
            continue
        try:
            check_named(name)
        except BfinfraError as error:
            problems += error.problems
    if problems:
        raise BfinfraError(*problems)


def _words(given: object) -> Sequence[str]:
    """What an argument names: one file, several, or none."""
    return [given] if isinstance(given, str) else given if isinstance(given, list | tuple) else ()


def _same(one: str, other: str) -> bool:
    """Whether two names are one file; a terminal and a pipe take from several."""
    return not other.startswith("/dev/") and Path(one).resolve() == Path(other).resolve()
