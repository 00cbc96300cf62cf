"""Every command of the tutorial, the how-to pages and the page of errors runs as a reader types it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from docs.commands import Block, Reader, blocks, commands, differs

from bfinfra import sandbox, worlds

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RUN_BY = {
    "tutorial/first-hour.md": "tests/peers/test_first_hour.py",
    "how-to/write-a-site-from-your-vcenter.md": "tests/cli/test_init.py",
}
"""Pages whose commands another test runs, as their servers are not a sandbox's."""
PAGES = [
    str(page.relative_to(DOCS))
    for page in sorted(
        [
            *DOCS.glob("tutorial/*.md"),
            *DOCS.glob("how-to/*.md"),
            DOCS / "reference/site-language.md",
            DOCS / "troubleshooting.md",
        ]
    )
    if str(page.relative_to(DOCS)) not in RUN_BY
]
WORLDS = {
    "tutorial/first-site.md": "small",
    "how-to/test-your-site.md": "small",
    "how-to/deep-learning-vm.md": "dlvm",
    "how-to/from-bitfusion-to-vgpu.md": "bitfusion-to-vgpu",
    "how-to/run-a-gpu-cluster-on-vks.md": "vks-gpu",
}
"""Pages whose servers are not those of `singapore-poc`."""

NOT_RUN = {
    "script/": "installs, or runs what CI runs anyway",
    ". ": "activates the environment in the reader's shell",
    "bfinfra schedule kubernetes": "it refuses the sandbox's certificate, which is not in the site's folder",
    "bfinfra operator site": "takes a real cluster: tests/peers/test_operator.py runs it",
    "pip ": "installs from an index",
    "podman ": "no container engine is on a machine that tests",
    "kubectl ": "takes a real cluster: tests/peers runs kubectl on kube-apiserver",
    "helm ": "takes a real cluster: tests/peers/test_chart.py runs these commands",
    "ansible": "tests/playbooks runs the collection",
    "ansible-doc": "tests/playbooks runs the collection",
    "export": "sets a variable of the reader's shell",
}
"""Programs whose lines stand in `sh` blocks, which nobody runs here, and why."""


def read(page: str) -> list[Block]:
    return list(blocks((DOCS / page).read_text()))


@pytest.fixture
def reader(request, tmp_path, monkeypatch):
    world = ROOT / f"specs/worlds/{WORLDS.get(request.param, 'singapore-poc')}.yaml"
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "specs").symlink_to(ROOT / "specs")
    monkeypatch.chdir(folder)
    for name in ("HOME", "XDG_STATE_HOME", "BFINFRA_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    shutil.copy(Path(__file__).with_name("site.yaml"), folder)
    state = worlds.state(world)
    typed = any(block.language == "console" for block in read(request.param))
    yield Reader(folder, world, sandbox.start(world, state, pace=0) if typed else None)
    sandbox.stop(state)


@pytest.mark.thorough("tutorial/first-site.md-tutorial/first-site.md")
@pytest.mark.parametrize(("page", "reader"), [(page, page) for page in PAGES], indirect=["reader"])
def test_every_command_of_the_page_prints_what_the_page_shows(page, reader):
    for block in read(page):
        if block.title:
            reader.saves(block.title, block.text)
        if block.language == "meanwhile":
            reader.sandbox.change(json.loads(block.text))
        if block.language != "console":
            continue
        typed = commands(block)
        for command, following in zip(typed, [*typed[1:], None], strict=True):
            printed = reader.types(command.line)
            shown = command.line == "echo $?" or (following is not None and following.line == "echo $?")
            assert reader.code == 0 or shown, f"$ {command.line}\nended with {reader.code}\n{printed}"
            assert not (wrong := differs(command.printed, printed)), f"$ {command.line}\n{wrong}"


@pytest.mark.parametrize("page", PAGES)
def test_a_command_is_in_a_block_that_runs_or_of_a_program_that_can_not_run(page):
    text = re.sub(r"^```.*?^```$", "", (DOCS / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r"\n\n {4,}\S.*", text) == [], "commands in an indented block are not run"
    for block in read(page):
        assert block.language in {"console", "meanwhile", "sh", "yaml", "json", "python", "text", "ini"}
        lines = block.text.replace("\\\n", "").splitlines() if block.language == "sh" else []
        assert [line for line in lines if not re.match(rf"({'|'.join(map(re.escape, NOT_RUN))})", line)] == []


def test_a_console_block_holds_commands_and_their_output():
    block = Block("console", "", "$ one \\\n    two\nfirst\nsecond\n$ echo $?\n2\n")
    assert [(each.line, each.printed) for each in commands(block)] == [
        ("one two", "first\nsecond"),
        ("echo $?", "2"),
    ]


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("done in 2.1s", "done in 0.4s", True),
        ("done", "failed", False),
        ("one … three", "one two three", True),
        ("one\n…\nfour", "one\ntwo\nthree\nfour", True),
        ("one\n…\nfour", "one\ntwo\nthree", False),
        ("", "anything", True),
        ("one", "one\ntwo", False),
    ],
)
def test_output_is_compared_but_for_what_varies(shown, printed, same):
    assert (differs(shown, printed) == "") is same


def test_a_digest_that_begins_like_a_time_is_a_digest():
    digests = ("20:54:90:34:" + ":".join(["FD"] * 28), ":".join(["CE"] * 32))
    assert differs(*(f"SHA-256  {each}" for each in digests)) == ""
