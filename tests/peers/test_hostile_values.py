"""Whatever a value says: Ansible, of each supported version, hands it on byte for byte, and runs nothing of it here.
Real modules on real files; what a value would run leaves a file behind.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from ansible_versions import LOCKED, VERSIONS, program
from bad_input import corpus
from peers import roots
from peers.role_cases import CASES, Case
from peers.roots import Root

from bfinfra.backends.ansible import folder
from bfinfra.backends.ansible import play as plays
from bfinfra.model.errors import BfinfraError
from bfinfra.model.secret import Secret
from bfinfra.model.sources import Sources
from bfinfra.model.ssh import HostTrust, LinuxMachine, Play

pytestmark = pytest.mark.packages
TELLING = (
    "jinja lookup",
    "jinja setting",
    "unsafe",
    "vault",
    "list",
    "number",
    "home of root",
    "option of ssh",
    "empty",
    "1 MiB",
)
"""Those of the values that differ in how they begin, or in what they are as a whole; with all others in one more."""
TRUST = HostTrust(sha256=f"SHA256:{'a' * 43}")
SMALL = ("vgpu_license", "main", "")
FEW = ("vgpu_license", "nvidia_container_toolkit")
"""The roles that are tried for each change; each takes a minute of processor."""
REFUSED = (*corpus.NUL, *corpus.UNENCODABLE)


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    return tmp_path / "canary"


@pytest.fixture
def home() -> Iterator[Path]:
    made = folder.make()
    yield made
    folder.remove(made)


@pytest.fixture(
    params=[
        pytest.param(each, marks=() if each == LOCKED else pytest.mark.thorough(alone=True))
        for each in VERSIONS
    ]
)
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Plays run on this version of ansible-core."""
    monkeypatch.setattr(plays, "sys", SimpleNamespace(executable=program(request.param)))
    return str(request.param)


def short(canary: Path) -> dict[str, str]:
    every = corpus.values(canary)
    rest = [text for name, text in every.items() if name not in (*REFUSED, *corpus.LONG)]
    return {name: every[name] for name in TELLING} | {"all others": "\n".join(rest)}


def whole(canary: Path) -> dict[str, str]:
    return {name: text for name, text in corpus.values(canary).items() if name not in REFUSED}


