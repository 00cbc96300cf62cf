"""docker, podman or buildah, whichever works on this machine. Called with arguments, never through a
shell.
"""

from __future__ import annotations

import collections
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

from bfinfra.backends.images.archive import full_name
from bfinfra.model.errors import Rejected
from bfinfra.model.records import dataclass
from bfinfra.model.secret import environment

PROBES = {
    "docker": (
        "version",
        "--format",
        "{{.Server.Version}}",
    ),  # commands that fail where only the client is installed
    "podman": ("info", "--format", "{{.Host.OCIRuntime.Name}}"),
    "buildah": ("info",),
}
PROBING = 10  # seconds
BUILDING = 3600  # seconds of a build or push
LINES = 12  # last lines of a failed build's output in an error
LONGEST = 300  # characters of a line


@dataclass(frozen=True, slots=True)
class Recipe:
    """The inputs of a build: a folder, its Dockerfile ("" for the default), and build arguments."""

    context: Path
    dockerfile: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)

    def options(self, image: str) -> tuple[str, ...]:
        """The arguments of `docker build`."""
        of = ("--file", str(self.context / self.dockerfile)) if self.dockerfile else ()
        return (
            "--tag",
            image,
            *of,
            *(word for name, value in self.arguments.items() for word in ("--build-arg", f"{name}={value}")),
            str(self.context),
        )

    def by_hand(self, image: str, *, push: bool) -> str:
        """The commands for a person."""
        return " ".join(("docker build", *self.options(image))) + (f" && docker push {image}" if push else "")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that works here: its name, and the program's path."""

    name: str
    program: str

    def build(self, recipe: Recipe, image: str) -> tuple[str, ...]:
        """The command to build."""
        return (self.program, "build", *recipe.options(image))

    def push(self, image: str) -> tuple[str, ...]:
        """The command to push."""
        return (self.program, "push", image)

    def save(self, image: str, archive: Path) -> tuple[str, ...]:
        """The command that writes the image to an archive for `docker load`."""
        if self.name == "buildah":
            return (self.program, "push", image, f"docker-archive:{archive}:{full_name(image)}")
        return (self.program, "save", "--output", str(archive), image)


def find() -> tuple[Tool | None, str]:
    """The first tool that works, or None and why none does."""
    reasons = []
    for name, arguments in PROBES.items():
        program = shutil.which(name)
        if program is None:
            continue
        if not (why := _probe((program, *arguments))):
            return Tool(name, program), ""
        reasons.append(f"{name} does not work here: {why}")
    return None, "; ".join(reasons) or f"none of {', '.join(PROBES)} is installed"


def run(argv: Sequence[str], what: str, limit: float = BUILDING) -> None:
    """Run a command to its end. Raises Rejected if it fails, with the last lines of its output.

    It has its own session: the first SIGINT of the terminal asks bfinfra to finish what runs, so it must not
    end the build.
    """
    try:
        process = subprocess.Popen(  # noqa: S603 - found by name, no shell
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment(),
        )
    except OSError as error:
        raise Rejected(f"{what} did not start", why=f"{argv[0]}: {error.strerror}") from None
    with process, _killed_after(process, limit) as overdue:
        assert process.stdout is not None
        tail = collections.deque(filter(None, map(_printable, process.stdout)), maxlen=LINES)
        code = process.wait()
    if overdue.is_set():
        raise Rejected(
            f"{what} took more than {limit:.0f} s and was stopped",
            why=" | ".join(tail),
            next="check whether its registry answers",
        )
    if code:
        raise Rejected(
            f"{what} failed",
            why=f"{Path(argv[0]).name} ended with {code}: {' | '.join(tail)}",
            next=f"run it by hand: {' '.join(argv)}",
        )


@contextmanager
def _killed_after(process: subprocess.Popen[bytes], limit: float) -> Iterator[threading.Event]:
    """Kills the process at the limit, and if the body is left early."""
    overdue = threading.Event()

    def stop() -> None:
        overdue.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(limit, stop)
    timer.start()
    try:
        yield overdue
    finally:
        timer.cancel()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def _printable(line: bytes) -> str:
    return "".join(c for c in line.decode(errors="replace").strip() if c.isprintable())[:LONGEST]


def _probe(argv: Sequence[str]) -> str:
    """Return why a tool doesn't work, or ""."""
    try:
        done = subprocess.run(  # noqa: S603 - the same
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBING,
            check=False,
            env=environment(),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it did not answer ({type(error).__name__})"
    if done.returncode == 0 and done.stdout.strip():
        return ""
    lines = done.stderr.strip().splitlines()
    return _printable(lines[-1]) if lines else f"it ended with {done.returncode}"
