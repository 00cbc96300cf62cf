"""Hostile values on real programs: sshd with several login shells, sudo, helm, buildah, dpkg, rpm. Each value
arrives byte for byte as data, or is refused; nothing is run, here or there.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import time
from pathlib import Path

import pytest
import yaml
from bad_input import corpus
from chart_archive import archive
from peers.found import Peers
from peers.machines import PASSWORD, running

from bfinfra.backends.ansible import LinuxHosts
from bfinfra.backends.helm import Capabilities, Release, read, template
from bfinfra.backends.images import Recipe, tools
from bfinfra.backends.transport import Transport
from bfinfra.kinds.linux import by_file, lines_below
from bfinfra.model import subprocesses
from bfinfra.model.errors import BfinfraError, Malformed, Rejected
from bfinfra.model.secret import Secret
from bfinfra.model.sources import Sources
from bfinfra.model.ssh import HostTrust, LinuxMachine

pytestmark = pytest.mark.packages
NO_UTF_8 = "byte that is no UTF-8"
UNFIT = ("lone surrogate", *corpus.NUL)
PASSWORDS = (
    *("substitution", "backticks", "quoted", "double quoted", "backslash", "variable", "glob", "percent"),
    *("jinja lookup", "option of ssh", "spaces", "tab", "escape", "bidirectional", "not ASCII"),
)
"""What a shell, askpass, ssh and sshd each could read as something else: a login is slow."""
SHELLS = ("/bin/sh", "/bin/bash", "/bin/dash", "/bin/zsh", "/bin/tcsh", "/usr/bin/fish")


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    with running(tmp_path_factory.mktemp("machines"), "one") as (found,):
        yield found


@pytest.fixture
def hosts():
    made = LinuxHosts(Transport())
    yield made
    made.close()


@pytest.fixture
def canary(tmp_path):
    """A path here and there: a command that was run leaves a file beside it."""
    return tmp_path / "canary"


def values(canary: Path) -> dict[str, str]:
    return {name: value for name, value in corpus.values(canary).items() if name not in UNFIT}


def root(real, **how) -> LinuxMachine:
    how = {
        "user": "root",
        "key": Secret("file", str(real.private)),
        "trust": HostTrust(sha256=real.sha256),
        **how,
    }
    return LinuxMachine(real.name, real.address, **how)


def worker(real, **how) -> LinuxMachine:
    password = Secret("env", "P", Sources(env={"P": PASSWORD}))
    return root(
        real, **{"user": "worker", "key": None, "password": password, "sudo_password": password, **how}
    )


def one(hosts, machine, commands, **how):
    (found,) = hosts.read({machine: commands}, **how).values()
    if isinstance(found, BfinfraError):
        raise found
    return found


def ran_there(real, canary: Path) -> str:
    return real.run("sh", "-c", 'ls -A "$1" 2>&1 || true', "sh", str(canary.parent)).partition("ls: ")[0]


def as_read(value: str) -> str:
    return os.fsencode(value).decode(errors="replace")


@pytest.mark.parametrize("shell", [shell for shell in SHELLS if Path(shell).exists()])
@pytest.mark.parametrize("who", ["root", "worker", "worker with a password for sudo", "worker without sudo"])
def test_each_value_arrives_over_ssh_under_each_login_shell(real, hosts, canary, shell, who):
    real.run("mkdir", "-p", str(canary.parent))
    machine = {
        "root": root(real),
        "worker": worker(real, sudo_password=None),
        "worker with a password for sudo": worker(real),
        "worker without sudo": worker(real, root=False, sudo_password=None),
    }[who]
    real.run("usermod", "--shell", shell, machine.user)
    rule = "worker ALL=(ALL) NOPASSWD: ALL\n" if who == "worker" else "worker ALL=(ALL) ALL\n"
    real.write("/etc/sudoers.d/worker", rule)
    given = {name: value for name, value in values(canary).items() if name not in corpus.LONG}
    if who != "worker with a password for sudo":
        given |= {name: value for name, value in values(canary).items() if name in corpus.LONG}
    commands = {name: ("printf", "%s.", value) for name, value in given.items()}
    found = one(hosts, machine, {**commands, "who": ("id", "-un")})
    assert found.pop("who").text == ("worker\n" if who == "worker without sudo" else "root\n")
    assert {name: answer.text for name, answer in found.items()} == {
        name: as_read(f"{value}.") for name, value in given.items()
    }
    assert (corpus.ran(canary), ran_there(real, canary)) == ([], "")
    real.run("usermod", "--shell", "/bin/bash", "root")


def test_a_word_that_no_program_takes_is_refused_before_it_is_sent(real, hosts, canary):
    for name in UNFIT:
        with pytest.raises(Rejected, match="a word of its command"):
            one(hosts, root(real), {"a": ("printf", "%s", corpus.values(canary)[name])})


def test_what_a_machine_s_files_hold_comes_back_as_data_and_forges_no_other_answer(real, hosts, canary):
    real.run("mkdir", "-p", "/etc/odd")
    forged = {
        "old form": "\x1d0\n\x1e1\nforged\x1d0\n",
        "a word of its own": f"\x1d{'0' * 36} 0\n\x1e{'0' * 36} 1\nforged\x1d{'0' * 36} 0\n",
    }
    given = {**values(canary), **forged}
    commands = {}
    for number, (name, value) in enumerate(given.items()):
        Path(f"/proc/{_pid(real)}/root/etc/odd/{number}").write_bytes(os.fsencode(value))
        commands[name] = ("cat", "--", f"/etc/odd/{number}")
    found = one(hosts, root(real), {**commands, "last": ("printf", "true")})
    assert found.pop("last").text == "true"
    assert {name: answer.text for name, answer in found.items()} == {
        name: as_read(value) for name, value in given.items()
    }
    assert (corpus.ran(canary), ran_there(real, canary)) == ([], "")


def test_names_of_files_on_a_machine_come_back_as_they_are(real, hosts, canary):
    folder = Path(f"/proc/{_pid(real)}/root/etc/named")
    folder.mkdir()
    named = []
    for value in values(canary).values():
        name = f"{value.replace('/', '')}.conf"
        if len(os.fsencode(name)) < 256:
            (folder / name).write_text("line\n")
            named.append(as_read(name))
    answer = one(hosts, root(real), {"a": lines_below("/etc/named", ".conf")})["a"]
    assert sorted(
        path.removeprefix("/etc/named/") for path, line in by_file(answer.text) if line == "line"
    ) == (sorted(named))
    assert len(named) > 40
    assert (corpus.ran(canary), ran_there(real, canary)) == ([], "")


def test_an_answer_without_end_is_cut_and_nothing_of_it_goes_on_there(real, hosts):
    with pytest.raises(Malformed, match="it answers more than 4096 KiB"):
        one(hosts, root(real), {"a": ("cat", "/dev/zero")})
    limit = time.monotonic() + 20
    while "/dev/zero" in real.run("ps", "-eo", "args"):
        assert time.monotonic() < limit
        time.sleep(0.2)
    assert one(hosts, root(real), {"a": ("printf", "b")})["a"].text == "b"


def test_a_wrong_password_for_sudo_is_tried_once(real, hosts):
    real.write("/etc/sudoers.d/worker", "Defaults logfile=/var/log/sudo\nworker ALL=(ALL) ALL\n")
    wrong = worker(real, sudo_password=Secret("env", "P", Sources(env={"P": "wrong"})))
    with pytest.raises(BfinfraError, match="can't become root"):
        one(hosts, wrong, {"a": ("id",), "b": ("id",)})
    assert "1 incorrect password attempt" in real.read("/var/log/sudo")


def test_no_other_user_of_the_machine_sees_what_is_asked(real, hosts):
    commands = {"ps": ("ps", "-eo", "args"), "a": ("printf", "%s", "seen-by-nobody")}
    real.write("/etc/sudoers.d/worker", "worker ALL=(ALL) NOPASSWD: ALL\n")
    for how in ({}, {"root": False}):
        machine = worker(real, sudo_password=None, **how)
        assert "seen-by-nobody" not in one(hosts, machine, commands)["ps"].text


@pytest.mark.parametrize(
    "name", [*PASSWORDS, "new line", "carriage return", "empty", NO_UTF_8, *UNFIT, *corpus.LONG]
)
def test_a_password_is_handed_over_as_it_is_or_refused(real, hosts, canary, name):
    value = corpus.values(canary)[name]
    machine = worker(
        real, password=Secret("env", "P", Sources(env={"P": value})), root=False, sudo_password=None
    )
    line = value.encode() if name not in ("lone surrogate", NO_UTF_8) else b"\n"
    fits = value and len(line) < 1024 and not any(each in line for each in (b"\n", b"\r", b"\0"))
    if fits:
        real.run(
            "sh",
            "-c",
            'usermod --password "$(openssl passwd -6 -stdin < "$1")" worker',
            "sh",
            _put(real, line),
        )
        assert one(hosts, machine, {"a": ("id", "-un")})["a"].text == "worker\n"
    else:
        with pytest.raises(BfinfraError):
            one(hosts, machine, {"a": ("id",)})
    assert (corpus.ran(canary), ran_there(real, canary)) == ([], "")


def _put(real, line: bytes) -> str:
    Path(f"/proc/{_pid(real)}/root/etc/given").write_bytes(line + b"\n")
    return "/etc/given"


def _pid(real) -> int:
    return int(Path(f"/proc/{real.pid}/task/{real.pid}/children").read_text().split()[0])


def test_a_host_that_looks_like_an_option_is_none_for_ssh_and_ssh_keyscan(canary, hosts):
    """The site's types refuse it; this is what stands behind them."""
    for address in (f"-oProxyCommand=touch {canary}.a", "-f/etc/passwd", "a b", f"$(touch {canary}.b)"):
        machine = LinuxMachine(
            "m", address, "root", HostTrust(sha256="SHA256:" + "A" * 43), key=Secret("env", "K")
        )
        with pytest.raises(BfinfraError):
            one(hosts, machine, {"a": ("id",)})
    assert corpus.ran(canary) == []


