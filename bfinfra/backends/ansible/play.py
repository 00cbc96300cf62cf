"""One play: a role on several machines in parallel, through ansible-runner. The result is data; secrets enter
by a pipe and never leave it.
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from bfinfra.backends.ansible import folder, programs
from bfinfra.backends.ansible.connection import DESTINATION
from bfinfra.backends.ansible.inert import OWN_PASSWORD, PASSWORDS, SECRETS, inert
from bfinfra.model.errors import BfinfraError, Busy, Problem, Rejected
from bfinfra.model.extras import missing
from bfinfra.model.files import PRIVATE, write_whole
from bfinfra.model.records import dataclass
from bfinfra.model.waits import Wait

try:
    import ansible_runner
except ModuleNotFoundError as error:
    raise missing("what is changed on a Linux machine", "linux", error) from None

if TYPE_CHECKING:
    from bfinfra.backends.ansible.connection import Connection
    from bfinfra.model.ssh import LinuxMachine, Play

_HERE = Path(__file__).parents[2]
ROLES = next(path for path in (_HERE / "playbooks/roles", _HERE.parent / "playbooks/roles") if path.is_dir())
"""The roles, installed beside the package or in a checkout."""
AT_ONCE = 16  # machines
LOCKED = re.compile(
    (
        r"Could not get lock|Unable to (acquire|lock)|is another process using it|waiting for the "
        r"transaction lock"
    ),
    re.IGNORECASE,
)
"""Messages of apt, dpkg, yum and dnf while another program, such as unattended-upgrades, installs."""
BOUND = Path(__file__).with_name("bound.py")


@dataclass(frozen=True)
class Played:
    """The result of a play, by machine's name: the number of tasks that changed something, why one failed,
    and each task's answer (by the task's name).
    """

    role: str
    changed: Mapping[str, int]
    failed: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, Mapping[str, Mapping[str, Any]]] = field(default_factory=dict)

    def check(self) -> None:
        """Raises Rejected if any machine failed, with Ansible's own message for each and the number of those
        that are done; Busy if another program installs there.
        """
        if self.failed:
            done = len(self.changed) - len(self.failed)
            what = f"{self.role} failed on {', '.join(sorted(self.failed))}" + (
                f"; {done} of {len(self.changed)} machines are done" if done else ""
            )
            error = Busy if all(LOCKED.search(why) for why in self.failed.values()) else Rejected
            raise error(
                what,
                why="; ".join(f"{name}: {why}" for name, why in sorted(self.failed.items())),
                next="correct that, then run this again: it continues where it failed",
            )


def play(
    wanted: Play, connections: Mapping[LinuxMachine, Connection | BfinfraError], home: Path, *, check: bool
) -> Played:
    """Run the role. An unreachable machine has failed; the others continue. Raises BfinfraError if Ansible
    itself doesn't run.
    """
    there = {machine: found for machine, found in connections.items() if not isinstance(found, BfinfraError)}
    received = _Received(
        {
            machine.name: str(found)
            for machine, found in connections.items()
            if isinstance(found, BfinfraError)
        }
    )
    if there:
        received.names = {f"m{number:04}": machine.name for number, machine in enumerate(there)}
        _run(wanted, there, home / uuid4().hex[:8], received, check=check)
    changed = {machine.name: received.changed.get(machine.name, 0) for machine in connections}
    return Played(wanted.role, changed, dict(received.failed), received.answers)


class _Received:
    """Sorts the events of a run by machine. `names`: of the machines, by those that Ansible knows them by: in
    its inventory `all` is a group and `[1:9]` a range.
    """

    def __init__(self, failed: dict[str, str]) -> None:
        self.failed = failed
        self.names: Mapping[str, str] = {}
        self.changed: dict[str, int] = {}
        self.answers: dict[str, dict[str, Mapping[str, Any]]] = {}
        self.ended = False
        self.words: list[str] = []

    def take(self, event: Mapping[str, Any]) -> bool:
        """The handler for ansible-runner; False: it need not write a file for the event."""
        data = event.get("event_data") or {}
        result, task = data.get("res") or {}, str(data.get("task") or "")
        name = self.names.get(str(data.get("host") or ""), "")
        match event.get("event"):
            case "runner_on_ok":
                self.answers.setdefault(name, {})[task] = result
            case "runner_on_failed" if not data.get("ignore_errors"):
                self.failed.setdefault(name, f"{task}: {_words(result)}")
            case "runner_on_unreachable":
                self.failed.setdefault(name, f"it can't be reached: {_words(result)}")
            case "playbook_on_stats":
                self.ended, changed = True, data.get("changed") or {}
                self.changed = {name: changed.get(alias, 0) for alias, name in self.names.items()}
                for alias in self.names.keys() - (data.get("processed") or {}).keys():
                    self.failed.setdefault(self.names[alias], "Ansible left it out")
            case "error" | "verbose" | "warning":
                self.words.append(str(event.get("stdout") or ""))
        return False


def _words(result: Mapping[str, object]) -> str:
    """Ansible's own message, and the command's output."""
    if "censored" in result:
        return "its output is hidden, as it may contain secrets"
    items = result.get("results")
    failed = (
        next((each for each in items if each.get("failed")), result) if isinstance(items, list) else result
    )
    parts = [str(failed.get(name) or "").strip() for name in ("msg", "stderr", "stdout")]
    return programs.excerpt("\n".join(dict.fromkeys(part for part in parts if part))) or "it gives no reason"


def _run(
    wanted: Play, there: Mapping[LinuxMachine, Connection], place: Path, received: _Received, *, check: bool
) -> None:
    place.mkdir(mode=0o700)
    (modules := place.with_name("modules")).mkdir(mode=0o700, exist_ok=True)
    hand = _Handed(place / "handed")
    texts = json.dumps(_secrets(wanted, there, received.names, hand)).encode()
    for name, content in _files(wanted, there, received.names, hand):
        path = place / name
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_whole(path, content, PRIVATE)
    with folder.handed(place / "secrets", texts) as secrets:
        cmdline = f"-e {shlex.quote(f'@{secrets}')}" + (" --check --diff" if check else "")
        runner = ansible_runner.interface.init_runner(
            private_data_dir=str(place),
            playbook="play.json",
            cmdline=cmdline,
            quiet=True,
            event_handler=received.take,
            cancel_callback=lambda: False,
            suppress_env_files=True,
        )
        runner.runner_mode = "subprocess"  # a terminal takes half a second to open, and nothing is asked
        config = runner.config
        config.suppress_output_file = True
        config.env = {
            **programs.environment(),
            **{k: v for k, v in config.env.items() if k.startswith(("ANSIBLE_", "RUNNER_", "AWX_"))},
            **_settings(place, wanted.roles or ROLES),
        }
        config.command = [
            sys.executable,
            "-P",
            str(BOUND),
            str(os.getpid()),
            str(modules),
            "playbook",
            *config.command[1:],
        ]
        wait = Wait(f"the role {wanted.role}", wanted.limit)
        config.subprocess_timeout = math.ceil(wait.left())
        with Path(os.devnull).open("rb") as nothing:
            config.input_fd = nothing
            runner.run()
    if runner.timed_out and wait.cut:
        raise wait.over(f"on {', '.join(machine.name for machine in there)}")
    if runner.timed_out:
        left = [machine.name for machine in there if machine.name not in received.failed]
        received.failed.update(dict.fromkeys(left, f"it was not done within {wanted.limit} s"))
    elif not received.ended:
        raise BfinfraError(
            Problem(
                f"Ansible did not run the role {wanted.role}",
                why=programs.excerpt("\n".join(received.words)) or f"it ended with {runner.rc}",
                next="run ansible-playbook --version by hand to see whether it works here",
            )
        )


class _Handed:
    """The files that a play takes along, under neutral names: Ansible expands `~` and `$` in a path."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._links: dict[Path, str] = {}

    def __call__(self, file: Path) -> str:
        """The link's path."""
        if file not in self._links:
            self._place.mkdir(mode=0o700, exist_ok=True)
            link = self._place / f"f{len(self._links)}"
            link.symlink_to(file.absolute())
            self._links[file] = str(link)
        return self._links[file]


