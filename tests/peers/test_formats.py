"""What bfinfra writes for other programs, read by those programs: Graphviz, systemd, cron, zsh, fish, kubectl, buildah."""

from __future__ import annotations

import itertools
import json
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from formats.texts import MEANINGS
from peers.found import Peers

from bfinfra.cli.parser import build
from bfinfra.cli.shells import commands, script
from bfinfra.formats import cron, fish, graphviz, shell, systemd, zsh
from bfinfra.formats.visible import visible
from bfinfra.formats.yaml import comment, dumped
from bfinfra.kinds.image.client_image.dockerfile import dockerfile
from bfinfra.kinds.image.client_image.spec import Spec

TEXTS = [*MEANINGS, "".join(MEANINGS), "\n".join(MEANINGS), *(f"a{each}b" for each in MEANINGS)]
VISIBLE = [text for text in TEXTS if text.isprintable()]


def ran(argv: Sequence[str], given: str = "") -> subprocess.CompletedProcess[str]:
    done = subprocess.run(argv, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


def test_graphviz_draws_the_nodes_and_arrows_that_were_written_alone() -> None:
    names = list(dict.fromkeys(visible(text) for text in TEXTS if text[0] != "%"))
    edges = [(one, two, {"label": one}) for one, two in itertools.pairwise(names)]
    drawn = json.loads(ran(["dot", "-Tdot_json"], graphviz.digraph("a", ["rankdir=LR"], names, edges)).stdout)
    read = [each["name"].replace("\\\\", "\\") for each in drawn["objects"]]
    assert read == names
    assert [(each["tail"], each["head"]) for each in drawn["edges"]] == [
        (n, n + 1) for n in range(len(edges))
    ]
    assert [each["label"].replace("\\\\", "\\") for each in drawn["edges"]] == names[:-1]


@pytest.mark.parametrize("folder", ["a b", "100%h", ";", "é #", "*[a]"])
def test_systemd_finds_the_program_and_nothing_to_complain_of(folder: str, tmp_path: Path) -> None:
    program = tmp_path / folder / "bfinfra"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = systemd.unit(
        {
            "Unit": [("Description", systemd.words("".join(MEANINGS)))],
            "Service": [("#", "\n".join(MEANINGS)), ("ExecStart", systemd.command([program, *MEANINGS]))],
        }
    )
    (tmp_path / "tried.service").write_text(unit)
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / "tried.service")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert [line for line in done.stderr.splitlines() if "tried" in line] == []
    program.unlink()
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / "tried.service")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "is not executable" in done.stderr, "it looked for another program before"


def test_cron_takes_the_lines(tmp_path: Path) -> None:
    lines = [cron.line("* * * * *", ["/bin/true", text]) for text in VISIBLE if len(text) < 400]
    (tmp_path / "tab").write_text("".join(f"{line}\n" for line in lines))
    ran(["crontab", "-n", str(tmp_path / "tab")])


@pytest.mark.parametrize("program", [["zsh", "-f", "-c"], ["bash", "-c"]])
def test_a_line_that_is_pasted_has_its_words_in_shells_of_people(program: list[str]) -> None:
    texts = [text for text in TEXTS if "\0" not in text]
    done = subprocess.run([*program, f"printf '%s\\0' {shell.line(texts)}"], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == texts


@pytest.mark.parametrize(
    ("program", "quoted"), [(["zsh", "-f", "-c"], zsh.quoted), (["fish", "--no-config", "-c"], fish.quoted)]
)
def test_words_of_completion_scripts_are_read_as_they_are(program: list[str], quoted: object) -> None:
    assert callable(quoted)
    line = "printf '%s\\0' " + " ".join(map(quoted, TEXTS))
    done = subprocess.run([*program, line], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == [visible(text) for text in TEXTS]


def test_shells_take_their_scripts(tmp_path: Path) -> None:
    for name, check in (("bash", ["bash", "-n"]), ("zsh", ["zsh", "-n"]), ("fish", ["fish", "--no-execute"])):
        (tmp_path / name).write_text(script(build(), name))
        assert ran([*check, str(tmp_path / name)]).stderr == ""
    assert len(list(commands(build()))) > 20


def test_kubectl_finds_the_same_texts(peers: Peers) -> None:
    data = {f"k{number}": text for number, text in enumerate(TEXTS)}
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tried"}, "data": data}
    text = "".join(f"{comment(each)}\n" for each in TEXTS) + dumped(config)
    read = json.loads(
        peers.kubectl("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", "-", given=text)
    )
    assert read["data"] == data
    assert read.keys() == {"apiVersion", "kind", "metadata", "data"}


def test_buildah_finds_the_instructions_of_a_client_image(tmp_path: Path) -> None:
    spec = Spec.model_validate(
        {
            "image": "r.test/a:1",
            "base": "scratch",
            "package": "bitfusion-client-ubuntu2004_3.0.0-11~a+b_amd64.deb",
            "context": "out",
            "users": {"root": None, "_a-b": "/home/-x/.y"},
            "run_as": "_a-b",
        }
    )
    text = dockerfile(spec)
    without = "\n".join(
        line for line in text.split("\n") if line.startswith(("FROM", "USER", "WORKDIR", "#"))
    )
    (tmp_path / "Dockerfile").write_text(f"{without}\n")
    words = (
        "buildah",
        "--root",
        str(tmp_path / "root"),
        "--runroot",
        str(tmp_path / "run"),
        "--storage-driver",
        "vfs",
    )
    built = ran([*words, "build", "--isolation", "chroot", "--iidfile", str(tmp_path / "id"), str(tmp_path)])
    steps = [
        line.partition(": ")[2]
        for line in built.stdout.splitlines() + built.stderr.splitlines()
        if line.startswith("STEP")
    ]
    assert steps[-1] == "USER _a-b"
    assert shlex.split(steps[0]) == ["FROM", "scratch"]