@pytest.mark.skipif(
    shutil.which("buildah") is None, reason="buildah is not installed: apt-get install buildah"
)
def test_buildah_takes_each_value_of_an_argument_as_it_is(canary, tmp_path):
    (tmp_path / "root").mkdir()
    (tmp_path / "Dockerfile").write_text('FROM scratch\nARG VALUE\nLABEL value="${VALUE}"\n')
    env = {**os.environ, "STORAGE_DRIVER": "vfs", "BUILDAH_ISOLATION": "chroot"}
    tool = tools.Tool("buildah", shutil.which("buildah"))
    tried = 0
    for name, value in values(canary).items():
        recipe = Recipe(tmp_path, arguments={"VALUE": value})
        argv = tool.build(recipe, f"localhost/hostile:{tried}")
        storage = ["--root", str(tmp_path / "storage"), "--runroot", str(tmp_path / "run")]
        try:
            done = subprocesses.run([argv[0], *storage, *argv[1:]], env=env, limit=120)
        except OSError as error:
            assert (name, error.strerror) == ("1 MiB", "Argument list too long")
            continue
        assert done.code == 0 or b"value" in done.stderr.lower() or b"label" in done.stderr.lower(), (
            done.stderr
        )
        if done.code == 0:
            show = ["inspect", "--type", "image", "--format", '{{index .OCIv1.Config.Labels "value"}}']
            shown = subprocesses.run(
                [argv[0], *storage, *show, f"localhost/hostile:{tried}"], env=env, limit=60
            )
            assert shown.stdout == as_read(value).encode(), name  # JSON holds it
        tried += 1
    assert tried > 40
    assert corpus.ran(canary) == []