def _files(
    wanted: Play, there: Mapping[LinuxMachine, Connection], names: Mapping[str, str], hand: _Handed
) -> Iterator[tuple[str, str]]:
    """The files of the run's folder, without secrets. `names`: of the machines in the inventory."""
    hosts = {
        alias: _variables(machine, there[machine], wanted, hand)
        for alias, machine in zip(names, there, strict=True)
    }
    yield "inventory/hosts.json", json.dumps({"all": {"hosts": hosts}})
    tasks = [
        {
            "name": wanted.role,
            "ansible.builtin.import_role": {"name": wanted.role, "tasks_from": wanted.tasks},
        }
    ]
    yield "project/play.json", json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}])
    yield (
        "ansible.cfg",
        "[defaults]\ninternal_poll_interval = 0.01\n",
    )  # by itself it waits a thousandth of a second, which keeps a processor busy


def _variables(
    machine: LinuxMachine, connection: Connection, wanted: Play, hand: _Handed
) -> dict[str, object]:
    own = {
        "ansible_host": DESTINATION,
        "ansible_user": machine.user,
        "ansible_ssh_common_args": connection.for_ansible(),
        "ansible_python_interpreter": machine.python,
        "ansible_become": machine.root and machine.user != "root",
    }
    found: dict[str, object] = inert(
        {**wanted.machines[machine], **own}, f"{wanted.role} on {machine.name}: ", hand
    )
    return found | ({"ansible_become_password": OWN_PASSWORD} if machine.sudo_password else {})


