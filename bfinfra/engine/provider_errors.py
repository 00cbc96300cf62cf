"""Where a kind trips over what a server said: an error of that resource, in words, and the others go on."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from bfinfra.model.errors import BfinfraError, Malformed


@contextlib.contextmanager
def provider_errors(what: str) -> Iterator[None]:
    """Whatever isn't said in bfinfra's own errors is Malformed: servers of any kind may answer anything, and
    no kind foresees all of it.

    BFINFRA_TRACEBACK=1 lets it through as it is.
    """
    try:
        yield
    except (BfinfraError, OSError):
        raise
    except Exception as error:
        if os.environ.get("BFINFRA_TRACEBACK") == "1":
            raise
        raise Malformed(
            f"what the server says of {what} makes no sense",
            why=f"{type(error).__name__}: {error}"[:300],
            next=(
                "run it again with BFINFRA_TRACEBACK=1 to see where; report that if the server is what it "
                "should be"
            ),
        ) from error
