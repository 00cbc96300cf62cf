"""docker, podman, buildah: found only where they work."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bfinfra.backends.images import Images, Recipe, tools
from bfinfra.model.errors import Rejected
from bfinfra.model.site import Site


def program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


def test_an_empty_folder_is_reported(path: Path) -> None:
    assert tools.find() == (None, "none of docker, podman, buildah is installed")


def test_a_docker_without_an_engine_does_not_count(path: Path) -> None:
    program(path, "docker", "echo; echo 'Cannot connect to the Docker daemon' >&2; exit 1")
    found, why = tools.find()
    assert found is None
    assert why == "docker does not work here: Cannot connect to the Docker daemon"


def test_a_docker_that_answers_nothing_does_not_count_even_if_it_succeeds(path: Path) -> None:
    program(path, "docker", "exit 0")
    assert tools.find()[0] is None


def test_podman_is_taken_where_docker_does_not_work(path: Path) -> None:
    program(path, "docker", "exit 1")
    program(path, "podman", "echo runc")
    found, why = tools.find()
    assert found
    assert (found.name, why) == ("podman", "")


def test_a_tool_that_hangs_does_not_count(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "PROBING", 0.2)
    program(path, "buildah", "while :; do :; done")
    assert "did not answer" in tools.find()[1]


def test_the_sandbox_builds_nothing_whatever_is_there(path: Path) -> None:
    program(path, "docker", "echo 24")
    assert Images(Site("g", None, {}), real=False).tool() == (
        None,
        "the sandbox builds nothing: it has no registry and no base images",
    )


def test_arguments_never_see_a_shell(path: Path, tmp_path: Path) -> None:
    program(path, "docker", f'for a; do printf "%s\\n" "$a"; done > {tmp_path}/argv')
    tool = tools.Tool("docker", str(path / "docker"))
    tools.run(tool.build(Recipe(tmp_path / "a b; rm -rf x"), "name:tag"), "the build")
    assert (tmp_path / "argv").read_text().splitlines() == [
        "build",
        "--tag",
        "name:tag",
        f"{tmp_path}/a b; rm -rf x",
    ]


def test_what_a_person_is_told_to_run_runs_nothing_else(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    recipe = Recipe(tmp_path, arguments={"A": f"$(touch {canary})`touch {canary}`; touch {canary} #'"})
    line = recipe.by_hand("name:tag", push=True).replace("docker", "true")
    subprocess.run(["/bin/sh", "-c", line], check=True)
    assert not canary.exists()


def test_a_recipe_names_its_dockerfile_and_arguments(tmp_path: Path) -> None:
    recipe = Recipe(tmp_path, "webhook/build/Dockerfile", {"GOPROXY": "http://10.1.0.9"})
    assert tools.Tool("docker", "docker").build(recipe, "r/w:1") == (
        "docker",
        "build",
        "--tag",
        "r/w:1",
        "--file",
        f"{tmp_path}/webhook/build/Dockerfile",
        "--build-arg",
        "GOPROXY=http://10.1.0.9",
        str(tmp_path),
    )


def test_a_failed_build_shows_its_last_lines_and_the_command(path: Path) -> None:
    program(
        path,
        "docker",
        (
            "i=0; while [ $i -lt 50 ]; do echo line $i; i=$((i+1)); done; printf 'E: \\033[31mno such "
            "package\\n' >&2; exit 7"
        ),
    )
    with pytest.raises(Rejected) as caught:
        tools.run((str(path / "docker"), "build", "$(id)"), "the build of x")
    problem = caught.value.problems[0]
    assert "docker ended with 7" in problem.why
    assert "no such package" in problem.why
    assert "line 3 " not in problem.why
    assert "\033" not in problem.why
    assert problem.next == f"run it by hand: {path}/docker build '$(id)'"


def test_a_build_that_takes_too_long_is_stopped(path: Path) -> None:
    program(path, "docker", "echo started; while :; do :; done")
    with pytest.raises(Rejected, match="took more than 0 s and was stopped"):
        tools.run((str(path / "docker"),), "the build", limit=0.3)


def test_a_tool_that_vanished_is_an_error_of_ours(path: Path) -> None:
    with pytest.raises(Rejected, match="did not start"):
        tools.run((str(path / "docker"), "build"), "the build")


def test_a_build_is_out_of_reach_of_the_terminal_s_signals(path: Path) -> None:
    program(path, "docker", "read -r line < /proc/$$/stat; echo session $line; exit 1")
    with pytest.raises(Rejected) as caught:
        tools.run((str(path / "docker"),), "the build")
    output = caught.value.problems[0].why.partition("session ")[2].split()
    assert output[5] == output[0] != str(os.getsid(0))


def test_what_a_stopped_build_had_started_stops_too(path: Path) -> None:
    program(path, "docker", "(while :; do :; done) & wait")
    with pytest.raises(
        Rejected, match="was stopped"
    ):  # the child holds the pipe: this ends only because the child does
        tools.run((str(path / "docker"),), "the build", limit=0.3)