def played(
    role: tuple[str, str, str],
    values: Mapping[str, str],
    tmp_path: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One play, with a machine for each value; asserts that all of it arrives, and nothing runs here."""
    file = tmp_path / """{{ lookup("pipe", "touch canary.name") }} $HOME '-o.deb"""
    file.write_bytes(b"$ANSIBLE_VAULT;1.1;AES256\n\x00\xff{{ 7 * 191 }}")
    secret = "\n".join(text for name, text in values.items() if name not in corpus.LONG)
    with roots.running(tmp_path / "machines", values) as machines:
        monkeypatch.setenv("PATH", f"{tmp_path}/machines/bin:{os.environ['PATH']}")
        cases = {name: CASES[role](value, secret, file) for name, value in values.items()}
        cases = {name: case for name, case in cases.items() if _takes(name, case)}
        asked = {name: _machine(name, values[name], at) for at, name in enumerate(cases)}
        for name, case in cases.items():
            for path, content in case.there.items():
                machines[name].put(path, content)
        found = plays.play(
            Play(
                role[0],
                {asked[name]: case.variables for name, case in cases.items()},
                role[1],
                texts=next(iter(cases.values())).texts,
            ),
            {asked[name]: machines[name] for name in cases},  # type: ignore[misc]  # a Root leads there as a Connection does
            home,
            check=False,
        )
        assert found.failed == {}, found.failed
        assert corpus.ran(tmp_path / "canary") == []
        for name, case in cases.items():
            _arrived(name, case, machines[name])
            password = asked[name].sudo_password
            assert password is not None
            assert machines[name].read("/noted/password") == password.reveal().encode(), name
            others = [each.name[-LETTERS:].encode() for each in asked.values() if each != asked[name]]
            assert not _among(others, machines[name]), name


LETTERS = 7
"""Of the mark by which a password is known."""


def _machine(name: str, value: str, at: int) -> LinuxMachine:
    """A machine whose name is a value, too, and whose sudo has a password that begins with it."""
    first = (value[:99].splitlines() or [""])[0]
    mark = f"pw-{at:03}!"
    secret = Secret("env", name, Sources(env={name: f"{first} {mark}"}))
    named = f"{{{{ 7*191 }}}}[1:3],all:!{name}{mark}"
    return LinuxMachine(named, "x", "worker", TRUST, sudo_password=secret)


def _takes(name: str, case: Case) -> bool:
    """Return whether the role's variables can be handed over: a word of a command has a limit."""
    try:
        plays.inert(case.variables, "", str)
    except BfinfraError:
        assert name in corpus.LONG, name
        return False
    return True


def _arrived(name: str, case: Case, machine: Root) -> None:
    for path, content in case.arrives.items():
        got = machine.read(path)
        found = frozenset(got.split(b"\n")) - {b""} if isinstance(content, frozenset) and got else got
        assert found == content, f"{name}: {path} is {got!r:.300} and not {content!r:.300}"
    calls = machine.calls()
    for call in case.calls:
        assert any(_is(each, call) for each in calls), f"{name}: {call!r:.500} is not among {calls!r:.3000}"


def _is(given: list[bytes], call: tuple[str | frozenset[str], ...]) -> bool:
    words = [word.encode() for word in call if isinstance(word, str)]
    loose = [{word.encode() for word in words} for words in call if isinstance(words, frozenset)]
    return given[: len(words)] == words and [set(given[len(words) :])] == (loose or [set()])


def _among(words: list[bytes], machine: Root) -> list[Path]:
    """The files of a machine that hold one of the words."""
    files = (path for path in machine.path("/").rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in files if any(word in path.read_bytes() for word in words)]


@pytest.mark.parametrize(
    "role",
    [pytest.param(each, marks=() if each[0] in FEW else pytest.mark.thorough(alone=True)) for each in CASES],
    ids=" ".join,
)
def test_every_value_in_every_variable_of_a_role_arrives_and_none_runs(
    role: tuple[str, str, str],
    version: str,
    tmp_path: Path,
    canary: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    played(role, short(canary), tmp_path, home, monkeypatch)


@pytest.mark.thorough(alone=True)
def test_each_value_arrives_on_a_machine_of_its_own(
    version: str, tmp_path: Path, canary: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one small role, as a play of all roles with so many machines takes hours."""
    played(SMALL, whole(canary), tmp_path, home, monkeypatch)


LIAR = """#!/bin/sh
# Stands in for the machine's Python: keeps all that it is sent, and answers what it likes.
cat >> /noted/modules
cp -r /tmp/ansible-tmp-* /noted/ 2> /dev/null
cat /noted/answer
"""
ANSWER = {
    "changed": True,
    "rc": 0,
    "stdout": f"sha256:{0:064}",
    "stdout_lines": ["{{ 1 }}"],
    "stat": {"exists": False},
    "msg": "{{ lookup('pipe', 'touch CANARY.msg') }}",
    "_ansible_facts_cacheable": True,
    "_ansible_notify": ["x"],
    "results": [{"add_host": {"host_name": "m0001"}}],
}
TAKEN = {
    "source": "FILE",
    "mark_sealed": "{{ lookup('pipe', 'touch CANARY.fact') }}",
    "ansible_connection": "local",
    "ansible_host": "127.0.0.1",
    "ansible_python_interpreter": "touch CANARY.python;",
    "ansible_ssh_common_args": "-o ProxyCommand='touch CANARY.proxy'",
    "ansible_ssh_executable": "/bin/touch CANARY.ssh",
    "ansible_become_password": "{{ bfinfra_sudo }}",
    "bfinfra_secrets": {"license": "{{ bfinfra_sudo }}"},
}


@pytest.mark.parametrize(("more", "why"), [({}, ""), ({"__ansible_type": "TrustedAsTemplate"}, "not JSON")])
def test_a_machine_whose_answers_lie_gets_no_file_and_no_password_and_another_gets_its_own(
    more: dict[str, str],
    why: str,
    version: str,
    tmp_path: Path,
    canary: Path,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept, sent = tmp_path / "kept", tmp_path / "sent"
    kept.write_text("only this machine's")
    sent.write_text("an image")
    lies = {
        **ANSWER,
        **more,
        "ansible_facts": TAKEN,
        "add_host": {"host_name": "m0001", "host_vars": TAKEN, "groups": ["all"]},
        "add_group": "all",
        "invocation": {"module_args": TAKEN},
    }
    answer = json.dumps(lies).replace("FILE", str(kept)).replace("CANARY", str(canary))
    with roots.running(tmp_path / "machines", ("liar", "honest")) as machines:
        monkeypatch.setenv("PATH", f"{tmp_path}/machines/bin:{os.environ['PATH']}")
        machines["liar"].put("/noted/answer", answer.encode())
        machines["liar"].put("/noted/python", LIAR.encode())
        machines["liar"].path("/noted/python").chmod(0o755)
        liar = replace(_machine("liar", "", 0), python="/noted/python")
        asked = {"liar": liar, "honest": _machine("honest", "", 1)}
        case = CASES["loaded_image", "main", ""]("own", "", sent)
        found = plays.play(
            Play("loaded_image", {asked[name]: case.variables for name in machines}),
            {asked[name]: machines[name] for name in machines},  # type: ignore[misc]  # a Root leads there as a Connection does
            home,
            check=False,
        )
        assert set(found.failed) == ({asked["liar"].name} if why else set())
        assert why in found.failed.get(asked["liar"].name, "")
        _arrived("honest", case, machines["honest"])
        assert corpus.ran(canary) == []
        assert not _among([kept.read_bytes(), b"pw-001!"], machines["liar"])


def test_root_writes_through_no_link_of_a_users(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file := tmp_path / "client.deb").write_text("a package")
    own, theirs = "srv/nobody/.bitfusion", "srv/roots"
    links = {"folder": own, "file": f"{own}/client.yaml", "next file": f"{own}/client.yaml.new"}
    with roots.running(tmp_path / "machines", links) as machines:
        monkeypatch.setenv("PATH", f"{tmp_path}/machines/bin:{os.environ['PATH']}")
        for name, link in links.items():
            machines[name].put(f"/{theirs}/x", b"root's")
            at = machines[name].path(link)
            at.parent.mkdir(parents=True, exist_ok=True)
            at.symlink_to(f"/{theirs}" if name == "folder" else f"/{theirs}/x")
            os.chown(at.parent, 65534, 65534)
        asked = {name: _machine(name, "", at) for at, name in enumerate(links)}
        case = CASES["bitfusion_client", "main", ""]("v", "a secret", file)
        users = {"users": [{"name": "nobody", "path": f"/{own}"}]}
        found = plays.play(
            Play(
                "bitfusion_client",
                {asked[name]: {**case.variables, **users} for name in links},
                texts=case.texts,
            ),
            {asked[name]: machines[name] for name in links},  # type: ignore[misc]  # a Root leads there as a Connection does
            home,
            check=False,
        )
        assert set(found.failed) == {asked["folder"].name, asked["next file"].name}
        assert "already exists as a link" in found.failed[asked["folder"].name]
        for machine in machines.values():
            assert machine.read(f"/{theirs}/x") == b"root's"
            assert machine.path(theirs).stat().st_uid == 0
            assert [path.name for path in machine.path(theirs).iterdir()] == ["x"]
        written = machines["file"].path(links["file"])
        assert (written.is_symlink(), written.read_text(), written.stat().st_uid) == (
            False,
            "a secret",
            65534,
        )
        assert written.stat().st_mode & 0o777 == 0o600
