"""Runs the situations of `untidy_situations` on a sandbox, and writes what the commands print to docs/reference/untidy.md:
`python -m kinds.untidy_page` in tests/.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import yaml
from kinds import untidy
from kinds.untidy_situations import SETTINGS, SITUATIONS, Given, Scene, Situation

from bfinfra import sandbox, worlds
from bfinfra.cli import main

PAGE = Path(__file__).parents[2] / "docs/reference/untidy.md"
HEAD = """# Untidy situations and their messages

Made by `python -m kinds.untidy_page` in tests/; a test compares it with what the commands print. Every vCenter has objects of others, of
the same names, out of sight, out of service. Each message says what it is about, where, why, and what to do next. In these examples
`vcenter.datacenter` is `/dc`, and another datacenter, `abroad`, and a folder of `dc`, `others/gpu`, have clusters and templates of the same names.
"""


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    """A world with two datacenters. The site is written into `folder`, as site.yaml."""
    folder.mkdir()
    world = untidy.world(folder.parent)
    homes = {
        name: str(folder.parent / name.lower()) for name in ("HOME", "XDG_STATE_HOME", "BFINFRA_STATE_HOME")
    }

    def writes(given: Given, *, site: str = "ours", **settings: object) -> None:
        text = {"site": site, "vcenter": {**SETTINGS, **settings}, **given}
        (folder / "site.yaml").write_text(yaml.safe_dump(text, sort_keys=False, allow_unicode=True))

    def types(line: str) -> tuple[int, str]:
        out = io.StringIO()
        with chdir(folder), redirect_stdout(out), redirect_stderr(out):
            code = main([*shlex.split(line), "--world", str(world)])
        return code, out.getvalue().strip("\n")

    with mock.patch.dict(os.environ, {**homes, "NO_COLOR": "1", "COLUMNS": "400"}):
        running = sandbox.start(world, worlds.state(world), pace=0)
        try:
            yield Scene(running, writes, types)
        finally:
            sandbox.stop(running.state)


def met(situation: Situation, scene: Scene) -> tuple[int, str]:
    """How the command ends, and what it prints, in a world that is as at its start but for this."""
    scene.sandbox.reset()
    situation.before(scene)
    scene.writes(situation.given, **situation.settings)
    return scene.types(situation.command)


def page(printed: Mapping[str, tuple[int, str]]) -> str:
    """The page, of what was printed by the situation's heading."""
    parts = [HEAD]
    for each in SITUATIONS:
        code, text = printed[each.about]
        parts.append(
            f"## {each.about}\n\n```console\n$ bfinfra {each.command}\n{text}\n$ echo $?\n{code}\n```\n"
        )
    return "\n".join(parts)


def shown() -> dict[str, tuple[int, str]]:
    """What the page says that each prints."""
    found = re.findall(
        r"^## (.*?)\n\n```console\n\$ bfinfra .*?\n(.*?)\n\$ echo \$\?\n(\d+)\n```$",
        PAGE.read_text(),
        re.DOTALL | re.MULTILINE,
    )
    return {about: (int(code), text) for about, text, code in found}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home, scene(Path(home) / "ours") as desk:
        PAGE.write_text(page({each.about: met(each, desk) for each in SITUATIONS}))
