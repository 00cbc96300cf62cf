"""The page of examples runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import bfinfra

ROOT = Path(__file__).parent.parent


def test_the_examples_of_the_library_page_run_one_after_the_other(sandbox, monkeypatch):
    monkeypatch.chdir(ROOT)
    names = {"sandbox": sandbox}
    for example in re.findall(
        r"```python\n(.*?)```", (ROOT / "docs/reference/library.md").read_text(), re.DOTALL
    ):
        exec(compile(example, "docs/reference/library.md", "exec"), names)


def test_every_public_name_can_be_had():
    assert all(getattr(bfinfra, name) is not None for name in bfinfra.__all__)
