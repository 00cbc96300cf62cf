"""Linux machines: read in parallel, one command for each; changed by plays. The only module that uses all
others here.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from bfinfra.backends.ansible import folder, programs, reading, userconfig
from bfinfra.backends.ansible.agent import Agent
from bfinfra.backends.ansible.connection import Connection
from bfinfra.backends.ansible.play import Played, play
from bfinfra.backends.ansible.reading import Answer
from bfinfra.backends.transport import WriteRefused
from bfinfra.model import waits
from bfinfra.model.errors import BfinfraError, Denied, Malformed, Rejected, RemoteError, Unreachable

if TYPE_CHECKING:
    from bfinfra.backends.transport import Transport
    from bfinfra.model.ssh import LinuxMachine, Play

AT_ONCE = 16  # machines
PLAYING = 6 * 3600.0  # seconds for other plays of this run on the same machine
PLAIN = "/bin/sh"
BY_SUDO = "sudo -n -H /bin/sh -c 'exec /bin/sh'"
ASKED_BY_SUDO = (
    """/bin/sh -c 'IFS= read -r password; script=$(cat); """
    """printf "%s\\n" "$password" | sudo -S -p "" -H /bin/sh -c "$script"'"""
)
"""sudo gets the password alone: it must not take the script for a second try after a wrong password."""
Commands = Mapping[str, Sequence[str]]


class LinuxHosts:
    """A run's machines. Safe to use from several threads. A connection is made when it is first needed, and
    all end with `close`.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._folder: Path | None = None
        self._agent: Agent | None = None
        self._open: dict[LinuxMachine, Connection] = {}
        self._opening: dict[LinuxMachine, threading.Lock] = {}
        self._playing: dict[LinuxMachine, threading.Lock] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    def read(
        self, wanted: Mapping[LinuxMachine, Commands], timeout: float = 60
    ) -> dict[LinuxMachine, dict[str, Answer] | BfinfraError]:
        """Machine's name → the output of each command, or the reason why it can't be read. `timeout`:
        seconds to wait for an answer.

        The caller must give commands that only read. They run as root if the machine's settings say so.
        """
        with ThreadPoolExecutor(min(AT_ONCE, len(wanted) or 1)) as pool:
            return dict(
                zip(
                    wanted,
                    pool.map(
                        waits.carried(lambda each: self._ask(each[0], each[1], timeout)), wanted.items()
                    ),
                    strict=True,
                )
            )

    def play(self, wanted: Play, *, check: bool = False) -> Played:
        """Run a role on its machines, in parallel. `check`: report what would change, and change nothing.
        Raises WriteRefused in a run that only reads.

        A failing machine does not stop the others: the answer has its reason. A machine runs one play at a
        time, as package managers exclude each other.
        """
        if self._transport.read_only and not check:
            raise WriteRefused(
                f"the role {wanted.role}", ", ".join(machine.server for machine in wanted.machines)
            )
        self._transport.tally.count(f"ansible {wanted.role}", writing=not check)
        with ThreadPoolExecutor(min(AT_ONCE, len(wanted.machines) or 1)) as pool:
            connections = dict(
                zip(wanted.machines, pool.map(waits.carried(self._try), wanted.machines), strict=True)
            )
        with contextlib.ExitStack() as alone:
            for machine in sorted(
                wanted.machines, key=lambda each: each.name
            ):  # in one order, so that no two plays wait for each other
                other = f"another play on {machine.name}"
                alone.enter_context(waits.held(self._lock_of(self._playing, machine), other, PLAYING))
            return play(wanted, connections, self._home(), check=check)

    def close(self) -> None:
        """Log out everywhere, and remove the run's folder."""
        with self._lock:
            opened, self._open = list(self._open.values()), {}
        for connection in opened:
            connection.close()
        if self._agent is not None:
            self._agent.close()
        if self._folder is not None:
            folder.remove(self._folder)
            self._folder = None

    def _ask(
        self, machine: LinuxMachine, commands: Commands, timeout: float
    ) -> dict[str, Answer] | BfinfraError:
        try:
            connection = self._connection(machine)
            self._transport.tally.count("ssh", writing=False)
            done = connection.run(*_as_root(machine, reading.script(commands)), timeout)
            return reading.answers(commands, done.stdout)
        except OSError as error:
            return Rejected(
                "a command can't be run on the machine", server=machine.server, why=error.strerror or ""
            )
        except ValueError as error:
            words = programs.excerpt(done.stderr.decode(errors="replace"))
            if "sudo" in words:
                return Denied(
                    f"{machine.user} can't become root",
                    server=machine.server,
                    why=words,
                    next=_sudo_next(machine.user, words),
                )
            return Malformed(
                "the machine's answer can't be read",
                server=machine.server,
                why=f"{error}; {words}".strip("; "),
            )
        except BfinfraError as error:
            return error

    def _try(self, machine: LinuxMachine) -> Connection | BfinfraError:
        try:
            return self._connection(machine)
        except BfinfraError as error:
            return error

    def _connection(self, machine: LinuxMachine) -> Connection:
        with self._lock_of(self._opening, machine):
            if machine not in self._open:
                fresh = Connection(machine, self._home(), next(self._numbers), self._transport, self._keys())
                try:
                    fresh.open()
                except RemoteError as error:
                    fresh.close()
                    raise self._by_other_ways(machine, error) from None
                self._open[machine] = fresh
            return self._open[machine]

    def _by_other_ways(self, machine: LinuxMachine, error: RemoteError) -> RemoteError:
        """The error of a login; where ssh's own client may reach the machine by the user's settings, it says
        so.
        """
        if self._transport.routed or not isinstance(error, Unreachable):
            return error
        why, instead = userconfig.unread(machine.address, machine.port)
        (said,) = error.problems
        if not why:
            return error
        whole = "; ".join(filter(None, (said.why, why)))
        return Unreachable(said.what, server=machine.server, why=whole, next=instead, met=error.met)

    def _lock_of(self, locks: dict[LinuxMachine, threading.Lock], machine: LinuxMachine) -> threading.Lock:
        with self._lock:
            return locks.setdefault(machine, threading.Lock())

    def _home(self) -> Path:
        with self._lock:
            if self._folder is None:
                self._folder = folder.make()
            return self._folder

    def _keys(self) -> Agent:
        home = self._home()
        with self._lock:
            if self._agent is None:
                self._agent = Agent(home)
            return self._agent


