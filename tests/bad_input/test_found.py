"""What the fuzzer and its makers found: the smallest input that broke something, and what is said of it now."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from bad_input import at_a_desk


@pytest.fixture
def home(tmp_path: Path):
    with at_a_desk.alone(tmp_path):
        yield tmp_path / "home"


def test_history_makes_no_folder_and_its_name_leads_nowhere_else(home: Path):
    assert at_a_desk.answers("history", "never-applied") == 0
    assert list(home.iterdir()) == []
    for name in ("../../etc", "/etc", "a/b", "\x1b[2J"):
        assert at_a_desk.answers("history", name) == 1


@pytest.mark.parametrize("line", [
    "5", "[]", "{}", '{"at": "x"}', '{"at": 1e300}', '{"at": NaN}', '{"at": -1}', '{"problem": 5}', '{"problem": {"what": []}}', '{"run": {}, "key": []}', "[" * 100_000, '{"ending": ["a"]}',
    '{"event": "Ended", "at": 1, "key": "\\u001b]52;c;AA\\u0007\\u202e", "ending": "\\u009b31m", "run": "\\u001b[2J"}', '{"event": "Ended", "seconds": true}', '{"a": "' + "x" * (2 << 20) + '"}', "\udcff",
])  # fmt: skip
def test_a_journal_that_somebody_else_wrote_is_shown_without_harm(home: Path, line: str):
    folder = home / "bfinfra" / "s"
    folder.mkdir(parents=True)
    good = '{"run": "r", "event": "Ended", "at": 1.5, "key": "box/a", "ending": "done", "action": "create", "seconds": 1}'
    (folder / "journal.jsonl").write_bytes(f"{good}\n{line}\n{good}\n".encode(errors="surrogateescape"))
    for output in ("text", "json", "jsonl", "markdown"):
        code, out, err = at_a_desk.said("history", "s", "--output", output)
        assert (code, err) == (0, "")
        assert "box/a" in out
        assert at_a_desk.answers("history", "s", "--output", output) == 0


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/stdin", "pipe", "binary", "large", "."])
def test_a_secret_or_kubeconfig_that_is_no_small_file_of_text_is_not_read(home: Path, path: str):
    folder = home.parent
    os.mkfifo(folder / "pipe")
    (folder / "binary").write_bytes(b"\xff")
    (folder / "large").write_bytes(b"a" * (2 << 20))
    site = folder / "site.yaml"
    site.write_text(f"site: a\nkubernetes_cluster: {{c: {{kubeconfig: {{file: {path}}}}}}}\nnamespace: {{n: {{cluster: c}}}}\n")
    assert at_a_desk.answers("plan", str(site)) == 1

