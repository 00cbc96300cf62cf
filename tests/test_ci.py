"""What CI runs: which failed tests are tried again, and what hosts of repositories are told to run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
RUN, UNSTEADY = ROOT / ".ci/run", ROOT / "tests/unsteady.txt"
MOST_UNSTEADY = 0
"""Lines of tests/unsteady.txt: it only shrinks."""
NAMED = [line for line in UNSTEADY.read_text().splitlines() if not line.startswith("#")]
KNOWN = "tests/kinds/test_a.py::test_known"


def again(folder: Path, failed: str, *, whole: str = "no") -> bool:
    """Whether .ci/run tries the failed tests of a step once more."""
    (folder / "tests").mkdir(exist_ok=True)
    (folder / "tests/unsteady.txt").write_text(f"# a comment\n{KNOWN} the machine's clock jumps\n")
    (folder / "log").write_text(f"{failed}\n1 failed in 1.00s\n")
    (function,) = re.findall(r"^alone\(\) \{.*?^\}", RUN.read_text(), re.DOTALL | re.MULTILINE)
    script = f'whole={whole}\n{function}\nalone "$@"'
    done = subprocess.run(
        ["bash", "-c", script, "bash", "log", "sh", "-c", "touch tried"], cwd=folder, check=False
    )
    tried = (folder / "tried").exists()
    assert tried is (done.returncode == 0)
    return tried


def test_a_failed_test_that_is_named_as_unsteady_is_tried_again(tmp_path: Path) -> None:
    assert again(tmp_path, f"FAILED {KNOWN}[a value, in 20 s] - assert 1 == 2")


@pytest.mark.parametrize(
    "failed",
    [
        "FAILED tests/kinds/test_a.py::test_other - AssertionError",
        f"FAILED {KNOWN}_too - AssertionError",
        f"FAILED {KNOWN}[a]\nERROR tests/kinds/test_b.py::test_other[b]",
        "ERROR tests/kinds/test_a.py",
        "INTERNALERROR> KeyError",
    ],
)
def test_any_other_failed_test_is_red(failed: str, tmp_path: Path) -> None:
    assert not again(tmp_path, failed)


def test_with_whole_nothing_is_run_again(tmp_path: Path) -> None:
    assert not again(tmp_path, f"FAILED {KNOWN}", whole="yes")


def test_the_list_of_unsteady_tests_only_shrinks() -> None:
    assert len(NAMED) == MOST_UNSTEADY, "mend the test; where the list got shorter, lower MOST_UNSTEADY"


def test_each_unsteady_test_exists_and_has_a_cause() -> None:
    for line in NAMED:
        test, _, cause = line.partition(" ")
        file, _, name = test.partition("::")
        assert cause.strip(), f"{test} has no cause"
        assert f"def {name}(" in (ROOT / file).read_text(), test


def commands(file: str) -> str:
    return yaml.safe_dump(yaml.safe_load((ROOT / file).read_text()), width=1000)


def test_each_change_and_each_night_have_a_run_at_both_hosts() -> None:
    change, whole, gitlab = map(
        commands, (".github/workflows/ci.yml", ".github/workflows/whole.yml", ".gitlab-ci.yml")
    )
    assert ".ci/run" in change
    assert "--whole" not in change
    assert ".ci/run --whole" in whole
    assert "cron: " in whole
    assert "tags:" in whole
    assert gitlab.count(".ci/run") == 2
    assert gitlab.count("--whole") == 1
    for each in (change, gitlab):
        assert "BFINFRA_CI_BASE" in each
