"""container_image: built from a folder of somebody else's where that can be done, pushed, and forgotten
without a trace.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kinds.lifecycle import EVERYTHING, endings, made

import bfinfra
from bfinfra.kinds.cluster.bitfusion_device_plugin.spec import Images
from bfinfra.kinds.image.container_image import Build, Commit, Push
from bfinfra.model.errors import BfinfraError
from bfinfra.model.outcome import Outcome
from bfinfra.model.refs import Key
from bfinfra.model.step import Step

KEY = Key("container_image", "webhook")
IMAGE = "10.1.0.3/team/bitfusion-webhook:0.4-1"


class Place:
    """Sources, a site and a state folder of its own; docker where it was installed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "docker.log"
        (folder / "clone/webhook/build").mkdir(parents=True)
        (folder / "clone/.git").mkdir()
        (folder / "clone/webhook/build/Dockerfile").write_text("FROM scratch\n")
        (folder / "clone/main.go").write_text("package main\n")

    def install(self) -> None:
        """A docker that works, and notes what it was asked for."""
        (self.folder / "bin").mkdir()
        program = self.folder / "bin/docker"
        program.write_text(
            f'#!/bin/sh\ntest "$1" = version && echo 24.0 && exit 0\necho "$@" >> {self.log}\ntest ! -e '
            f"{self.folder}/broken\n"
        )
        program.chmod(0o755)

    def calls(self) -> list[str]:
        found = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return found

    def site(self, *, absent: bool = False, **fields: Any) -> Any:
        wanted = {"image": IMAGE, "source": "clone", "dockerfile": "webhook/build/Dockerfile", **fields}
        (self.folder / "site.yaml").write_text(
            json.dumps({"site": "g", **({} if absent else {"container_image": {"webhook": wanted}})})
        )
        return bfinfra.load(self.folder / "site.yaml")

    def steps(self, **fields: Any) -> tuple[Step, ...]:
        return tuple(step for item in bfinfra.plan(self.site(**fields)).pending for step in item.steps)

    def apply(self, **fields: Any) -> Outcome:
        return bfinfra.apply(self.site(**fields), approve=lambda _: EVERYTHING)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return Place(tmp_path)


def built(place: Place, image: str = IMAGE) -> str:
    return f"build --tag {image} --file {place.folder}/clone/webhook/build/Dockerfile {place.folder}/clone"


def test_it_is_built_and_pushed_once_and_nothing_is_written_to_its_folder(place: Place) -> None:
    place.install()
    before = sorted((place.folder / "clone").rglob("*"))
    outcome = place.apply()
    assert made(outcome), endings(outcome)
    assert place.calls() == [built(place), f"push {IMAGE}"]
    assert place.steps() == ()
    assert made(place.apply())
    assert place.calls() == []
    assert sorted((place.folder / "clone").rglob("*")) == before


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        (lambda clone: (clone / "main.go").write_text("package other\n"), {}),
        (lambda clone: (clone / "main.go").chmod(0o755), {}),
        (lambda clone: (clone / "main.go").rename(clone / "app.go"), {}),
        (lambda clone: (clone / "link").symlink_to("main.go"), {}),
        (lambda _: None, {"arguments": {"GOPROXY": "http://10.1.0.9"}}),
        (lambda _: None, {"image": "10.1.0.3/team/bitfusion-webhook:0.4-2"}),
    ],
)
def test_what_decides_what_comes_out_is_built_anew(place: Place, change: Any, fields: dict[str, Any]) -> None:
    place.install()
    assert made(place.apply())
    change(place.folder / "clone")
    assert [type(step) for step in place.steps(**fields)] == [Build, Push, Commit]
    assert made(place.apply(**fields))
    assert place.steps(**fields) == ()


def test_what_git_keeps_for_itself_decides_nothing(place: Place) -> None:
    place.install()
    assert made(place.apply())
    (place.folder / "clone/.git/index").write_text("fetched")
    assert place.steps() == ()


def test_a_failed_build_is_tried_again_and_a_failed_push_is_not_built_again(place: Place) -> None:
    place.install()
    (place.folder / "broken").touch()
    assert "the build of" in endings(place.apply())[str(KEY)]
    (place.folder / "broken").unlink()
    place.calls()
    assert made(place.apply(push=False))
    assert place.calls() == [built(place)]
    assert [type(step) for step in place.steps()] == [Push, Commit]


def test_without_a_tool_it_says_what_to_run_and_one_that_comes_later_builds(place: Place) -> None:
    outcome = place.apply()
    assert made(outcome), endings(outcome)
    assert f"run: docker {built(place)} && docker push {IMAGE}" in str(outcome.endings[KEY])
    assert place.steps() == ()
    place.install()
    assert [change.field for step in place.steps()[:1] for change in step.changes] == ["built"]


def test_it_is_forgotten_without_a_trace(place: Place) -> None:
    place.install()
    assert made(place.apply())
    assert made(place.apply(absent=True))
    assert not list((place.folder / "state").rglob("webhook"))
    assert place.steps(absent=True) == ()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"source": "clone/main.go"}, "is not a folder"),
        ({"dockerfile": "Dockerfile"}, "has no Dockerfile"),
        ({"dockerfile": "../Dockerfile"}, "expected a path in source"),
        ({"arguments": {"A-B": "c"}}, "arguments"),
        ({"image": "UPPER/case"}, "image"),
    ],
)
def test_what_can_not_be_built_is_refused_before_anything_is_run(
    place: Place, fields: dict[str, Any], why: str
) -> None:
    place.install()
    with pytest.raises(BfinfraError, match=why):
        place.apply(**fields)
    assert place.calls() == []


def test_a_folder_that_is_not_there_is_awaited_and_what_was_made_of_it_stays(place: Place) -> None:
    place.install()
    (item,) = bfinfra.plan(place.site(source="nowhere")).held
    assert item.held.what == f"{item.key}: nowhere is not there yet"
    assert made(place.apply())
    (place.folder / "clone").rename(place.folder / "away")
    assert place.steps() == ()


def test_an_image_is_built_or_named_not_both() -> None:
    with pytest.raises(ValueError, match="give its name, or build it"):
        Images(plugin="r/p:1", built={"plugin": "p"})
