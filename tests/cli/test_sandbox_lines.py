"""The lines of `sandbox status` are evaluated by a shell: names of worlds and their servers set and run nothing."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from formats.texts import GIVEN, MEANINGS, tried
from hypothesis import given
from hypothesis import strategies as st

from bfinfra.cli.sandbox.shown import _text
from bfinfra.sandbox import Running
from bfinfra.sandbox.handout import shell


def status(
    name: str, address: str, values: dict[str, str], env: dict[str, str], folder: Path
) -> dict[str, str]:
    """The variables that a shell has afterwards."""
    (folder / "env").write_text(shell(env))
    fields: dict[str, Any] = {"pid": 1, "started": "", "ca_file": folder, "control": "x", "files": folder}
    found = Running(**fields, addresses={address: "127.0.0.1:1"}, env={}, state=folder, clients=values)
    script = "\n".join(_text(Path("/") / name, found)) + "\nenv -0"
    done = subprocess.run(["bash", "-ec", script], capture_output=True, env={}, cwd=folder, check=True)
    assert done.stderr == b""
    pairs = (each.partition("=") for each in done.stdout.decode().split("\0")[:-1])
    return {name: value for name, _, value in pairs if name not in ("PWD", "SHLVL", "_", "OLDPWD")}


def test_nothing_but_the_clients_variables_is_set(tmp_path: Path) -> None:
    bad = "world\nexport PLANTED=1; touch ran #".replace("/", "")
    every = "".join(MEANINGS)
    env = {"PASSWORD": every, "A; touch ran": "x", "B\nC": "y"}
    assert status(bad, f"esx\nexport PLANTED=1 {every}", {"GOVC_URL": every}, env, tmp_path) == {
        "GOVC_URL": every,
        "PASSWORD": every,
    }
    assert sorted(each.name for each in tmp_path.iterdir()) == ["env"]


@tried
@given(
    GIVEN,
    GIVEN.filter(bool).map(lambda text: text.replace("/", "")),
    st.dictionaries(GIVEN, GIVEN, max_size=2),
)
def test_every_other_line_is_a_comment(address: str, name: str, env: dict[str, str]) -> None:
    fields: dict[str, Any] = {"pid": 1, "started": "", "ca_file": Path(), "control": "x", "files": Path()}
    found = Running(
        **fields, addresses={address: "127.0.0.1:1"}, env={}, state=Path("/x"), clients={"A": address}
    )
    lines = "\n".join(_text(Path("/x") / name, found)).split("\n")
    assert [line.partition(" ")[0] for line in lines] == ["#", "#", "export", "."]
    assert all(line.isprintable() for line in lines)
    assert all(
        line.startswith("export ") for line in shell({"A": "b", **dict.fromkeys(env, "c")}).splitlines()
    )