def _secrets(
    wanted: Play, there: Mapping[LinuxMachine, Connection], names: Mapping[str, str], hand: _Handed
) -> dict[str, object]:
    given = {name: secret.reveal() for name, secret in wanted.secrets.items()}
    sudo = {
        alias: inert(
            _one_line(machine.sudo_password.reveal(), machine.name), f"{machine.name}: sudo_password", hand
        )
        for alias, machine in zip(names, there, strict=True)
        if machine.sudo_password
    }
    return {SECRETS: inert({**wanted.texts, **given}, f"{wanted.role}: {SECRETS}.", hand), PASSWORDS: sudo}


def _one_line(password: str, machine: str) -> str:
    """What comes behind a line break would be read by the module that sudo starts."""
    if re.search(r"[\r\n]", password):
        raise BfinfraError(
            Problem(
                f"the sudo_password of {machine} can't be given to sudo",
                why="it has a line break, and sudo reads one line",
                next="correct what the reference leads to",
            )
        )
    return password


def _settings(place: Path, roles: Path) -> dict[str, str]:
    """All of Ansible's settings; no ansible.cfg counts. Modules go through the connection itself and leave no
    files.
    """
    return {
        "ANSIBLE_CONFIG": str(place / "ansible.cfg"),
        "ANSIBLE_HOME": str(place / "home"),
        "ANSIBLE_LOCAL_TEMP": str(place / "tmp"),
        "ANSIBLE_ROLES_PATH": str(roles),
        "ANSIBLE_HOST_KEY_CHECKING": "True",
        "ANSIBLE_SSH_ARGS": "",
        "ANSIBLE_PIPELINING": "True",
        "ANSIBLE_REMOTE_TEMP": "/tmp",  # noqa: S108 - a folder of its own there, 0700
        "ANSIBLE_SSH_TRANSFER_METHOD": "piped",
        "ANSIBLE_FORKS": str(AT_ONCE),
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        "ANSIBLE_NOCOLOR": "True",
        "ANSIBLE_DEPRECATION_WARNINGS": "False",
        "ANSIBLE_SSH_RETRIES": "0",
        "ANSIBLE_NO_TARGET_SYSLOG": "True",
        "ANSIBLE_GATHERING": "explicit",
        "ANSIBLE_INJECT_FACT_VARS": "False",  # a machine's answer would replace a role's variable
        "ANSIBLE_TIMEOUT": "30",
    }
