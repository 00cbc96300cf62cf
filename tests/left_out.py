"""Which tests a run leaves out, unless it is asked for them: those that need real peers (--peers), and those marked
thorough (--thorough; --share for some of them, --since for those that a change concerns), unless tests are chosen by
a path, -k or -m. --backend=live alone runs those that ask the peers of script/peers, and no others.

The summary says how many were left out, and how to run them.
"""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from changed import since

HERE = Path(__file__).parent
CONTRACT, PEERS = HERE / "contract", HERE / "peers"
COUNTS = pytest.StashKey[dict[str, int]]()
TO_RUN_THEM = {
    "": "script/peers up && script/test --peers",
    "with real peers": "script/peers up && script/test --peers",
    "marked thorough": "script/test --thorough",
}
LIVE, REAL, THOROUGH = TO_RUN_THEM


class Share(NamedTuple):
    """Of the thorough tests, every n-th, the k-th of n."""

    k: int
    n: int

    @classmethod
    def of(cls, text: str) -> Share:
        """Raises ValueError."""
        k, n = (int(each) for each in text.split("/"))
        if not 1 <= k <= n:
            raise ValueError(text)
        return cls(k, n)

    def has(self, test: str) -> bool:
        """By the test's name with its file and parameters: the same on every machine, and as random as a hash. Not by
        the file: one with a hundred long tests would be a share of hours.
        """
        return zlib.crc32(test.encode()) % self.n == self.k - 1


ALL = Share(1, 1)
MOST = 250
"""Thorough tests that a change runs at most: of more, as many are drawn."""
OF_CHANGE = pytest.StashKey[str]()


def pytest_addoption(parser: Any) -> None:
    parser.addoption(
        "--peers",
        action="store_true",
        help="run also what needs the real peers: vcsim, kube-apiserver, govc, kubectl, helm (script/peers up)",
    )
    parser.addoption(
        "--thorough",
        action="store_true",
        help="run also the tests marked thorough; a run of chosen tests does",
    )
    parser.addoption(
        "--share",
        metavar="K/N",
        help="of the tests marked thorough, run every N-th, the K-th of N; with --peers too",
    )
    parser.addoption(
        "--since",
        metavar="COMMIT",
        help="of the tests marked thorough, run those that the changes since a commit concern, beside those of --share",
    )


def pytest_configure(config: Any) -> None:
    _share(config)  # a mistake in it is told before there are workers
    for line in (
        "peers: needs the real peers of script/peers; runs with --peers",
        "packages: a peer that comes from Debian's packages (sshd, systemd, rpm, Chromium); runs with --peers",
        "thorough(*ids): shows at length what others show in short; runs with --thorough, if chosen, for these ids",
    ):
        config.addinivalue_line("markers", line)


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    here = {path for path in {item.path for item in items} if PEERS in path.parents}
    for item in items:
        if item.path in here:
            item.add_marker(pytest.mark.peers)
    live, peers = "live" in config.getoption("--backend"), config.getoption("--peers")
    share = _share(config)
    if share is not ALL and not config.getoption("lf", False):  # which collects a part of a file
        _no_parameter_is_misspelt(items)
    out = {item: why for item in items if (why := _needs(item, live=live, peers=peers)) is not None}
    concerned = _concerned(config, [item for item in items if item not in out], share)
    for item in items:
        if (
            item not in out
            and _is_thorough(item)
            and item not in concerned
            and not (share and _in(share, item))
        ):
            out[item] = THOROUGH
    items[:] = [item for item in items if item not in out]
    config.stash[COUNTS] = {why: list(out.values()).count(why) for why in TO_RUN_THEM}
    if out:
        config.hook.pytest_deselected(items=list(out))


def _needs(item: Any, *, live: bool, peers: bool) -> str | None:
    """The peers that a test needs and a run doesn't have; None if it may run."""
    if live and not peers:
        return LIVE if _others(item) else None
    return REAL if not peers and item.get_closest_marker("peers") else None


