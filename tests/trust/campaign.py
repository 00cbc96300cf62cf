"""Every command in every output, level and mishap, on a site full of planted secrets; and where each of them
is looked for afterwards.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trust import plants
from trust.echo import FORMS
from trust.scan import Scanner

import bfinfra
from bfinfra import sandbox, worlds

OUTPUTS = ("text", "json", "jsonl", "markdown")
PROXY = re.compile(rb"(?m)(^|(?<=\0))HTTPS_PROXY=[^\n\0]*")
"""Goes on to the programs that bfinfra starts for its user, who couldn't do their work without it."""
PLACES = ("state", "tmp", "cwd", "home", "seen")
ALLOWED = ("--yes", "--allow-delete", "all", "--allow-disruption", "all")
HERE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Ran:
    """What came of it: `runs` as the driver tells them; `secrets`: what was planted, and what servers handed
    out.
    """

    folder: Path
    runs: list[dict[str, Any]]
    secrets: dict[str, str]
    sandbox: Path
    children: dict[str, bytes]

    def files(self) -> Iterator[Path]:
        """What is searched on disk."""
        return (
            path
            for place in PLACES
            for path in (self.folder / place).rglob("*")
            if path.is_file() and not path.is_relative_to(self.sandbox)
        )

    def leaks(self) -> Iterator[str]:
        """Each place where a secret stands, with its name and form."""
        scanner = Scanner(self.secrets)
        for run in self.runs:
            if found := scanner.text(run["err"], "" if meant(run) else run["out"]):
                yield f"{' '.join(run['argv'])} {run['echo']}: {', '.join(found)}"
        for place in PLACES:
            for name, found in scanner.folder(
                self.folder / place, PROXY, leave=[self.sandbox, self.folder / "cwd/out.kubeconfig"]
            ).items():
                yield f"{place}/{name}: {', '.join(found)}"
        for name, output in self.children.items():
            if found := scanner.find(PROXY.sub(b"", output)):
                yield f"{name}: {', '.join(found)}"


def meant(run: dict[str, Any]) -> bool:
    """Whether printing a secret is what the command is for."""
    return "kubeconfig" in run["argv"] and "--out" not in run["argv"]


def commands(planted: plants.Planted) -> Iterator[dict[str, Any]]:
    """The command lines, in an order in which each has something to do."""
    at = ("--sandbox", "--world", str(planted.world), str(planted.site))
    for form, part, output in itertools.product(FORMS, ("login", "write", "all"), OUTPUTS):
        yield _run(["apply", *at, *ALLOWED, "--output", output, "-v"], f"{form} {part}")
        yield _run(["plan", *at, "--output", output], f"{form} {part}", trace=True)
    for output in OUTPUTS:
        yield from (
            _run([verb, *at, "--output", output, *more])
            for verb in ("validate", "plan")
            for more in ([], ["-v"])
        )
    yield from _saved(planted)
    for output in OUTPUTS:
        for verb in ("plan", "drift", "apply"):
            yield from (
                _run([verb, *at, "--output", output, *more, *(ALLOWED if verb == "apply" else ())])
                for more in ([], ["-v"])
            )
        for argv in (
            ["history", "planted"],
            ["graph", str(planted.site)],
            ["trust", *at],
            ["privileges", *at],
            ["kinds", "bitfusion_server"],
            ["adopt", *at, "namespace/none", "--yes"],
            ["sandbox", "status", str(planted.site), "--world", str(planted.world)],
            ["plan", *at, "--destroy"],
            ["ova", "inspect", str(planted.folder / "token.tar")],
            ["validate", str(planted.folder / "literal.yaml")],
        ):
            yield _run([*argv, "--output", output, "-v"])
    yield _run(["kubeconfig", *at, "kubernetes_cluster/other"])
    yield from (
        _run([*argv]) for argv in (["schema"], ["completion", "bash"], ["graph", "--dot", str(planted.site)])
    )
    yield from _mistaken(planted)
    yield from (_run(["destroy", *at, *ALLOWED, "-v"], f"{form} write") for form in FORMS)
    yield _run(["destroy", *at, *ALLOWED, "--output", "json"])
    yield _run(["history", "planted"])


def share(planted: plants.Planted) -> Iterator[dict[str, Any]]:
    """As much as there is time for at each change."""
    at = ("--sandbox", "--world", str(planted.world), str(planted.site))
    yield _run(["plan", *at], "base64 login", trace=True)
    yield _run(["apply", *at, *ALLOWED, "-v"], "plain write")
    yield from _saved(planted)
    yield _run(["drift", *at, "--output", "json", "-v"])
    yield from _mistaken(planted)
    yield _run(["validate", str(planted.folder / "literal.yaml"), "--output", "json"])
    yield _run(["history", "planted"])


def mishaps(planted: plants.Planted) -> Iterator[dict[str, Any]]:
    """A server that quotes what it was sent: the least that shows whether the scan finds anything."""
    yield _run(
        ["apply", "--sandbox", "--world", str(planted.world), str(planted.site), *ALLOWED, "-v"],
        "plain write",
    )


