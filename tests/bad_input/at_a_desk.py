"""The command line in this process, with nobody to talk to: what it answers to an input, and that it touches
nothing.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

import httpx2
from bad_input import nasty

import bfinfra
from bfinfra.app import context
from bfinfra.cli import main
from bfinfra.cli.parser import build
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model import secret
from bfinfra.sandbox.factories.files import make_files
from bfinfra.sandbox.passwords import Passwords
from bfinfra.sandbox.pki import Pki
from bfinfra.sandbox.world_file import load

WORLDS = Path(__file__).parents[2] / "specs/worlds"
ONCE = RetryPolicy(attempts=1, lasts=0)
QUICK = RetryPolicy(attempts=5, lasts=0, pause=0.01, longest=0.05)


class Nobody(httpx2.BaseTransport):
    """No server is there; who asked is counted."""

    asked = 0

    def __init__(self, inner: httpx2.BaseTransport) -> None:
        self._inner = inner

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        type(self).asked += 1
        raise httpx2.ConnectError("nobody is there")

    def close(self) -> None:
        self._inner.close()


def furnished(folder: Path) -> Path:
    """The folder with every file that the sites in specs/ name, as the sandbox makes them, so that a plan
    goes as far as it can.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for file in sorted(WORLDS.glob("*.yaml")):
        world = load(file, Passwords(b"fuzz"))
        make_files(world.files, folder, Pki(folder.parent / "pki").ca_pem, world.kubernetes_clusters)
    shutil.copytree(WORLDS.parent / "manifests", folder / "manifests")
    return folder


def _no_program(argv: Sequence[str], folder: str) -> str:
    raise secret.SecretMissing(secret.Problem("programs are not run here"))


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """No network, no programs, a home and a state folder that must stay empty."""
    (folder / "home").mkdir(parents=True, exist_ok=True)
    home = str(folder / "home")
    env = {
        "HOME": home,
        "XDG_STATE_HOME": home,
        "BFINFRA_STATE_HOME": home,
        **dict.fromkeys(
            ("VCENTER_PASSWORD", "BITFUSION_CUSTOMER_PASSWORD", "HARBOR_PASSWORD"), "hunter2-fuzz"
        ),
        "NO_COLOR": "1",
    }
    nobody = mock.patch.object(context, "LIVE", bfinfra.RunContext(retry=ONCE, middleware=(Nobody,)))
    whole = build()
    parser = mock.patch("bfinfra.cli.main.build", lambda _: whole)  # half of a command's time
    run_context = mock.patch.object(context, "RunContext", lambda **_: context.LIVE)
    with (
        mock.patch.dict(os.environ, env),
        nobody,
        run_context,
        parser,
        mock.patch.object(secret, "_run", _no_program),
    ):
        yield


def output(*argv: str) -> tuple[int, str, str]:
    """One command: exit code, stdout, stderr."""
    raw = io.BytesIO(), io.BytesIO()
    with io.TextIOWrapper(raw[0], encoding="utf-8") as out, io.TextIOWrapper(raw[1], encoding="utf-8") as err:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            # what other tests left behind would be finalised at the bottom of a recursion, and say so on this
            # stderr
            gc.disable()
            try:
                code = main(list(argv))
            finally:
                gc.enable()
        out.flush()
        err.flush()
        return code, raw[0].getvalue().decode(), raw[1].getvalue().decode()


def answers(*argv: str, codes: Sequence[int] = (0, 1)) -> int:
    """The exit code of a command that ended as it should: no traceback, nothing that acts on a terminal,
    documents that are JSON.
    """
    code, out, err = output(*argv)
    assert code in codes, (code, err[-300:])
    for text in (out, err):
        assert "Traceback" not in text, text[-2000:]
        assert "this should not happen" not in text, text[-2000:]
        assert not nasty.acts(text), (nasty.acts(text), argv, text[:500])
        assert "hunter2-fuzz" not in text
    assert err or code == 0 or out
    for text in (out, err) if "json" in argv else ():
        if text.strip():
            json.loads(text)
    return code
