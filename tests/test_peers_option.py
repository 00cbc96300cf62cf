"""--peers: what needs real peers is left out and reported; with it and without peers the tests fail and say what
to do.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from peers.found import NotUp, find
from peers.order import dealt

pytestmark = pytest.mark.thorough

ROOT = Path(__file__).parents[1]


def run(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("BFINFRA_", "KUBECONFIG", "PYTEST_"))
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/peers/test_vcsim.py", *words]
    return subprocess.run(
        command, cwd=ROOT, env={**clean, **env}, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("workers", [(), ("-n", "1")])
def test_without_it_the_tests_are_left_out_and_the_summary_says_so(workers: tuple[str, ...]) -> None:
    found = run(*workers)
    assert found.returncode == 5, "no tests ran"
    assert (
        "tests with real peers were left out; to run them: script/peers up && script/test --peers"
        in found.stdout
    )


@pytest.mark.parametrize(
    ("words", "some", "none"),
    [
        (
            ("--backend=live",),
            ("tests/contract/test_contract_clones", "tests/peers/test_vcsim.py"),
            ("[sandbox]", "tests/peers/test_rpm.py", "tests/engine/"),
        ),
        (
            ("--peers",),
            (
                "tests/contract/test_contract_clones",
                "tests/peers/test_vcsim.py",
                "tests/peers/test_rpm.py",
                "tests/engine/",
            ),
            (),
        ),
        ((), ("tests/contract/test_contract_clones", "tests/engine/"), ("[live", "tests/peers/")),
    ],
)
def test_who_judges_the_backends_live_runs_what_asks_the_peers_and_nothing_else(
    words: tuple[str, ...], some: tuple[str, ...], none: tuple[str, ...]
) -> None:
    folders = ["tests/contract/test_contract_clones.py", "tests/peers", "tests/engine/test_plan.py"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "--collect-only",
        "-q",
        *folders,
        *words,
    ]
    listed = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    ).stdout
    assert all(each in listed for each in some), listed
    assert not any(each in listed for each in none), listed


def test_with_it_and_no_peers_up_they_fail_with_what_to_do(tmp_path: Path) -> None:
    found = run("--peers", "-k", "shared", PEERS_DIR=str(tmp_path))
    assert found.returncode == 1
    assert (
        f"--peers: the real peers are not up (there is no {tmp_path}/env); start them with: script/peers up"
        in found.stdout
    )


@pytest.mark.parametrize("words", [("--backend=live",), ("--backend=sandbox,live", "-n", "1")])
def test_to_judge_the_backends_live_and_no_peers_up_is_refused_before_anything_runs(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    found = run(*words, PEERS_DIR=str(tmp_path))
    assert (found.returncode, found.stdout) == (4, "")
    assert found.stderr == (
        f"ERROR: --backend=live: the real peers are not up (there is no {tmp_path}/env); start them "
        "with: script/peers up\n\n"
    )


def test_a_share_that_is_none_is_refused_before_anything_runs(tmp_path: Path) -> None:
    found = run("--share", "11/10", "-n", "1", PEERS_DIR=str(tmp_path))
    assert (found.returncode, found.stdout) == (4, "")
    assert found.stderr == "ERROR: --share 11/10: expected K/N, such as 2/6, K of 1 to N\n\n"


def test_somebodys_own_kubeconfig_is_never_taken_for_a_peer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BFINFRA_PEERS_BIN", raising=False)
    monkeypatch.setenv("PEERS_DIR", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "mine"))
    with pytest.raises(NotUp, match="there is no"):
        find()


def test_a_peer_that_went_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BFINFRA_PEERS_BIN", raising=False)
    monkeypatch.setenv("PEERS_DIR", str(tmp_path))
    for name in ("vcsim", "govc", "kubectl", "helm"):
        (tmp_path / name).touch()
    (tmp_path / "password").write_text("x")
    (tmp_path / "kubeconfig").write_text('{"clusters": [{"cluster": {"server": "https://127.0.0.1:1"}}]}')
    (tmp_path / "env").write_text(
        f"export KUBECONFIG={tmp_path}/kubeconfig\nexport BFINFRA_VCSIM_URL=https://127.0.0.1:1/sdk\n"
        f"export BFINFRA_VCSIM_PASSWORD_FILE={tmp_path}/password\nexport BFINFRA_PEERS_BIN={tmp_path}\n"
    )
    with pytest.raises(NotUp, match=r"vcsim at 127\.0\.0\.1:1: Connection refused"):
        find()


def item(name: str, *, once: str = "", packages: bool = False) -> Any:
    return SimpleNamespace(
        nodeid=name,
        path=ROOT / "tests/peers/test_x.py",
        module=SimpleNamespace(ONCE=once),
        fixturenames=["alone"] if once else [],
        get_closest_marker=lambda _: packages or None,
    )


@pytest.mark.parametrize("workers", [2, 3, 4])
def test_each_worker_begins_with_long_tests_and_tests_that_need_the_same_alone_are_one_workers(
    workers: int,
) -> None:
    items = [item(f"light-{n}") for n in range(41)]
    items += [item(f"machine-{n}", packages=True) for n in range(2)]
    items += [item(f"nodes-{n}", once="nodes") for n in range(3)]
    found = [each.nodeid for each in dealt(items, workers)]
    assert sorted(found) == sorted(each.nodeid for each in items)
    hands, left = [], found
    for remaining in range(workers, 0, -1):  # as xdist gives the first tests out
        hands.append(left[: len(left) // remaining])
        left = left[len(hands[-1]) :]
    assert sum(any(name.startswith("nodes") for name in hand) for hand in hands) == 1
    assert sum(any(name.startswith("machine") for name in hand) for hand in hands) == 2
    assert all(not hand[0].startswith("light") for hand in hands[:3])
