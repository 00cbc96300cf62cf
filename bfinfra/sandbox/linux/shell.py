"""Parses a command line that comes by SSH: a list of small commands that read, and what Ansible's connection
sends around its modules. All else is refused by name.
"""

from __future__ import annotations

import functools
import re
import shlex
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bfinfra.sandbox.linux import modules
from bfinfra.sandbox.linux.machine import Machine, Node
from bfinfra.sandbox.linux.output import Output
from bfinfra.sandbox.linux.programs import Programs

PIECE = re.compile(
    r"""printf '\\036%s %s\\n' "\$drawn" (\d+)\n(.*?) 2>&1 < /dev/null\n"""
    r"""printf '\\035%s %s\\n' "\$drawn" \$\?""",
    re.DOTALL,
)
BY_STDIN = {
    "/bin/sh": False,
    "sudo -n -H /bin/sh -c 'exec /bin/sh'": False,
    (
        """/bin/sh -c 'IFS= read -r password; script=$(cat); """
        """printf "%s\\n" "$password" | sudo -S -p "" -H /bin/sh -c "$script"'"""
    ): True,
}
"""Lines that take a script from their input, and whether the first line there is a password."""
FOLDER = re.compile(
    r'\( umask 77 && mkdir -p "` echo (\S+) `"&& mkdir "` echo (\S+) `" && echo (\S+)="` echo \2 `" \)'
)
BECOME = re.compile(r"echo BECOME-SUCCESS-\w+ ; (.*)", re.DOTALL)
HOME = re.compile(r"echo ~(\w*)")
CHMOD = re.compile(r"chmod [ugo+rwx,=]+( \S+)+")
REMOVE = re.compile(r"rm -f -r (\S+) > /dev/null 2>&1")
PUT = re.compile(r"dd of=(\S+) bs=\d+")
REFUSED = 127


@dataclass(frozen=True)
class Call:
    """A parsed command line: its name for tallies and faults, and its effect on a machine."""

    name: str
    act: Callable[[Machine], Output]


def parse(line: str, stdin: bytes, user: str, programs: Programs) -> Call:
    """A command line of `user`."""
    if line in BY_STDIN:
        script = stdin.decode(errors="surrogateescape")
        return _script(script.partition("\n")[2] if BY_STDIN[line] else script, b"", user, programs)
    words = _words(line)
    if words[:1] == ["sudo"] and "/bin/sh" in words:
        at = words.index("/bin/sh")
        return parse(shlex.join(words[at:]), stdin, "root", programs)
    if words[:2] == ["/bin/sh", "-c"] and len(words) == 3:
        return _script(words[2], stdin, user, programs)
    if put := PUT.fullmatch(line):
        path = put[1]
        return Call("put", lambda machine: _put(machine, path, stdin))
    return _refused(line)


def _script(script: str, stdin: bytes, user: str, programs: Programs) -> Call:
    script = script.removesuffix(" && sleep 0").strip()
    if become := BECOME.fullmatch(script):
        return _script(become[1], stdin, user, programs)
    if script.startswith("sudo "):
        return parse(script, stdin, user, programs)
    if pieces := PIECE.findall(script):
        return Call("read", lambda machine: _read(machine, pieces, user, programs))
    if re.fullmatch(r"([A-Z_]+=\S* )*\S*/python3?[\d.]*", script):
        return _module(stdin, programs)
    return next(
        (
            Call(name, functools.partial(act, words=(user, *match.groups())))
            for pattern, name, act in AROUND
            if (match := pattern.fullmatch(script))
        ),
        _refused(script),
    )


def _module(stdin: bytes, programs: Programs) -> Call:
    found = modules.sent(stdin)
    if isinstance(found, str):
        why = found
        return Call("refused", lambda _: Output(f"{why}\n", REFUSED))
    call = found
    return Call(call.name, lambda machine: modules.run(call, machine, programs))


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return []


def _read(machine: Machine, pieces: list[tuple[str, str]], user: str, programs: Programs) -> Output:
    """On a copy: a look leaves nothing."""
    drawn, trial = uuid.uuid4(), machine.copy()
    printed = f"\x1e{drawn}\n"
    for number, line in pieces:
        done = programs.run(trial, shlex.split(line), user)
        printed += f"\x1e{drawn} {number}\n{done.text}\x1d{drawn} {done.code}\n"
    return Output(printed)


def _home(_: Machine, words: Sequence[str]) -> Output:
    return Output(f"{Machine.home(words[1] or words[0])}\n")


def _folder(machine: Machine, words: Sequence[str]) -> Output:
    machine.write(words[2], Node(None, 0o700))
    return Output(f"{words[3]}={words[2]}\n")


def _clear(machine: Machine, words: Sequence[str]) -> Output:
    machine.remove(words[1])
    return Output("")


def _refused(line: str) -> Call:
    return Call("refused", lambda _: Output(f"the sandbox's machines don't do this: {line[:200]}\n", REFUSED))


def _put(machine: Machine, path: str, content: bytes) -> Output:
    why = machine.write(path, Node(content, 0o600))
    return Output(f"{why}\n" if why else "", 1 if why else 0)


AROUND = (
    (HOME, "read", _home),
    (FOLDER, "folder", _folder),
    (REMOVE, "clear", _clear),
    (CHMOD, "chmod", lambda *_, **__: Output("")),
)
"""The commands that Ansible's connection sends around a module that takes a file along."""
