"""Real Linux machines for tests: systemd, sshd, dpkg, each in namespaces and on an overlay file system of its
own. Needs root, unshare, sshd, ip.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).with_name("machine.sh")
NEEDED = ("unshare", "ip", "sshd", "ssh", "ssh-keygen", "openssl", "sudo", "useradd")
PASSWORD = "Worker's own 1"
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
SYSTEMD = Path("/lib/systemd/systemd")
PATIENCE = 20  # seconds to boot
OWN = (
    "etc/ssh/machine",
    "etc/systemd/system/machine",
    "etc/passwd",
    "etc/group",
    "etc/gshadow",
    "etc/shadow",
    "etc/subuid",
    "etc/subgid",
    "etc/machine-id",
    "etc/systemd/system/networking.service",
    "etc/systemd/system/NetworkManager.service",
    "etc/systemd/system/systemd-",
    "var/cache/ldconfig",
    "etc/.pwd.lock",
)


PACKAGE_MANAGERS = (
    "var/lib/dpkg",
    "var/lib/PackageKit",
    "var/cache/apt",
    "var/cache/debconf",
    "var/lib/apt",
    "var/cache/man",
    "var/cache/ldconfig",
)
WANTS = "etc/systemd/system/multi-user.target.wants"


class Unfit(RuntimeError):
    """Why there can be no such machines here."""


@dataclass(frozen=True)
class Real:
    """A machine that runs. `private`: file of the key that lets root in; `sha256`: its host key's
    fingerprint.
    """

    name: str
    address: str
    private: Path
    public_host_key: str
    sha256: str
    pid: int
    folder: Path

    def written(self) -> dict[str, str]:
        """What its file system holds that this machine's doesn't: path → mode and digest. What booting writes
        is left out.
        """
        upper = Path(f"/proc/{self.pid}/root{self.folder}/u")
        found = {}
        for path in sorted(upper.rglob("*")):
            name, info = str(path.relative_to(upper)), path.lstat()
            if not stat.S_ISDIR(info.st_mode) and not name.startswith(OWN):
                content = (
                    hashlib.sha256(path.read_bytes()).hexdigest()[:16]
                    if stat.S_ISREG(info.st_mode)
                    else "special"
                )
                found[name] = f"{stat.S_IMODE(info.st_mode):04o} {info.st_mtime_ns} {content}"
        return found

    def run(self, *argv: str) -> str:
        """What a command says there, run from outside, without SSH."""
        enter = [
            "nsenter",
            "--target",
            str(_child(self.pid)),
            "--mount",
            "--pid",
            "--net",
            "--uts",
            "--ipc",
            f"--root=/proc/{_child(self.pid)}/root",
            "--wd=/",
        ]
        return subprocess.run(
            [*enter, *argv],
            capture_output=True,
            text=True,
            check=True,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        ).stdout

    def read(self, path: str) -> str:
        """A file there."""
        return Path(f"/proc/{_child(self.pid)}/root{path}").read_text()

    def write(self, path: str, text: str) -> None:
        """Somebody there writes a file."""
        target = Path(f"/proc/{_child(self.pid)}/root{path}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


def check() -> None:
    """Unfit where something is missing."""
    if missing := [name for name in NEEDED if shutil.which(name, path=PATH) is None]:
        raise Unfit(f"no {', '.join(missing)} here: apt-get install openssh-server sudo iproute2 openssl")
    if not SYSTEMD.exists():
        raise Unfit(f"no {SYSTEMD} here: apt-get install systemd dbus")
    if os.geteuid():
        raise Unfit("only root makes network and mount namespaces")


@contextlib.contextmanager
def running(folder: Path, *names: str) -> Iterator[list[Real]]:
    """So many machines, booted side by side; they and all that they wrote are gone at the end."""
    check()
    with contextlib.ExitStack() as stack:
        folder.mkdir(exist_ok=True)
        keys = folder / "key"
        _keygen(keys, "client")
        started = [
            stack.enter_context(_machine(folder / name, name, number, keys))
            for number, name in enumerate(names)
        ]
        for each in started:
            _await(each)
        yield started


@contextlib.contextmanager
def _machine(folder: Path, name: str, number: int, client: Path) -> Iterator[Real]:
    folder.mkdir()
    given, at = folder / "given", folder / "fs"
    given.mkdir()
    at.mkdir()
    _keygen(given / "host_key", name)
    (given / "name").write_text(name)
    shutil.copy(client.with_suffix(".pub"), given / "authorized_keys")
    hashed = subprocess.run(
        ["openssl", "passwd", "-6", "-stdin"], input=PASSWORD, capture_output=True, text=True, check=True
    ).stdout.strip()
    (given / "shadow").write_text(f"worker:{hashed}:19000:0:99999:7:::\n")
    command = [
        "unshare",
        "--mount",
        "--pid",
        "--net",
        "--uts",
        "--ipc",
        "--cgroup",
        "--fork",
        "--kill-child=KILL",
        str(SCRIPT),
        str(at),
        str(given),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={"PATH": PATH},
        )
    link, net = f"bf{os.getpid() % 10**6}-{number}", f"10.{200 + (os.getpid() >> 8) % 50}.{os.getpid() % 256}"
    try:
        _until(lambda: _child(process.pid) and (at / ".").exists(), process, folder)
        inside = ["nsenter", "--target", str(_child(process.pid)), "--net"]
        here, there = f"{net}.{4 * number + 1}", f"{net}.{4 * number + 2}"
        for argv in (
            [
                "ip",
                "link",
                "add",
                link,
                "type",
                "veth",
                "peer",
                "name",
                "eth0",
                "netns",
                str(_child(process.pid)),
            ],
            ["ip", "address", "add", f"{here}/30", "dev", link],
            ["ip", "link", "set", link, "up"],
            [*inside, "ip", "address", "add", f"{there}/30", "dev", "eth0"],
            [*inside, "ip", "link", "set", "eth0", "up"],
        ):
            subprocess.run(argv, check=True, env={"PATH": PATH}, capture_output=True)
        public = (given / "host_key.pub").read_text()
        sha256 = subprocess.run(
            ["ssh-keygen", "-lf", str(given / "host_key.pub")], capture_output=True, text=True, check=True
        ).stdout.split()[1]
        yield Real(name, there, client, public, sha256, process.pid, at)
    finally:
        subprocess.run(
            ["ip", "link", "delete", link], check=False, env={"PATH": PATH}, capture_output=True
        )  # by itself it goes some time after its namespace, and its name is the next one's
        with contextlib.suppress(ProcessLookupError):
            os.kill(
                _child(process.pid) or process.pid, signal.SIGKILL
            )  # process 1 of the namespace: all of it ends
        process.kill()
        process.wait()


def _await(machine: Real) -> None:
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        done = subprocess.run(
            ["ssh-keyscan", "-T", "2", machine.address], capture_output=True, text=True, check=False
        )
        if done.stdout.strip():
            return
        time.sleep(0.05)
    raise Unfit(f"{machine.name} does not boot: {(machine.folder.parent / 'log').read_text()[-500:]}")


def _until(done: Callable[[], object], process: subprocess.Popen[bytes], folder: Path) -> None:
    limit = time.monotonic() + PATIENCE
    while not done():
        if process.poll() is not None or time.monotonic() > limit:
            raise Unfit(f"no namespaces here: {(folder / 'log').read_text()[-500:]}")
        time.sleep(0.01)


def _child(pid: int) -> int:
    """The first process in the namespaces; 0 while there is none."""
    try:
        return int((Path(f"/proc/{pid}/task/{pid}/children").read_text().split() or ["0"])[0])
    except OSError:
        return 0


def _keygen(path: Path, comment: str) -> None:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", str(path)],
        check=True,
        stdin=subprocess.DEVNULL,
    )


def hosts_of(machines: Iterable[Real]) -> dict[str, object]:
    """The machines as a site lists them under `linux_host`."""
    return {
        each.name: {
            "address": each.address,
            "key": {"file": str(each.private)},
            "trust": {"sha256": each.sha256},
        }
        for each in machines
    }


def own(machine: Real, *more: str) -> dict[str, str]:
    """What was written to a machine, without what its package managers keep for themselves. `more`: other
    folders to leave out.
    """
    left_out = (*PACKAGE_MANAGERS, *more)
    return {name: state for name, state in machine.written().items() if not name.startswith(left_out)}