def _saved(planted: plants.Planted) -> Iterator[dict[str, Any]]:
    at = ("--sandbox", "--world", str(planted.world))
    yield _run(["plan", *at, str(planted.site), "--out", "plan.json"])
    yield _run(["apply", *at, "plan.json", *ALLOWED, "--output", "jsonl", "-v"])
    yield _run(["kubeconfig", *at, str(planted.site), "kubernetes_cluster/other", "--out", "out.kubeconfig"])


def _mistaken(planted: plants.Planted) -> Iterator[dict[str, Any]]:
    for name in ("refused", "identity"):
        yield from (
            _run(["plan", str(planted.folder / f"{name}.yaml"), "-v"], trace=trace) for trace in (False, True)
        )


def run(
    folder: Path, what: Callable[[plants.Planted], Iterator[dict[str, Any]]], *, unhidden: bool = False
) -> Ran:
    """The commands, in a process of its own with its own home, folder for temporary files and state."""
    planted = plants.plant(folder / "planted")
    _mishaps(planted)
    for name in ("state", "tmp", "cwd", "home"):
        (folder / name).mkdir(mode=0o700)
    task = {
        "runs": list(what(planted)),
        "out": str(folder / "out.jsonl"),
        "taken": str(folder / "taken.json"),
        "unhidden": unhidden,
    }
    (folder / "task.json").write_text(json.dumps(task))
    env = {
        **os.environ,
        **planted.env,
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "XDG_STATE_HOME": str(folder / "state"),
        "NO_COLOR": "1",
        "PYTHONPATH": os.pathsep.join([str(HERE), str(Path(bfinfra.__file__).parents[1])]),
    }
    env.pop("BFINFRA_STATE_HOME", None)
    state = folder / "state" / worlds.state(planted.world).relative_to(worlds.states().parents[1])
    try:
        children = _watched(
            [sys.executable, "-m", "trust.driver", str(folder / "task.json")], folder / "cwd", env
        )
    finally:
        sandbox.stop(state)
    planted.seen.rename(folder / "seen")
    runs = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    taken = {
        f"handed out {number}": value
        for number, value in enumerate(json.loads((folder / "taken.json").read_text()))
    }
    assert len(runs) == len(task["runs"])
    return Ran(folder, runs, {**planted.secrets, **taken}, state, children)


def _run(argv: list[str], echo: str = "", *, trace: bool = False) -> dict[str, Any]:
    return {"argv": argv, "echo": echo, "trace": trace}


def _mishaps(planted: plants.Planted) -> None:
    """Sites that are wrong, each with a secret in it: a literal, a kubeconfig that is refused, a client
    certificate that nobody asks for.
    """
    planted.secrets["literal"] = plants.marker("literal")
    planted.secrets["token of a kubeconfig that is refused"] = plants.marker("refused")
    (planted.folder / "literal.yaml").write_text(
        f"site: x\nvcenter: {{server: vc.small.test, username: me, password: "
        f"{planted.secrets['literal']}}}\npepper: {planted.secrets['literal']}\n"
    )
    refused = {
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [
            {"name": "c", "cluster": {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": True}}
        ],
        "users": [{"name": "u", "user": {"token": planted.secrets["token of a kubeconfig that is refused"]}}],
    }
    (planted.folder / "refused.kubeconfig").write_text(json.dumps(refused))
    plants.identity(planted, "https://127.0.0.1:1")
    for name in ("refused", "identity"):
        (planted.folder / f"{name}.yaml").write_text(
            f"site: {name}\nkubernetes_cluster:\n  c: {{kubeconfig: {{file: {name}.kubeconfig}}}}\n"
        )


def _watched(argv: list[str], cwd: Path, env: dict[str, str]) -> dict[str, bytes]:
    """Run to the end; the command lines of it and of all that it starts, and the environment of what it
    starts.
    """
    output: dict[str, bytes] = {}
    with subprocess.Popen(argv, cwd=cwd, env=env) as process:
        while process.poll() is None:
            for pid in _family(process.pid):
                with contextlib.suppress(OSError):  # it has ended
                    line = Path(f"/proc/{pid}/cmdline").read_bytes()
                    output[f"process {pid}, cmdline"] = line or output.get(f"process {pid}, cmdline", b"")
                    if pid != process.pid and line not in (
                        b"",
                        output[f"process {process.pid}, cmdline"],
                    ):  # between fork and exec a child still is what forked
                        output[f"process {pid}, environ"] = Path(
                            f"/proc/{pid}/environ"
                        ).read_bytes() or output.get(f"process {pid}, environ", b"")
            time.sleep(0.005)
    assert process.returncode == 0
    return output


def _family(pid: int) -> Iterator[int]:
    yield pid
    threads: list[Path] = []
    with contextlib.suppress(OSError):  # it has ended
        threads += Path(f"/proc/{pid}/task").iterdir()
    for thread in threads:
        below: list[str] = []
        with contextlib.suppress(OSError):
            below += (thread / "children").read_text().split()
        for each in below:
            yield from _family(int(each))