SUDO = {
    "must have a tty": "write in /etc/sudoers.d there: Defaults:{user} !requiretty",
    "incorrect password": "check sudo_password: sudo does not accept it",
    "Sorry, try again": "check sudo_password: sudo does not accept it",
    "no password was provided": "check sudo_password: sudo does not accept it",
    "password is required": "give sudo_password, or allow it without one in /etc/sudoers.d there: NOPASSWD",
    "not in the sudoers file": "give the account the right in /etc/sudoers.d there: {user} ALL=(ALL) ALL",
    "may not run sudo": "give the account the right in /etc/sudoers.d there: {user} ALL=(ALL) ALL",
    "not allowed to execute": "allow all commands in /etc/sudoers.d there, as bfinfra runs /bin/sh as root",
}
"""sudo's words → what to do; the first that fits."""


def _sudo_next(user: str, words: str) -> str:
    """What to do after sudo refused."""
    return next(
        (step for word, step in SUDO.items() if word in words),
        "give sudo_password, or allow it in /etc/sudoers.d there",
    ).format(user=user)


def _as_root(machine: LinuxMachine, script: bytes) -> tuple[str, bytes]:
    """The command line that runs a script, as root if the machine's settings say so, and its input.

    The line is a constant, as the login shell of the account reads it, which may be any. The script comes by
    its input.
    """
    if not machine.root or machine.user == "root":
        return PLAIN, script
    if machine.sudo_password is None:
        return BY_SUDO, script
    return ASKED_BY_SUDO, programs.answer(machine.sudo_password, "sudo_password") + script
