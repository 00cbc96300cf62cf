"""Ansible's process and its workers end with the run that started them."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

LIMIT = 20  # seconds
PROGRAM = """
import os, signal, sys, time
from bfinfra.backends.ansible import bound
bound.tie(os.getppid())
worker = os.fork()
if worker == 0:
    if os.fork() == 0:
        print(os.getpid(), os.getppid(), flush=True)
    time.sleep(600)
sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""


def runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_ansible_forked_ends_with_it() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as ansible:
        assert ansible.stdout is not None
        assert ansible.stdin is not None
        forked = ansible.stdout.readline().split()
        assert [runs(pid) for pid in forked] == [True, True]
        ansible.stdin.close()
    limit = time.monotonic() + LIMIT
    while any(runs(pid) for pid in forked):
        assert time.monotonic() < limit, f"still there: {forked}"
        time.sleep(0.01)


def test_it_does_not_begin_where_who_started_it_is_gone() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from bfinfra.backends.ansible import bound; bound.tie(1 << 30); print('began')",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
