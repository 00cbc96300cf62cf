"""docker, podman or buildah, whichever works on this machine. Called with arguments, never through a
shell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path

from bfinfra.backends.images.archive import full_name
from bfinfra.formats import shell
from bfinfra.model import subprocesses
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
KEPT = 1 << 16  # bytes of the end of its output


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
        build = shell.line(("docker", "build", *self.options(image)))
        return f"{build} && {shell.line(('docker', 'push', image))}" if push else build


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
        program = subprocesses.find(name)
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
        done = subprocesses.run(argv, env=environment(), limit=limit, largest=KEPT, tail=True)
    except subprocesses.Overdue as error:
        raise Rejected(
            f"{what} took more than {limit:.0f} s and was stopped",
            why=_last(error.output),
            next="check whether its registry answers",
        ) from None
    except OSError as error:
        raise Rejected(f"{what} did not start", why=f"{argv[0]}: {error.strerror}") from None
    if done.code:
        raise Rejected(
            f"{what} failed",
            why=f"{Path(argv[0]).name} ended with {done.code}: {_last(done.stdout)}",
            next=f"run it by hand: {shell.line(argv)}",
        )


def _last(output: bytes) -> str:
    return " | ".join([*filter(None, map(_printable, output.splitlines()))][-LINES:])


def _printable(line: bytes) -> str:
    return "".join(c for c in line.decode(errors="replace").strip() if c.isprintable())[:LONGEST]


def _probe(argv: Sequence[str]) -> str:
    """Return why a tool doesn't work, or ""."""
    try:
        done = subprocesses.run(argv, env=environment(), limit=PROBING)
    except OSError as error:
        return f"it did not answer ({error.strerror})"
    if done.code == 0 and done.stdout.strip():
        return ""
    lines = done.stderr.strip().splitlines()
    return _printable(lines[-1]) if lines else f"it ended with {done.code}"
