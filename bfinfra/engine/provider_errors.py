"""Turns a kind's failure on a server's answer into an error of that resource, so that the others continue."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from bfinfra.model.errors import BfinfraError, Malformed, OutOfFiles, Problem


@contextlib.contextmanager
def provider_errors(what: str) -> Iterator[None]:
    """Raises Malformed for each exception that is not a BfinfraError, OSError or MemoryError: a server may
    answer anything, and no kind foresees all of it. What this machine lacks or refuses (memory, files) is not
    blamed on a server.

    BFINFRA_TRACEBACK=1 lets the exception through.
    """
    try:
        yield
    except BfinfraError:
        raise
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not error.filename:
            raise  # the current folder is gone
        raise (
            OutOfFiles.behind(error)
            or BfinfraError(Problem(error.strerror or type(error).__name__, str(error.filename or "")))
        ) from error
    except MemoryError:  # no answer that a server may give takes so much
        raise BfinfraError(
            Problem(
                f"there is not enough memory to work on {what}",
                why="this machine, or a limit on this process, gives no more",
                next="run it where there is more memory",
            )
        ) from None
    except Exception as error:
        if os.environ.get("BFINFRA_TRACEBACK") == "1":
            raise
        raise Malformed(
            f"bfinfra can't read the server's answer about {what}",
            why=f"{type(error).__name__}: {error}"[:300],
            next=(
                "run it again with BFINFRA_TRACEBACK=1 to see where; report it if the server is what it "
                "should be"
            ),
        ) from error
