"""--backend, --record; who lacks what is counted and printed; what each side did is written down by
script/record.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from contract.calls import Account
from peers.found import NotUp, find

from bfinfra.model.errors import BfinfraError

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
MODES = ("sandbox", "cassette", "live")
LACKING = pytest.StashKey[set[str]]()
REPORTED = pytest.StashKey[dict[str, Any]]()
LACK = pytest.StashKey[str]()
ACCOUNT = pytest.StashKey[Account]()
SIDE = pytest.StashKey[Any]()


def pytest_addoption(parser: Any) -> None:
    parser.addoption(
        "--backend",
        default="",
        help=(
            "tests/contract runs on: sandbox, cassette, live, or several with commas (default: "
            "sandbox,cassette)"
        ),
    )
    parser.addoption(
        "--record",
        action="store_true",
        help="write cassettes and results.json anew; with --backend=sandbox,live and one worker",
    )


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "call(names, case): a contract test: the calls that it is about")
    config.addinivalue_line(
        "markers", "lacks(who, what, run): a side that can't do what a contract test asks for"
    )
    config.stash[LACKING], config.stash[REPORTED] = set(), {}
    if unknown := set(modes(config)) - set(MODES):
        raise pytest.UsageError(f"--backend: {', '.join(unknown)} is none of {', '.join(MODES)}")
    if (
        "live" in config.getoption("--backend").split(",")
        and not config.option.collectonly
        and not hasattr(config, "workerinput")
    ):
        try:
            find()
        except NotUp as error:  # reported once, not by each of hundreds of tests
            raise pytest.UsageError(f"--backend=live: {error}") from None


def modes(config: Any) -> list[str]:
    """What --backend says; live by default too where --peers is given."""
    given = config.getoption("--backend")
    return (
        given.split(",")
        if given
        else ["sandbox", "cassette", *(["live"] if config.getoption("--peers") else [])]
    )


def pytest_generate_tests(metafunc: Any) -> None:
    if "mode" in metafunc.fixturenames and HERE in metafunc.definition.path.parents:
        metafunc.parametrize("mode", modes(metafunc.config), scope="session")


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """What a side lacks is asked of it live, and must fail; on a cassette there is nothing to ask."""
    out = []
    for item in items:
        mode = item.callspec.params.get("mode", "") if hasattr(item, "callspec") else ""
        peer = (
            "sandbox"
            if mode == "sandbox"
            else "kube-apiserver"
            if "kubernetes" in item.fixturenames
            else "vcsim"
        )
        if mode and (about := item.get_closest_marker("call")):
            missing = {mark.args[0]: mark.args[1] for mark in item.iter_markers("lacks")}
            config.stash[REPORTED].setdefault(name_of(item), {})["about"] = {
                "calls": list(about.args[0]),
                "case": about.kwargs["case"],
                "lacks": missing,
            }
        for mark in item.iter_markers("lacks") if mode else ():
            who, what = mark.args
            config.stash[LACKING].add(f"{who}: {what}")
            if (who == "cassettes" and mode == "cassette") or (
                who == peer and (mode == "cassette" or not mark.kwargs["run"])
            ):
                out.append(item)
            elif who == peer:
                item.stash[LACK] = f"{who} lacks: {what}"
    items[:] = [item for item in items if item not in out]
    if out:
        config.hook.pytest_deselected(items=out)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Any:
    report = yield
    mark = item.get_closest_marker("call")
    if report.when == "call" and LACK in item.stash:
        _must_fail(item.stash[LACK], report, call.excinfo)
    if mark and report.when == "call" and ACCOUNT in item.stash:
        side, account = item.stash[SIDE], item.stash[ACCOUNT]
        outcome = (
            "passed"
            if report.passed and not hasattr(report, "wasxfail")
            else "lacks"
            if report.skipped
            else "failed"
        )
        reported = {"said": account.lines, "requests": sorted(side.requests())}
        if outcome == "passed":
            _compare(item, side.peer, reported, report)
        item.config.stash[REPORTED][name_of(item)][side.peer] = {
            "outcome": outcome,
            **(reported if outcome == "passed" else {}),
        }
    return report


def _must_fail(why: str, report: Any, failed: Any) -> None:
    """Reported as an expected failure; what no longer fails is a failure: then the side lacks it no more."""
    if failed is None:
        report.outcome, report.longrepr = (
            "failed",
            f"{why}: it passes, so take the mark away and run script/record",
        )
    elif failed.errisinstance((AssertionError, BfinfraError, pytest.fail.Exception, KeyError)):
        report.outcome, report.wasxfail = "skipped", why


def name_of(item: Any) -> str:
    """Test function with its parameters other than the mode."""
    words = (
        [word for word in getattr(item, "callspec", None).id.split("-") if word not in MODES]
        if hasattr(item, "callspec")
        else []
    )
    return f"{item.path.stem}.{item.originalname}" + (f"[{'-'.join(words)}]" if words else "")


def _compare(item: Any, peer: str, reported: dict[str, Any], report: Any) -> None:
    """A side that does something else than the table says makes the table a lie."""
    all_known = stored().get(name_of(item), {})
    known, about = all_known.get(peer, {}), item.config.stash[REPORTED][name_of(item)]["about"]
    if not item.config.getoption("--record") and (known.get("said"), all_known.get("about")) != (
        reported["said"],
        about,
    ):
        report.outcome = "failed"
        report.longrepr = (
            f"{peer} did {reported['said']}, docs/explanation/sandbox.md was made from {known.get('said')}; if that is "
            "right: script/record"
        )


def stored() -> dict[str, Any]:
    """Test → side → what it did, as script/record wrote it."""
    return dict(json.loads(RESULTS.read_text())) if RESULTS.exists() else {}


def pytest_sessionfinish(session: Any, exitstatus: int) -> None:
    config = session.config
    if hasattr(config, "workeroutput"):
        config.workeroutput["lacking"] = sorted(config.stash[LACKING])
    elif config.getoption("--record") and exitstatus == 0 and config.stash[REPORTED]:
        found = {**stored(), **config.stash[REPORTED]}  # of tests that did not run now, what they did before
        lines = (f"{json.dumps(name)}: {json.dumps(found[name], sort_keys=True)}" for name in sorted(found))
        RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Workers of xdist collect; the controller prints."""
    node.config.stash[LACKING].update(getattr(node, "workeroutput", {}).get("lacking", ()))


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    """Each by name where the suite was asked for by --backend, else how many."""
    lacking = sorted(config.stash[LACKING])
    if config.getoption("--backend") or config.getoption("--peers"):
        for line in lacking:
            terminalreporter.write_line(f"contract: {line}")
    elif lacking:
        terminalreporter.write_line(
            f"contract: {len(lacking)} things that a side lacks were asked of the others only; "
            "docs/explanation/flaws.md names them"
        )
