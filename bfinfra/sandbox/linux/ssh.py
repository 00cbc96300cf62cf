"""The SSH side of the machines, on asyncssh: a listening port each, and one event loop for all, started with
the first that connects.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

READY = "echo "  # of the connection that stays: `echo WORD; exec cat`
PENDING = 64
BECOME = re.compile(r"echo (BECOME-SUCCESS-\w+) ;")

Answered = Callable[[str, bytes, str], tuple[str, int] | None]
"""Command line, what came on its standard input, user → what it printed and its exit code; None: the
connection breaks.
"""


@dataclass(frozen=True)
class SshLogin:
    """The logins of a machine: its host key (OpenSSH's private form), the public keys and passwords of its
    users, and what answers.
    """

    host_key: str
    public_key: str
    passwords: dict[str, str]
    users: tuple[str, ...]
    answer: Answered


class SshPort:
    """A port on loopback."""

    def __init__(self, login: SshLogin) -> None:
        self._login = login
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=PENDING)
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, name=f"ssh-{self.port}", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            asyncio.run_coroutine_threadsafe(_serve(connection, self._login), _loop())


_started = threading.Lock()
_running: list[asyncio.AbstractEventLoop] = []


def _loop() -> asyncio.AbstractEventLoop:
    with _started:
        if not _running:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="ssh", daemon=True).start()
            _running.append(loop)
        return _running[0]


async def _serve(connection: socket.socket, login: SshLogin) -> None:
    import asyncssh  # noqa: PLC0415 - a fifth of a second, and few worlds are asked by SSH

    class Server(asyncssh.SSHServer):
        def begin_auth(self, username: str) -> bool:
            return True

        def public_key_auth_supported(self) -> bool:
            return True

        def validate_public_key(self, username: str, key: Any) -> bool:
            return (
                username in login.users
                and key.export_public_key().split()[1] == login.public_key.encode().split()[1]
            )

        def password_auth_supported(self) -> bool:
            return bool(login.passwords)

        def validate_password(self, username: str, password: str) -> bool:
            return bool(login.passwords.get(username)) and login.passwords[username] == password

    async def session(process: Any) -> None:
        await _session(process, login.answer)

    connection.setblocking(False)
    with contextlib.suppress(OSError, asyncssh.Error):
        made = await asyncssh.run_server(
            connection,
            server_factory=Server,
            server_host_keys=[asyncssh.import_private_key(login.host_key)],
            process_factory=session,
            encoding=None,
            line_editor=False,
            allow_pty=False,
        )
        await made.wait_closed()


async def _session(process: Any, answer: Answered) -> None:
    line = process.command or ""
    if line.startswith(READY) and line.endswith("; exec cat"):
        process.stdout.write(line.removeprefix(READY).partition(";")[0].encode() + b"\n")
        while await process.stdin.read(4096):
            pass
        process.exit(0)
        return
    if become := BECOME.search(line):
        process.stdout.write(become[1].encode() + b"\n")  # Ansible sends nothing before it has seen that
    sent = (
        line.endswith(("/bin/sh", "exec /bin/sh'"))
        or line.startswith("dd ")
        or "python" in line
        or "$(cat)" in line
    )
    stdin = await process.stdin.read() if sent else b""  # Ansible leaves it open where nothing is sent
    user = process.get_extra_info("username")
    try:
        found = await asyncio.get_running_loop().run_in_executor(None, answer, line, stdin, user)
    except Exception:  # noqa: BLE001 - the client hears that the machine is gone, the log shows why
        traceback.print_exc()
        found = None
    if found is None:
        process.channel.get_connection().abort()
        return
    process.stdout.write(found[0].encode(errors="surrogateescape"))
    process.exit(found[1])
