"""Starts other programs: the only place that does, but for the sandbox's own process and Ansible's runner.
Never through a shell; what a program answers, and how long it takes, has a bound.
"""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from bfinfra.model.records import dataclass
from bfinfra.model.waits import Wait

LARGEST = 4 << 20  # bytes that are read of each of a program's outputs
BLOCK = 1 << 16  # bytes
DEAD = 10  # seconds for a killed program to be gone


@dataclass(frozen=True, slots=True)
class Done:
    """What a program that ended answered, and its exit code."""

    code: int
    stdout: bytes
    stderr: bytes


class Overdue(TimeoutError):
    """A program was killed at its limit. `output`: what it had printed."""

    def __init__(self, limit: float, output: bytes) -> None:
        super().__init__(errno.ETIMEDOUT, f"it was not done within {limit:.0f} s")
        self.output = output


def find(name: str) -> str | None:
    """The path of an installed program. The working folder never counts, even if PATH names it."""
    folders = [folder for folder in os.get_exec_path() if Path(folder).is_absolute()]
    return shutil.which(name, path=os.pathsep.join(folders))


def encoded(argv: Sequence[str]) -> list[bytes]:
    """The words of a command as the system takes them. Raises OSError for one that it can't: with a NUL, or
    with half of a surrogate pair.
    """
    if isinstance(argv, str):
        raise TypeError("a command is a list of words, never a line for a shell")
    try:
        words = [os.fsencode(word) for word in argv]
    except UnicodeEncodeError:
        raise OSError(errno.EILSEQ, "a word of its command is no text") from None
    if any(b"\0" in word for word in words):
        raise OSError(errno.EINVAL, "a word of its command has a NUL byte in it")
    return words


def start(  # noqa: PLR0913 - all that there is to say of a program
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    stdin: bool = False,
    stdout: int = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
    cwd: Path | None = None,
    own_session: bool = True,
) -> subprocess.Popen[bytes]:
    """Start a program by its path. It reads nothing, or with `stdin` what the caller writes. Raises OSError.

    `own_session`: out of reach of the terminal's signals.
    """
    words = encoded(argv)
    if not Path(argv[0]).is_absolute():
        raise FileNotFoundError(errno.ENOENT, "there is no such program")
    return subprocess.Popen(  # noqa: S603 - a list of words, a path first, no shell
        words,
        env=env,
        stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
        stdout=stdout,
        stderr=stderr,
        cwd=cwd,
        start_new_session=own_session,
    )


def run(  # noqa: PLR0913 - the same
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    limit: float,
    stdin: bytes = b"",
    largest: int = LARGEST,
    tail: bool = False,
    cwd: Path | None = None,
    own_session: bool = True,
) -> Done:
    """Run a program to its end. Raises OSError: if it doesn't start, prints more than `largest` bytes, or
    takes more than `limit` seconds (Overdue). Raises StillRunning if the step has no more time. It is killed
    then, with what it started if it has its own session.

    `tail`: both outputs as one, of which the last `largest` bytes are kept, however much it prints.
    """
    process = start(
        argv,
        env=env,
        stdin=bool(stdin),
        stderr=subprocess.STDOUT if tail else subprocess.PIPE,
        cwd=cwd,
        own_session=own_session,
    )
    assert process.stdout is not None
    outputs = {stream: bytearray() for stream in (process.stdout, process.stderr) if stream is not None}
    with _killed(process, own_session=own_session):
        wait = Wait(Path(argv[0]).name, limit)
        try:
            for stream, block in _exchanged(process, stdin, wait):
                outputs[stream] += block
                if tail:
                    del outputs[stream][:-largest]
                elif len(outputs[stream]) > largest:
                    raise OSError(errno.EFBIG, f"it answers more than {largest >> 10} KiB")
            code = process.wait(wait.left())
        except (TimeoutError, subprocess.TimeoutExpired):
            if wait.cut:
                raise wait.over() from None
            raise Overdue(limit, bytes(outputs[process.stdout])) from None
    return Done(code, *(bytes(each) for each in (*outputs.values(), b"")[:2]))


def _exchanged(
    process: subprocess.Popen[bytes], stdin: bytes, wait: Wait
) -> Iterator[tuple[IO[bytes], bytes]]:
    """Write what the program reads, and yield what it prints, until it closes its outputs. Raises
    TimeoutError.
    """
    left = memoryview(stdin)
    pipes = {each.fileno(): each for each in (process.stdin, process.stdout, process.stderr) if each}
    with selectors.DefaultSelector() as waiting:
        for number, stream in pipes.items():
            reads = stream is process.stdin
            os.set_blocking(number, not reads)
            waiting.register(number, selectors.EVENT_WRITE if reads else selectors.EVENT_READ)
        while waiting.get_map():
            ready = waiting.select(wait.left())
            if not (ready and wait.left()):  # some print without end
                raise TimeoutError
            for key, _ in ready:
                stream = pipes[key.fd]
                if stream is process.stdin:
                    left = _written(stream, left)
                    ended = not left
                else:
                    block = os.read(key.fd, BLOCK)
                    yield stream, block
                    ended = not block
                if ended:
                    waiting.unregister(key.fd)
                    stream.close()


def _written(stream: IO[bytes], left: memoryview) -> memoryview:
    """What is left to write; nothing if the program reads no more."""
    try:
        return left[os.write(stream.fileno(), left[:BLOCK]) :]
    except BlockingIOError:
        return left
    except BrokenPipeError:
        return left[:0]


@contextlib.contextmanager
def _killed(process: subprocess.Popen[bytes], *, own_session: bool) -> Iterator[None]:
    """Nothing of the program goes on when the block is left, in whatever way."""
    try:
        yield
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                if own_session:
                    os.killpg(process.pid, signal.SIGKILL)
                else:
                    process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(DEAD)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
