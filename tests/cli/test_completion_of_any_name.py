"""Tab completes the addresses of a site, and runs nothing that stands in them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bfinfra.cli.parser import build
from bfinfra.cli.shells import script

NAMES = [
    "plain",
    "$(touch${IFS}ran)",
    "`touch${IFS}ran`",
    "a;touch",
    "*",
    "~",
    "{a,b}",
    "it's",
    '"x"',
    "a\\b",
    "-n",
]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """A folder whose `bfinfra` prints these addresses, as the real one does for a site that has them."""
    addresses = [f"linux_host/{name}" for name in NAMES]
    (tmp_path / "addresses").write_text("".join(f"{each}\n" for each in addresses))
    (tmp_path / "bfinfra").write_text('#!/bin/sh\ncat "$(dirname "$0")/addresses"\n')
    (tmp_path / "bfinfra").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    yield addresses
    assert sorted(path.name for path in tmp_path.iterdir()) == ["addresses", "bfinfra"], "something was run"


def completed(words: str) -> list[str]:
    """What bash offers for the last of the words."""
    code = (
        f"{script(build(), 'bash')}\nCOMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); _bfinfra\n"
    )
    code += 'for each in "${COMPREPLY[@]}"; do printf "%s\\n" "$each"; done'
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_an_argument_is_completed_with_each_address(site: list[str]) -> None:
    assert [each for each in completed("bfinfra adopt site.yaml ''") if "/" in each] == site


def test_an_option_is_completed_with_the_addresses_that_begin_so(site: list[str]) -> None:
    assert completed("bfinfra plan site.yaml --target 'linux_host/$'") == [site[1]]
    assert completed("bfinfra plan site.yaml --target '*'") == []
