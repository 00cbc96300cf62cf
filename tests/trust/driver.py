"""Runs command lines in a process of its own: what each printed, and the sessions and tokens that servers
gave it, as JSON lines.

python -m trust.driver FILE; FILE: {"runs": [{"argv": […], "echo": "", "trace": false}], "out": FILE, "taken":
FILE, "unhidden": false}; unhidden: nothing that was read is hidden, so that the scan can be seen to find it.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import httpx2
from kinds.lifecycle import QUICK
from trust.echo import Echo

from bfinfra.app import context
from bfinfra.cli import main
from bfinfra.model import redact


class Tap(httpx2.BaseTransport):
    """Keeps what says who we are: headers of requests, cookies and tokens of answers."""

    def __init__(self, taken: set[str], inner: httpx2.BaseTransport) -> None:
        self._taken, self._inner = taken, inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        scheme, _, value = request.headers.get("authorization", "").partition(" ")
        self._taken |= {value if scheme == "Bearer" else "", request.headers.get("vmware-api-session-id", "")}
        self._taken |= {
            cookie.partition("=")[2].strip('"') for cookie in request.headers.get("cookie", "").split("; ")
        }
        return self._inner.handle_request(request)

    def close(self) -> None:
        self._inner.close()


def run(argv: list[str], echo: str, trace: bool, taken: set[str]) -> dict[str, Any]:
    out, err = io.StringIO(), io.StringIO()
    middleware = (*([functools.partial(Echo, echo)] if echo else []), functools.partial(Tap, taken))
    context.RunContext = functools.partial(_RUN_CONTEXT, retry=QUICK, middleware=middleware)  # type: ignore[misc, assignment]  # as the command line makes it
    os.environ["BFINFRA_TRACEBACK"] = "1" if trace else ""
    began = time.monotonic()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(argv)
    return {
        "seconds": time.monotonic() - began,
        "argv": argv,
        "echo": echo,
        "code": code,
        "out": out.getvalue(),
        "err": err.getvalue(),
    }


_RUN_CONTEXT = context.RunContext

if __name__ == "__main__":
    task = json.loads(Path(sys.argv[1]).read_text())
    taken: set[str] = set()
    if task["unhidden"]:
        redact._parts = lambda _: iter(())
    with Path(task["out"]).open("w") as output:
        output.writelines(
            json.dumps(run(each["argv"], each["echo"], each["trace"], taken)) + "\n" for each in task["runs"]
        )
    Path(task["taken"]).write_text(json.dumps(sorted(value for value in taken if len(value) >= 16)))
