"""Programs are started by lists of words, and nothing of them is without a bound."""

from __future__ import annotations

import errno
import os
import sys
import time
from pathlib import Path

import pytest
from bad_input import corpus

from bfinfra.model import subprocesses, waits

ENV = {"PATH": os.defpath}
ECHO = "import sys, os; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
PYTHON = (sys.executable, "-I", "-S")


def run(*argv, limit=20, **how):
    return subprocesses.run(argv, env=ENV, limit=limit, **how)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_each_value_arrives_byte_for_byte_as_a_word_and_nothing_is_run(tmp_path):
    values = corpus.values(tmp_path / "canary")
    fit = {name: value for name, value in values.items() if name not in (*corpus.NUL, *corpus.LONG)}
    fit.pop("lone surrogate")
    done = run(*PYTHON, "-c", ECHO, *fit.values())
    assert done.stdout.split(b"\0") == [os.fsencode(value) for value in fit.values()]
    assert corpus.ran(tmp_path / "canary") == []
    assert len(fit) > 50


@pytest.mark.parametrize(
    ("name", "number", "why"),
    [
        *[(name, errno.EINVAL, "a word of its command has a NUL byte in it") for name in corpus.NUL],
        ("lone surrogate", errno.EILSEQ, "a word of its command is no text"),
    ],
)
def test_a_word_that_no_program_takes_is_refused_by_its_reason(name, number, why, tmp_path):
    with pytest.raises(OSError, match=why) as refused:
        run(*PYTHON, "-c", ECHO, corpus.values(tmp_path)[name])
    assert (refused.value.errno, refused.value.strerror) == (number, why)


def test_a_word_that_is_too_long_is_refused_by_the_system(tmp_path):
    with pytest.raises(OSError, match="Argument list too long"):
        run(*PYTHON, "-c", ECHO, corpus.values(tmp_path)["1 MiB"])


def test_a_line_for_a_shell_is_no_command():
    with pytest.raises(TypeError, match="never a line"):
        subprocesses.run("ls /", env=ENV, limit=1)


def test_a_program_is_named_by_its_path():
    with pytest.raises(FileNotFoundError) as refused:
        run("ls")
    assert (refused.value.errno, refused.value.strerror) == (errno.ENOENT, "there is no such program")


def test_a_program_in_the_working_folder_is_never_found(tmp_path, monkeypatch):
    (tmp_path / "ssh").write_text("#!/bin/sh\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for path in ("", ".", f"{os.pathsep}.{os.pathsep}", "../"):
        monkeypatch.setenv("PATH", path)
        assert subprocesses.find("ssh") is None
    monkeypatch.setenv("PATH", f".{os.pathsep}{tmp_path}")
    assert subprocesses.find("ssh") == str(tmp_path / "ssh")


@pytest.mark.parametrize("stream", [1, 2])
def test_an_answer_without_end_is_cut_at_its_bound_and_the_program_killed(stream):
    with pytest.raises(OSError, match="it answers more than 64 KiB"):
        run("/bin/sh", "-c", f"exec cat /dev/zero >&{stream}", largest=1 << 16)


def test_of_an_answer_without_a_bound_only_the_end_is_kept():
    done = run(
        "/bin/sh", "-c", "head -c 3000000 /dev/zero; echo; echo end; echo error >&2", largest=100, tail=True
    )
    assert (len(done.stdout), done.stdout[-11:]) == (100, b"\nend\nerror\n"[-11:])


def test_what_takes_too_long_is_killed_with_all_that_it_started(tmp_path):
    script = f"sleep 60 & echo $! > {tmp_path}/pid; echo begun; wait"
    began = time.monotonic()
    with pytest.raises(subprocesses.Overdue, match="not done within 1 s") as overdue:
        run("/bin/sh", "-c", script, limit=1)
    assert overdue.value.output == b"begun\n"
    assert (overdue.value.errno, overdue.value.strerror) == (errno.ETIMEDOUT, "it was not done within 1 s")
    pid = int((tmp_path / "pid").read_text())
    while not gone(pid):  # the kernel takes a moment; what was not killed sleeps for a minute
        assert time.monotonic() < began + 30
        time.sleep(0.01)


def test_what_prints_without_end_ends_at_its_limit_though_nothing_is_too_much(monkeypatch):
    now, read = [0.0], os.read

    def slowly(handle, size):
        if size == subprocesses.BLOCK:  # else it is Python that starts the program
            assert now[0] < 1, "its time is over"
            now[0] += 0.4
        return read(handle, size)

    monkeypatch.setattr(subprocesses, "BLOCK", 1)  # there is always more
    monkeypatch.setattr(waits, "now", lambda: now[0])
    monkeypatch.setattr(os, "read", slowly)
    with pytest.raises(subprocesses.Overdue, match="not done within 1 s"):
        run("/bin/cat", "/dev/zero", limit=1, tail=True)


def test_input_of_any_length_goes_in_while_output_comes_out():
    data = os.urandom(3 << 20)
    assert run("/bin/cat", stdin=data).stdout == data


def test_a_program_that_answers_before_it_has_read_all_is_waited_for():
    script = "head -c 8192 >/dev/null; head -c 1000000 /dev/zero; cat >/dev/null"
    assert len(run("/bin/sh", "-c", script, stdin=bytes(1 << 20)).stdout) == 1_000_000


def test_a_program_runs_where_it_is_told_and_in_a_session_of_its_own(tmp_path):
    with subprocesses.start(("/bin/cat",), env=ENV, cwd=tmp_path) as process:
        assert process.stdin is None
        assert process.communicate() == (b"", b"")
    assert run("/bin/pwd", cwd=tmp_path).stdout.decode().strip() == str(tmp_path.resolve())
    for how, own in (({}, True), ({"own_session": True}, True), ({"own_session": False}, False)):
        with subprocesses.start(("/bin/cat",), env=ENV, stdin=True, **how) as process:
            assert (os.getsid(process.pid) == process.pid) is own


def test_a_program_that_reads_nothing_is_no_error():
    assert run("/bin/true", stdin=bytes(1 << 20)).code == 0


def test_without_input_it_reads_an_end_at_once():
    assert run("/bin/cat").stdout == b""


def test_its_variables_are_those_that_it_is_given(monkeypatch):
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("GIT_SSH_COMMAND", "touch canary")
    assert b"GIT_SSH_COMMAND" not in run("/usr/bin/env").stdout
