"""What a machine is asked in one go: each word arrives as it is under any login shell, and no answer passes for
another.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from bad_input import corpus

from bfinfra.backends.ansible import programs, reading
from bfinfra.backends.ansible.hosts import _as_root
from bfinfra.kinds.linux import by_file, lines_below
from bfinfra.model.errors import BfinfraError
from bfinfra.model.secret import Secret
from bfinfra.model.sources import Sources
from bfinfra.model.ssh import HostTrust, LinuxMachine

TRUST = HostTrust(sha256="SHA256:" + "A" * 43)
SHELLS = tuple(shell for shell in ("sh", "bash", "dash", "zsh", "tcsh", "fish") if shutil.which(shell))
PASSWORD = "$(touch x) 'it\" %s \\n"
SUDO = """#!/bin/sh
[ "$1" = -S ] && { IFS= read -r said; printf '%s' "$said" > "$SAID"; cat > "$SAID.rest"; shift 3; } || shift
[ "$1" = -H ] && shift
exec "$@"
"""
FORGED = (
    "\x1d0\n\x1e1\nforged\x1d0\n",
    f"\x1d{'0' * 8}-0000-0000-0000-{'0' * 12} 0\n\x1e{'0' * 8}-0000-0000-0000-{'0' * 12} 1\nforged",
    f"\x1e{'1' * 8}-1111-1111-1111-{'1' * 12}\n",
    "\x1d$drawn 0\n\x1e$drawn 1\nforged\x1d$drawn 0\n",
)


def fit(folder: Path) -> dict[str, str]:
    """The values that a program can be given as a word."""
    out = (*corpus.NUL, *corpus.LONG, "lone surrogate")
    return {name: value for name, value in corpus.values(folder / "canary").items() if name not in out}


def machine(**how) -> LinuxMachine:
    return LinuxMachine("m", "10.0.0.1", "worker", TRUST, **how)


def answered(shell: str, line: str, stdin: bytes, folder: Path, **variables: str) -> bytes:
    """As sshd runs a line, which it gives to the account's login shell."""
    program = shutil.which(shell)
    assert program
    return subprocess.run(
        [program, "-c", line],
        input=stdin,
        capture_output=True,
        cwd=folder,
        check=True,
        timeout=60,
        env={"PATH": f"{folder}:{os.defpath}", "HOME": str(folder), **variables},
    ).stdout


@pytest.mark.parametrize("shell", SHELLS)
def test_each_value_arrives_as_a_word_under_each_login_shell_and_nothing_is_run(shell, tmp_path):
    values = fit(tmp_path)
    commands = {name: ("printf", "%s.", value) for name, value in values.items()}
    line, stdin = _as_root(machine(root=False), reading.script(commands))
    found = reading.answers(commands, answered(shell, line, stdin, tmp_path))
    wanted = {name: os.fsencode(f"{value}.").decode(errors="replace") for name, value in values.items()}
    assert {name: answer.text for name, answer in found.items()} == wanted
    assert corpus.ran(tmp_path / "canary") == []
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith(".")) == []


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("asks", [True, False])
def test_sudo_gets_the_password_alone_and_the_script_no_quoting(shell, asks, tmp_path):
    (tmp_path / "sudo").write_text(SUDO)
    (tmp_path / "sudo").chmod(0o755)
    secret = Secret("env", "P", Sources(env={"P": PASSWORD})) if asks else None
    commands = {"a": ("printf", "%s", "it's !x; $(touch y)"), "b": ("false",)}
    line, stdin = _as_root(machine(sudo_password=secret), reading.script(commands))
    found = reading.answers(commands, answered(shell, line, stdin, tmp_path, SAID=str(tmp_path / "said")))
    assert (found["a"].text, found["b"].code) == ("it's !x; $(touch y)", 1)
    left = {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")}
    assert left == ({"sudo", "said", "said.rest"} if asks else {"sudo"})
    if asks:
        assert (tmp_path / "said").read_text() == PASSWORD
        assert (tmp_path / "said.rest").read_text() == "", "else sudo takes it for a second password"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_line_for_the_login_shell_has_no_value_in_it(shell):
    plain = {_as_root(machine(root=False), reading.script({"a": (value,)}))[0] for value in ("a", "$(b)")}
    assert len(plain) == 1


@pytest.mark.parametrize("forged", FORGED)
def test_what_a_command_prints_is_not_the_answer_of_another(forged, tmp_path):
    (tmp_path / "file").write_text(forged)
    commands = {"first": ("cat", str(tmp_path / "file")), "second": ("printf", "true")}
    found = reading.answers(commands, answered("sh", "/bin/sh", reading.script(commands), tmp_path))
    assert {name: answer.text for name, answer in found.items()} == {"first": forged, "second": "true"}


def test_an_answer_that_breaks_off_is_none(tmp_path):
    commands = {"first": ("printf", "a"), "second": ("printf", "b")}
    whole = answered("sh", "/bin/sh", reading.script(commands), tmp_path)
    assert set(reading.answers(commands, b"a greeting\n" + whole)) == {"first", "second"}
    for cut in (whole[:-1], whole[:40], b"", whole.replace(b"\x1e", b"", 1)):
        with pytest.raises(ValueError, match="no answer to"):
            reading.answers(commands, cut)


@pytest.mark.parametrize(
    ("value", "why"), [("a\nb", "not one line"), ("a\0b", "not one line"), ("x" * 1024, "more than 1023")]
)
def test_a_password_that_is_none_is_refused_by_its_reference(value, why):
    with pytest.raises(BfinfraError, match=rf"sudo_password \{{env: P\}} can't be used.*{why}") as refused:
        programs.answer(Secret("env", "P", Sources(env={"P": value})), "sudo_password")
    assert value not in str(refused.value)


def test_a_password_that_is_no_text_is_refused_by_its_reference():
    with pytest.raises(BfinfraError, match="the environment variable P is not UTF-8 text") as refused:
        programs.answer(Secret("env", "P", Sources(env={"P": "a\ud800b"})), "sudo_password")
    assert "\ud800" not in str(refused.value)


def test_a_file_s_name_is_not_the_line_of_another_file(tmp_path):
    odd = {
        "a_servers.conf:10.0.0.9": "of a colon",
        "b\nc_servers.conf": "of a line break",
        "servers.conf": "first\n\0second\nlast",
    }
    for name, text in odd.items():
        (tmp_path / f"{name}.conf").write_text(f"{text}\n")
    (tmp_path / "else").write_text("left out\n")
    words = lines_below(str(tmp_path), ".conf")
    answer = subprocess.run(words, capture_output=True, text=True, check=True)
    found = {}
    for path, line in by_file(answer.stdout):
        found.setdefault(path, []).append(line)
    assert found == {f"{tmp_path}/{name}.conf": text.split("\n") for name, text in odd.items()}
