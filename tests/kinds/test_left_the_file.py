"""What a site once had is found after it left the file, also where its kind is asked only if something shows
it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, drift, made, plan

from bfinfra.app.marked_kinds import SHOWN
from bfinfra.sandbox import Running


@pytest.mark.parametrize("kind", sorted(SHOWN))
def test_what_left_the_file_is_found_though_nothing_else_is_of_its_kind(
    kind: str, sandbox: Running, tmp_path: Path
) -> None:
    path, given = tmp_path / "site.yaml", yaml.load(EXAMPLES[kind].read_text(), yaml.BaseLoader)
    path.write_text(EXAMPLES[kind].read_text())
    assert made(apply(path, sandbox))
    gone = {f"{kind}/{name}" for name in given.pop(kind)}
    path.write_text(yaml.safe_dump(given, sort_keys=False))
    assert gone <= {str(item.key) for item in plan(path, sandbox).pending}
    assert gone <= {str(each.key) for each in drift(path, sandbox).found}
