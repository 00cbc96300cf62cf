"""From arguments to an exit code. Errors become problems on stderr, signals 130 and 143; a closed pipe ends
silently.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import gc
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from bfinfra.cli import output
from bfinfra.cli.arguments import DEFAULT_SITES
from bfinfra.cli.parser import build
from bfinfra.cli.pipes import Unheard, closed, hush

if TYPE_CHECKING:
    import argparse

    from bfinfra.model.errors import BfinfraError

PIPE = 128 + signal.SIGPIPE
INTERRUPTED = (128 + signal.SIGINT, 128 + signal.SIGTERM)
UNUSED = (
    "anyio",
    "h2",
    "sniffio",
    "trio",
    *(f"pyVmomi._typeinfo_{api}" for api in ("eam", "sms", "vsanhealth", "vslm")),
)
"""Libraries that others import if they are installed (event loops, HTTP/2, APIs beside vCenter's own) and no
command uses. Without this a drift of 300 servers takes 1.09 times the processor time (1.07 times the
seconds).
"""


def program() -> NoReturn:
    """`main` as a whole process."""
    lean()
    code = main()
    if code in INTERRUPTED:
        leave(code)
    gc.freeze()  # no garbage collection while the interpreter ends
    sys.exit(code)


def lean() -> None:
    """Turn off what only costs a command time, such as garbage collection: most objects of a command live
    until it ends. Long commands turn it on again.
    """
    gc.disable()
    gc.set_threshold(200_000, 100, 100)
    os.environ.setdefault(
        "PYDANTIC_DISABLE_PLUGINS", "__all__"
    )  # pydantic neither searches for plug-ins nor runs those that are installed
    sys.modules.update(dict.fromkeys(UNUSED))  # type: ignore[arg-type]  # None makes Python's import fail


def leave(code: int) -> NoReturn:
    """Exit now. An interpreter that ends normally joins its threads first, and one may wait for a server that
    doesn't answer.
    """
    atexit._run_exitfuncs()  # noqa: SLF001 - libraries tidy up behind themselves
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code. Never raises."""
    _printable()
    words = sys.argv[1:] if argv is None else argv
    if not words:
        build(["--help"]).print_help(sys.stderr)
        return 1
    try:
        args, left = build(words).parse_known_args(words)
        if left:
            args.parser.refuse(left)
        if getattr(args, "sites", ()) is DEFAULT_SITES and not Path(DEFAULT_SITES[0]).exists():
            args.parser.error(
                f"name a SITE: there is no {DEFAULT_SITES[0]} in this folder; write one with: bfinfra init"
            )
    except SystemExit as leave:
        return int(leave.code or 0)
    from bfinfra.cli.signals import conduct
    from bfinfra.model.stop import Stop

    args.stop = Stop()
    try:
        return conduct(functools.partial(_run, args), args.stop)
    except BrokenPipeError as error:
        hush()
        if error.errno != errno.EBADF:
            return PIPE
        output.error("the output is lost: standard output is closed")
        return 1


def _run(args: argparse.Namespace) -> int:
    try:
        code = int(args.run(args))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - people get a sentence, whatever went wrong
        if os.environ.get("BFINFRA_TRACEBACK") == "1":
            _trace(error)
            return 1
        from bfinfra.cli.screen import Screen

        Screen.of(args).error(_as_problems(error))
        return 1
    return code


def _trace(error: Exception) -> None:
    """A traceback for a defect report, without values of variables and without secrets."""
    import traceback

    output.text("".join(traceback.format_exception(error)), sys.stderr, end="")


def _as_problems(error: Exception) -> BfinfraError:
    """Any exception as problems: people get a sentence, not a traceback."""
    from bfinfra.model.errors import BfinfraError, Problem

    if isinstance(error, BfinfraError):
        return error
    if isinstance(error, FileNotFoundError) and not error.filename and _adrift():
        return BfinfraError(
            Problem(
                "the current folder is gone",
                why="it was deleted while a shell was in it",
                next="cd to an existing folder",
            )
        )
    if isinstance(error, OSError):
        return BfinfraError(Problem(error.strerror or type(error).__name__, str(error.filename or "")))
    return BfinfraError(
        Problem(
            f"this should not happen: {type(error).__name__}: {error}",
            next="run it again with BFINFRA_TRACEBACK=1 and report what it prints",
        )
    )


def _adrift() -> bool:
    """Return whether the current folder was deleted."""
    try:
        return not Path.cwd()
    except FileNotFoundError:
        return True


def _printable() -> None:
    """Escape characters that the terminal can't print, and replace closed standard streams, so that no socket
    gets their number.
    """
    sys.stdin, sys.stdout, sys.stderr = (
        sys.stdin or closed(os.O_RDONLY),
        sys.stdout or Unheard(),
        sys.stderr or closed(os.O_WRONLY),
    )
    for stream in (sys.stdout, sys.stderr):
        if (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8" and hasattr(
            stream, "reconfigure"
        ):
            stream.reconfigure(errors="backslashreplace")
