"""The page for users' own tests: its files, written out and run as a user runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bfinfra.sandbox import SMALL_WORLD

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/how-to/test-your-site.md").read_text()


@pytest.mark.thorough
def test_the_examples_of_the_page_pass(tmp_path: Path) -> None:
    files = dict(re.findall(r"```\w+ title=\"(\S+)\"\n(.*?)```", PAGE, re.DOTALL))
    assert set(files) == {"conftest.py", "site.yaml", "test_site.py"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    shutil.copy(SMALL_WORLD, tmp_path / "world.yaml")
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")},
        "PYTHONPATH": str(ROOT),
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--disable-socket",
        "--allow-hosts=127.0.0.1",
    ]
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{files['test_site.py'].count('def test_')} passed" in done.stdout


def test_the_page_names_every_fixture_and_decorator() -> None:
    source = (ROOT / "bfinfra/testing.py").read_text()
    public = set(re.findall(r"^def ([a-z]\w+)", source, re.MULTILINE)) - {"pytest_configure"}
    assert {name for name in public if not re.search(rf"`@?{name}\b", PAGE)} == set()
