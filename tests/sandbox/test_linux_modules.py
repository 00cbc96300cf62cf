"""What Ansible sends, read."""

from __future__ import annotations

import ast
import contextlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

from bfinfra.sandbox.linux import modules

ARGUMENTS = json.dumps(
    {"ANSIBLE_MODULE_ARGS": {"path": "/etc/x", "follow": True, "_ansible_check_mode": True}}
)
PROGRAM = f"_ansiballz_main(ansible_module='ansible.modules.file', params={ARGUMENTS!r})\n".encode()


def test_a_module_is_known_by_what_is_sent():
    assert modules.sent(PROGRAM) == modules.Sent("file", {"path": "/etc/x"}, check=True)
    assert "run no Python" in str(modules.sent(b"print(1)"))


def test_two_modules_at_once_are_parsed_one_after_the_other(monkeypatch):
    """CPython 3.11's parser has one count of depth for all threads: where they meet in it, one ends with a
    SystemError, and the machine seemed gone.
    """
    meeting, met = threading.Barrier(2), []

    def parsing(program: bytes) -> ast.Module:
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait(0.2)
            met.append(program)
        return ast.parse(program)

    monkeypatch.setattr(modules, "ast", SimpleNamespace(**{**vars(ast), "parse": parsing}))
    with ThreadPoolExecutor(2) as pool:
        assert [found.name for found in pool.map(modules.sent, [PROGRAM, PROGRAM])] == ["file", "file"]
    assert met == []
