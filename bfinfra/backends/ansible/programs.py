"""The programs of OpenSSH: found by name, started without bfinfra's secrets, their output made safe to
print.
"""

from __future__ import annotations

from bfinfra.model import subprocesses
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.redact import redact
from bfinfra.model.secret import Secret
from bfinfra.model.secret import environment as without_secrets

PASSED_ON = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "TZ",
    "LD_LIBRARY_PATH",
    "SSL_CERT_FILE",
    "VIRTUAL_ENV",
)
ANSWER = 1023  # bytes of a password that ssh reads
LONGEST = 600  # characters of a program's output in a message


def find(name: str) -> str:
    """A program's path. Raises BfinfraError if it isn't installed."""
    if found := subprocesses.find(name):
        return found
    raise BfinfraError(
        Problem(
            f"there is no {name} on this machine",
            why="Linux machines are reached by OpenSSH's own client",
            next="install it: apt-get install openssh-client, or dnf install openssh-clients",
        )
    )


def environment(**more: str) -> dict[str, str]:
    """The environment for such a program, without this process's secrets, Ansible and SSH settings."""
    kept = {name: value for name, value in without_secrets().items() if name in PASSED_ON}
    return {**kept, "LC_ALL": "C.UTF-8", **more}


def answer(password: Secret, field: str) -> bytes:
    """The password as the line that a program reads. `field`: of the machine, for messages. Raises
    BfinfraError for one that is not one line, or too long.
    """
    line = password.reveal().encode()
    if any(each in line for each in (b"\n", b"\r", b"\0")):
        why = "it is not one line of text"
    elif len(line) > ANSWER:
        why = f"it has more than {ANSWER} bytes"
    else:
        return line + b"\n"
    raise BfinfraError(
        Problem(
            f"{field} {password} can't be used", why=why, next="let the reference lead to the password alone"
        )
    )


def excerpt(text: str, longest: int = LONGEST) -> str:
    """Foreign output for a message: without secrets and control characters, cut, lines joined."""
    lines = ("".join(c for c in line if c.isprintable()).strip() for line in redact(text).splitlines())
    joined = " | ".join(line for line in lines if line)
    return joined if len(joined) <= longest else f"{joined[: longest - 1]}…"