def _share(config: Any) -> Share | None:
    """Of the thorough tests, those that run; None: none does. Raises pytest.UsageError."""
    text = config.getoption("--share")
    if not text:
        return ALL if config.getoption("--thorough") or _chosen(config) else None
    try:
        return Share.of(text)
    except ValueError:
        raise pytest.UsageError(f"--share {text}: expected K/N, such as 2/6, K of 1 to N") from None


def _concerned(config: Any, items: list[Any], share: Share | None) -> frozenset[Any]:
    """The thorough tests that the changes concern; where they are more than `MOST`, as random a part as a share."""
    base = config.getoption("--since")
    if not base or share is ALL:
        return frozenset()
    found = since(base, share.k if share else 0)
    some = sorted(
        (item for item in items if _is_thorough(item) and not _is_alone(item) and found.has(item)),
        key=lambda item: zlib.crc32(item.nodeid.encode()),
    )
    where = "all" if found.all else ", ".join(sorted({*found.kinds, *found.paths}))
    more = f"; {len(some) - MOST} more were not drawn" if len(some) > MOST else ""
    config.stash[OF_CHANGE] = f"changed since {base}: {where}: {min(len(some), MOST)} thorough tests{more}"
    return frozenset(some[:MOST])


def _chosen(config: Any) -> bool:
    """Whether the run is of some tests, by path, -k or -m, and not of the whole suite."""
    by_path = config.args_source is pytest.Config.ArgsSource.ARGS
    return bool(by_path or config.option.keyword or config.option.markexpr)


def _in(share: Share, item: Any) -> bool:
    """Whether a thorough test is in a share. One that is marked `alone` keeps all processors busy for a minute: it
    is in none but the whole.
    """
    return share is ALL or (not _is_alone(item) and share.has(item.nodeid))


def _is_alone(item: Any) -> bool:
    return any(marker.kwargs.get("alone") for marker in item.iter_markers("thorough"))


def _is_thorough(item: Any) -> bool:
    """Whether it is marked so, but for the parameters that stay."""
    marker = item.get_closest_marker("thorough")
    return marker is not None and (not marker.args or item.callspec.id not in marker.args)


def _no_parameter_is_misspelt(items: list[Any]) -> None:
    """Raises pytest.UsageError with the tests whose marker names a parameter that they don't have."""
    wrong: dict[str, set[str]] = {}
    for item in items:
        for marker in item.iter_markers("thorough"):
            if marker.args:
                wrong.setdefault(item.nodeid.partition("[")[0], {*marker.args}).discard(item.callspec.id)
    lines = [f"{test} has no parameters {', '.join(sorted(ids))}" for test, ids in wrong.items() if ids]
    if lines:
        raise pytest.UsageError("\n".join(lines))


def _others(item: Any) -> bool:
    """What asks neither vcsim nor the API server."""
    asks = CONTRACT in item.path.parents or "peers" in item.fixturenames
    return not asks or item.get_closest_marker("packages") is not None


def pytest_sessionfinish(session: Any) -> None:
    """A worker of xdist tells its controller, which collects nothing itself."""
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left out"] = session.config.stash.get(COUNTS, {})
        session.config.workeroutput["of change"] = session.config.stash.get(OF_CHANGE, "")


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Every worker collects the same tests: the counts are any one's."""
    node.config.stash.setdefault(COUNTS, {})
    said = getattr(node, "workeroutput", {})
    node.config.stash[COUNTS] |= said.get("left out", {})
    node.config.stash[OF_CHANGE] = said.get("of change", "")


def pytest_terminal_summary(terminalreporter: Any, config: Any) -> None:
    if line := config.stash.get(OF_CHANGE, ""):
        terminalreporter.write_line(line)
    for why, count in config.stash.get(COUNTS, {}).items():
        if count:
            words = ("test" if count == 1 else "tests", why, "was" if count == 1 else "were")
            terminalreporter.write_line(
                f"{count} {' '.join(filter(None, words))} left out; to run them: {TO_RUN_THEM[why]}"
            )