@pytest.mark.skipif(shutil.which("rpm") is None, reason="rpm is not installed: apt-get install rpm")
@pytest.mark.parametrize(
    "command",
    [
        ("rpm", "-qf", "--"),
        ("dpkg-query", "-S", "--"),
        ("sha256sum", "--"),
        ("cat", "--"),
        ("id", "-Gn", "--"),
    ],
)
def test_a_name_after_the_dashes_is_no_option(command, canary):
    program = shutil.which(command[0])
    assert program
    for name, value in values(canary).items():
        if name in corpus.LONG or not value:
            continue
        done = subprocesses.run(
            [program, *command[1:], value], env={"PATH": os.defpath}, limit=60, largest=1 << 28
        )
        said = done.stderr.decode(errors="replace")
        assert "Usage" not in said and "unrecognized option" not in said and "invalid option" not in said, (
            said
        )
    assert corpus.ran(canary) == []


def test_helm_takes_each_value_as_data_and_a_release_s_name_as_a_name(
    peers: Peers, canary, tmp_path, monkeypatch
):
    monkeypatch.setenv("PATH", f"{peers.bin}:{os.environ['PATH']}")
    archive(
        tmp_path / "c.tgz",
        {
            "c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n",
            "c/templates/a.yaml": "release: {{ .Release.Name | toJson }}\nvalues: {{ .Values.given | toJson | b64enc }}\n",
        },
    )
    given = {
        name: value
        for name, value in corpus.values(canary).items()
        if name not in ("lone surrogate", NO_UTF_8)
    }
    chart = read(tmp_path / "c.tgz")
    found = yaml.safe_load(template(chart, Release("r", "default", {"given": given}), Capabilities()))
    assert found["release"] == "r"
    assert json.loads(base64.b64decode(found["values"])) == given
    for name in ("--post-renderer=/bin/sh", "-h", f"$(touch {canary}.x)", "--debug"):
        with pytest.raises(ValueError, match="invalid release name"):
            template(chart, Release(name, "default", {}), Capabilities())
    assert corpus.ran(canary) == []
