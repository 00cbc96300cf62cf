"""Many Linux machines at little cost: a root folder each, an overlay of this machine's own, and an `ssh` that runs its
command there as the login would. Modules, shells and files are real; package managers, systemd and kubeadm are
stand-ins that note their arguments byte for byte. Needs root and unshare.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

NOTED = "noted"
"""The folder on a machine where stand-ins note what they are given."""
SSH = """#!/bin/sh
# ssh OPTION... machine COMMAND: in the root folder that HostName= names, as the user that User= names.
for each; do case $each in HostName=*) at=${each#HostName=};; esac; command=$each; done
exec unshare --mount --propagation private /bin/sh -c '
  mount -t overlay overlay -o "lowerdir=$1/../programs:/,upperdir=$1/u,workdir=$1/w" "$1/r" &&
  mount -t proc proc "$1/r/proc" && mount --bind /dev "$1/r/dev" &&
  exec chroot "$1/r" /bin/sh -c "$2"' sh "$at" "$command"
"""
PROGRAM = """#!/bin/sh
# Notes how many words there are, and each, with a NUL behind it.
printf '%s\\0' $# "$(basename "$0")" "$@" >> /noted/calls
"""
PROGRAMS = {
    **dict.fromkeys(("apt-get", "yum", "modprobe", "sysctl", "swapoff", "swapon", "load-image"), ""),
    "kubeadm": "cp /var/lib/bfinfra/kubeadm_cluster.discovery /noted/discovery 2> /dev/null || :\n",
    "kubectl": '[ "$3" != get ] || { printf node/; cat /noted/there; }\n',
    "uninstall-it": "rm /usr/bin/flexdirect\n",
    "dpkg-query": "cat /noted/there 2> /dev/null || :\n",
    "rpm": "cat /noted/there 2> /dev/null || :\n",
    "flexdirect": 'case " $* " in *" -l "*) ;; *) cat > /noted/stdin;; esac\n',
    "systemctl": "[ \"$1\" != show ] || printf '%s\\n' Id=x LoadState=loaded ActiveState=active UnitFileState=enabled\n",
    "show-image": "printf sha256:%064d 0\n",
    "sudo": """\
while [ $# -gt 0 ]; do case $1 in -p) printf %s "$2" >&2; shift 2;; -u) shift 2;; -*) shift;; *) break;; esac; done
IFS= read -r word && printf %s "$word" > /noted/password && exec "$@"
""",
}


@dataclass(frozen=True)
class Root:
    """A machine. `folder`: with `u`, what was written there."""

    name: str
    folder: Path

    def path(self, path: str) -> Path:
        """Where a path of the machine is on this one."""
        return self.folder / "u" / path.lstrip("/")

    def read(self, path: str) -> bytes | None:
        """A file that was written there."""
        found = self.path(path)
        return found.read_bytes() if found.is_file() else None

    def put(self, path: str, content: bytes) -> None:
        """Somebody there writes a file."""
        self.path(path).parent.mkdir(parents=True, exist_ok=True)
        self.path(path).write_bytes(content)

    def calls(self) -> list[list[bytes]]:
        """The stand-ins that ran, with their arguments."""
        words, found = (self.read(f"/{NOTED}/calls") or b"").split(b"\0")[:-1], list[list[bytes]]()
        while words:
            count = int(words[0]) + 2
            found.append(words[1:count])
            words = words[count:]
        return found

    def for_ansible(self) -> str:
        """The options of ssh that lead there."""
        return shlex.join(["-o", f"HostName={self.folder}"])


@contextlib.contextmanager
def running(folder: Path, names: Iterable[str]) -> Iterator[Mapping[str, Root]]:
    """So many machines, and in `folder/bin` the `ssh` that leads to them."""
    at = folder / "roots"
    (folder / "bin").mkdir(parents=True)
    at.mkdir()
    (folder / "bin/ssh").write_text(SSH)
    (folder / "bin/ssh").chmod(0o755)
    subprocess.run(["mount", "-t", "tmpfs", "none", str(at)], check=True)
    try:
        for name, more in PROGRAMS.items():
            program = at / "programs/usr/local/sbin" / name
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(PROGRAM + more)
            program.chmod(0o755)
        (at / "programs" / NOTED).mkdir()
        (at / "programs" / NOTED).chmod(0o777)
        yield {name: _root(name, at / f"r{number}") for number, name in enumerate(names)}
    finally:
        subprocess.run(["umount", str(at)], check=True)


def _root(name: str, at: Path) -> Root:
    for each in "uwr":
        (at / each).mkdir(parents=True)
    at.joinpath("u").chmod(0o755)
    return Root(name, at)


def possible() -> bool:
    """Return whether there can be such machines here."""
    return not os.geteuid() and shutil.which("unshare") is not None
