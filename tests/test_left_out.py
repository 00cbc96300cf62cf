"""A run of the whole suite leaves out the tests marked thorough; a run of chosen tests does not, --thorough runs all,
and --share some.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from left_out import Share

ROOT = Path(__file__).parents[1]
KIND = "test_every_kind.py::test_killed_amid_each_way_it_is_finished_by_the_next_run"
LEFT_OUT = "tests marked thorough were left out; to run them: script/test --thorough"


def collected(*words: str) -> str:
    """The tests that pytest would run if the whole suite were the life cycles."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--collect-only"]
    return subprocess.run(
        [*command, "-o", "testpaths=tests/kinds/test_every_kind.py", *words],
        cwd=ROOT, env=clean, capture_output=True, text=True, timeout=120, check=True,
    ).stdout  # fmt: skip


@pytest.mark.thorough
def test_a_run_of_the_whole_suite_leaves_them_out_and_says_so() -> None:
    listed = collected()
    assert "test_it_applies_agrees_and_goes" in listed
    assert f"{KIND}[namespace]" in listed
    assert f"{KIND}[port_group]" not in listed
    assert LEFT_OUT in listed


@pytest.mark.thorough
@pytest.mark.parametrize(
    "words", [("-k", "killed_amid"), ("--thorough",), ("tests/kinds/test_every_kind.py",), ("-m", "thorough")]
)
def test_they_run_if_asked_for(words: tuple[str, ...]) -> None:
    listed = collected(*words)
    assert f"{KIND}[port_group]" in listed
    assert LEFT_OUT not in listed


@pytest.mark.thorough
def test_what_keeps_all_processors_busy_is_in_no_share_but_the_whole() -> None:
    words = ("-o", "testpaths=tests/peers/test_hostile_values.py", "--peers", "-m", "peers")
    long = "test_each_value_arrives_on_a_machine_of_its_own"
    assert long in collected(*words, "--thorough")
    assert not any(long in collected(*words, "--share", f"{k}/2") for k in (1, 2))


@pytest.mark.thorough
def test_each_test_of_a_file_is_in_one_share() -> None:
    listed = [collected("--share", f"{k}/2", "-m", "thorough") for k in (1, 2)]
    kinds = ("port_group", "gpu_host", "vm_class", "host_image", "resource_pool", "storage_policy")
    found = [{kind for kind in kinds if f"{KIND}[{kind}]" in each} for each in listed]
    assert found[0] | found[1] == {*kinds}
    assert not found[0] & found[1]
    assert all(found), "a file of long tests would be a share of hours"


def test_the_shares_of_a_file_are_much_alike_and_no_test_is_in_two() -> None:
    tests = [f"tests/peers/test_hostile_values.py::test_a_role[{n}-main]" for n in range(100)]
    shares = [{each for each in tests if Share(k, 6).has(each)} for k in range(1, 7)]
    assert sum(map(len, shares)) == len(tests) == len(set.union(*shares))
    assert min(map(len, shares)) > len(tests) / 12


@pytest.mark.parametrize("text", ["0/6", "7/6", "2", "a/b", "1/2/3"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Share.of(text)
