"""What Ansible gets as variables: every text is data, or is refused by its name before anything is begun."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bad_input import corpus
from hypothesis import given
from hypothesis import strategies as st

from bfinfra.backends.ansible import play as plays
from bfinfra.backends.ansible.inert import OWN_PASSWORD, PATHS, UNSAFE, WORD, inert
from bfinfra.model.errors import BfinfraError
from bfinfra.model.secret import Secret
from bfinfra.model.sources import Sources
from bfinfra.model.ssh import HostTrust, LinuxMachine, Play

TRUST = HostTrust(sha256=f"SHA256:{'a' * 43}")
REFUSED = (*corpus.NUL, *corpus.UNENCODABLE)
VALUES = corpus.values(Path("/nowhere/canary"))
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
NAMES = st.from_regex("[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True).filter(lambda name: name not in PATHS)
GIVEN = st.dictionaries(
    NAMES,
    st.recursive(
        TEXT | st.integers() | st.booleans() | st.none(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
        max_leaves=8,
    ),
)


def data(value: Any) -> Any:
    """The value behind the marks; a text without one fails."""
    if isinstance(value, dict):
        if value.keys() == {UNSAFE}:
            assert type(value[UNSAFE]) is str
            return value[UNSAFE]
        assert not any(key.startswith("_") for key in value)
        return {key: data(each) for key, each in value.items()}
    if isinstance(value, list):
        return [data(each) for each in value]
    assert not isinstance(value, str), value
    return value


def no_file(path: Path) -> str:
    raise AssertionError(path)


class Line:
    """Stands in for a connection."""

    def for_ansible(self) -> str:
        return '-o ProxyCommand=\'{{ lookup("pipe", "id") }}\''


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(**_: object) -> None:
        raise AssertionError("Ansible was started")

    monkeypatch.setattr(plays.ansible_runner.interface, "init_runner", never)


def machine(name: str, password: str = "") -> LinuxMachine:
    secret = Secret("env", "P", Sources(env={"P": password})) if password else None
    return LinuxMachine(name, "x", "{{ user }}", TRUST, sudo_password=secret, python="{{ python }}")


def files(folder: Path, wanted: Play) -> Iterator[Any]:
    """The inventory and the secrets, as Ansible reads them."""
    there: Any = {each: Line() for each in wanted.machines}
    names = {f"m{at}": each.name for at, each in enumerate(there)}
    hand = plays._Handed(folder / "handed")
    yield json.loads(dict(plays._files(wanted, there, names, hand))["inventory/hosts.json"])
    yield json.loads(json.dumps(plays._secrets(wanted, there, names, hand)))


@given(GIVEN)
def test_what_goes_in_is_what_ansible_reads(given):
    assert data(json.loads(json.dumps(inert(given, "", no_file)))) == given


def test_no_text_of_a_play_is_a_template_but_the_constant_that_finds_the_own_password(tmp_path):
    values = {name: text for name, text in VALUES.items() if name not in REFUSED}
    wanted = Play(
        "role",
        {
            machine(name, "{{ secret }}"): {"text": text, "list": [{"text": text}]}
            for name, text in values.items()
        },
        texts={"license": "{{ 1 }}"},
    )
    inventory, secrets = files(tmp_path, wanted)
    hosts = inventory["all"]["hosts"]
    assert list(hosts) == [f"m{at}" for at in range(len(values))], "no name of a machine is read as a pattern"
    for host, text in zip(hosts.values(), values.values(), strict=True):
        assert host.pop("ansible_become_password") == OWN_PASSWORD == "{{ bfinfra_sudo[inventory_hostname] }}"
        found = data(host)
        assert (found["text"], found["list"]) == (text, [{"text": text}])
        assert found["ansible_user"] == "{{ user }}"
        assert found["ansible_ssh_common_args"] == Line().for_ansible()
    assert data(secrets) == {
        "bfinfra_secrets": {"license": "{{ 1 }}"},
        "bfinfra_sudo": dict.fromkeys(hosts, "{{ secret }}"),
    }


def test_a_file_is_handed_over_under_a_name_of_its_own(tmp_path):
    file = tmp_path / "-o{{ 1 }} $HOME.deb"
    file.write_text("a package")
    inventory, _ = files(
        tmp_path, Play("role", {machine("a"): {"source": file}, machine("b"): {"source": file}})
    )
    one, two = (data({**host})["source"] for host in inventory["all"]["hosts"].values())
    assert one == two == str(tmp_path / "handed/f0")
    assert Path(one).read_text() == "a package"


@pytest.mark.parametrize(
    ("variables", "named", "why"),
    [
        *(({"configs": [{"text": VALUES[name]}]}, "configs.0.text", "holds") for name in REFUSED),
        ({"text": {"{{ x }}": 1}}, "text", "no plain name"),
        ({"text": {"__ansible_unsafe": 1}}, "text", "no plain name"),
        ({"text": {1: 1}}, "text", "no plain name"),
        ({"words": ["a", "b" * WORD]}, "words.1", "no command takes"),
        ({"record": "$HOME/x"}, "record", "slash"),
        ({"record": "/$HOME/x"}, "record", "behind its \\$"),
        ({"record": "~root/x"}, "record", "slash"),
        ({"files": ["/a", "/var/../etc/x"]}, "files", r"up with \.\."),
        ({"package": {"dest": "/a\nb"}}, "package.dest", "control"),
        ({"package": {"source": Path("/nowhere/x")}}, "package.source", "no file"),
    ],
)
def test_what_would_arrive_as_something_else_is_refused_by_name_before_anything(
    variables, named, why, tmp_path, nothing_runs
):
    with pytest.raises(BfinfraError, match=why) as caught:
        plays.play(
            Play("vgpu_license", {machine("gpu-01"): variables}),
            {machine("gpu-01"): Line()},
            tmp_path,
            check=False,
        )  # type: ignore[dict-item]  # a Line, not a Connection
    assert str(caught.value).startswith(f"vgpu_license on gpu-01: {named} can't be handed to Ansible; ")
    assert "canary" not in str(caught.value), "a value is not shown"


@pytest.mark.parametrize("name", REFUSED)
def test_a_secret_that_cannot_be_handed_over_is_named_and_not_shown(name, tmp_path, nothing_runs):
    texts = {"license": f"very-secret{VALUES[name]}"}
    with pytest.raises(BfinfraError, match=r"role: bfinfra_secrets\.license can't be handed") as caught:
        plays.play(
            Play("role", {machine("a"): {}}, texts=texts), {machine("a"): Line()}, tmp_path, check=False
        )  # type: ignore[dict-item]  # a Line, not a Connection
    assert "very-secret" not in str(caught.value)


def test_a_password_of_two_lines_is_not_given_to_sudo(tmp_path, nothing_runs):
    asked = machine("a", "very-secret\nimport os")
    with pytest.raises(BfinfraError, match=r"sudo_password of a .* one line") as caught:
        plays.play(Play("role", {asked: {}}), {asked: Line()}, tmp_path, check=False)  # type: ignore[dict-item]  # a Line, not a Connection
    assert "very-secret" not in str(caught.value)
