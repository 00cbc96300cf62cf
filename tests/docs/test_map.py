"""The map names what is there: each path on it exists, and each package of bfinfra is on it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAP = (ROOT / "docs/explanation/map.md").read_text()
PATH = re.compile(r"`((?:\w+/)+(?:\w+\.\w+)?|(?:\w+/)+\w+)`")
BESIDE = ("", "bfinfra/", "bfinfra/sandbox/kubernetes/")
"""Where a path on the map may begin."""


def named() -> list[str]:
    return sorted(set(PATH.findall(MAP)))


def test_every_path_on_the_map_exists():
    assert len(named()) > 50
    assert [path for path in named() if not any((ROOT / start / path).exists() for start in BESIDE)] == []


def test_every_package_is_on_the_map():
    packages = [folder.parent.relative_to(ROOT) for folder in (ROOT / "bfinfra").rglob("__init__.py")]
    plain = [f"{path}/" for path in packages if "kinds" not in path.parts]
    kinds = [f"{path}/" for path in packages if "kinds" in path.parts and len(path.parts) <= 3]
    missing = [
        path
        for path in (*plain, *kinds)
        if path != "bfinfra/" and not any(f"`{path.removeprefix(start)}`" in MAP for start in BESIDE)
    ]
    assert missing == []


@pytest.mark.parametrize("module", sorted((ROOT / "bfinfra/kinds").glob("*.py")), ids=lambda file: file.name)
def test_every_module_beside_the_groups_of_kinds_is_on_the_map(module):
    assert f"kinds/{module.name}" in MAP or module.name == "__init__.py"
