"""What the fuzzer and its authors found: the smallest input that broke something, and the message about it
now.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import tracemalloc
from pathlib import Path

import pytest
from bad_input import archives, at_a_desk

from bfinfra.backends.bitfusion.archive import BadToken, members
from bfinfra.sandbox.passwords import Passwords
from bfinfra.sandbox.reading import BadWorld
from bfinfra.sandbox.world_file import load


@pytest.fixture
def home(tmp_path: Path):
    with at_a_desk.alone(tmp_path):
        yield tmp_path / "home"


def test_history_makes_no_folder_and_its_name_leads_nowhere_else(home: Path):
    assert at_a_desk.answers("history", "never-applied") == 0
    assert list(home.iterdir()) == []
    for name in ("../../etc", "/etc", "a/b", "\x1b[2J"):
        assert at_a_desk.answers("history", name) == 1


@pytest.mark.parametrize(
    "line",
    [
        "5",
        "[]",
        "{}",
        '{"at": "x"}',
        '{"at": 1e300}',
        '{"at": NaN}',
        '{"at": -1}',
        '{"problem": 5}',
        '{"problem": {"what": []}}',
        '{"run": {}, "key": []}',
        "[" * 100_000,
        '{"ending": ["a"]}',
        (
            '{"event": "Ended", "at": 1, "key": "\\u001b]52;c;AA\\u0007\\u202e", "ending": "\\u009b31m", '
            '"run": "\\u001b[2J"}'
        ),
        '{"event": "Ended", "seconds": true}',
        '{"a": "' + "x" * (2 << 20) + '"}',
        "\udcff",
    ],
)
def test_a_journal_that_somebody_else_wrote_is_shown_without_harm(home: Path, line: str):
    folder = home / "bfinfra" / "s"
    folder.mkdir(parents=True)
    good = (
        '{"run": "r", "event": "Ended", "at": 1.5, "key": "box/a", "ending": "done", "action": "create", '
        '"seconds": 1}'
    )
    (folder / "journal.jsonl").write_bytes(f"{good}\n{line}\n{good}\n".encode(errors="surrogateescape"))
    for output in ("text", "json", "jsonl", "markdown"):
        code, out, err = at_a_desk.output("history", "s", "--output", output)
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
    site.write_text(
        f"site: a\nkubernetes_cluster: {{c: {{kubeconfig: {{file: {path}}}}}}}\nnamespace: {{n: "
        f"{{cluster: c}}}}\n"
    )
    assert at_a_desk.answers("plan", str(site)) == 1


@pytest.mark.parametrize("verb", ["validate", "plan", "graph"])
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/tty0", "pipe"])
def test_a_site_that_is_no_plain_file_is_refused_and_never_waited_for(home: Path, verb: str, path: str):
    os.mkfifo(home.parent / "pipe")
    code, _, err = at_a_desk.output(verb, str(home.parent / path))
    assert (code, "it is not a regular file" in err or "No such" in err) == (1, True)


DEEP = "[" * 100_000
PLAN = '{"format_version": 1, "site": "a", "destroy": false, "files": {}, "items": {}}'


@pytest.mark.parametrize(
    "text",
    [
        *(
            PLAN.replace(*change)
            for change in (
                ("{}", "5"),
                ('"items": {}', '"items": {"a/b": 5}'),
                ('"items": {}', '"items": {"a/b": {"action": {}, "steps": []}}'),
                ('"items": {}', '"items": {"a/b": {"action": "create", "steps": [5]}}'),
                ('"items": {}', '"items": []'),
                ("false", '"no"'),
                ('"files": {}', '"files": {"/dev/zero": "a"}'),
                ('"files": {}', '"files": {"a\\u0000b": "a"}'),
                ('"files": {}', '"files": {"/etc": 5}'),
                ("1,", "[],"),
                ("1,", "1e400,"),
                ('"a"', '"\\u001b]52;c;AA\\u0007"'),
                ('"files": {}', '"files": {"\\u202e/x": "y"}'),
                ('"items": {}', '"items": ' + DEEP),
                ("}", ""),
            )
        ),
        '{"format_version": 1}',
        '{"format_version"' + "\xff" * 9,
    ],
)
def test_a_plan_file_that_nobody_made(home: Path, text: str):
    file = home.parent / "planfile"
    file.write_text(text)
    assert at_a_desk.answers("apply", str(file), "--yes") == 1
    assert list(home.iterdir()) == []


def test_a_plan_file_as_large_as_a_disk_is_not_read(home: Path):
    file = home.parent / "planfile"
    file.write_text(PLAN)
    os.truncate(file, 1 << 40)
    assert "larger than" in at_a_desk.output("apply", str(file), "--yes")[2]


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        "a: &a [*a]",
        "a: &a b\nc: *a",
        "\x1b",
        "!!python/object/apply:os.system [id]",
        "5",
        "vcenter: 2026-99-99",
        "? [a]\n: b",
        "vcenter: {host: [" + "9" * 5000 + "]}",
    ],
)
def test_a_world_that_nobody_can_live_in(home: Path, text: str):
    (home.parent / "site.yaml").write_text("site: a\n")
    (home.parent / "world.yaml").write_text(text)
    with pytest.raises(BadWorld) as raised:
        load(home.parent / "world.yaml", Passwords(b""))
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize(
    ("member", "text", "says"), [(".ovf", b"</Envelope>", "tags"), (".ovf", b"</DiskSection>", "tags")]
)
def test_a_descriptor_of_countless_elements(home: Path, member: str, text: bytes, says: str):
    out = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archives.ova())) as source,
        tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for info in source:
            body = source.extractfile(info).read()
            body = (
                body.replace(text, b'<Disk ovf:diskId="d" ovf:capacity="1"/>' * 90_000 + text)
                if info.name.endswith(member)
                else body
            )
            info.size = len(body)
            tar.addfile(info, io.BytesIO(body))
    (home.parent / "a.ova").write_bytes(out.getvalue())
    code, _, err = at_a_desk.output("ova", "inspect", str(home.parent / "a.ova"))
    assert code == 1
    assert says in err


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_packed_token_that_swells_is_not_unpacked_whole(tmp_path: Path, pack):
    head = tarfile.TarInfo("x")
    head.type, head.size = b"L", 24 << 20
    (tmp_path / "token.tar").write_bytes(pack(head.tobuf() + bytes(head.size)))
    tracemalloc.start()  # unpacked it would be 24 MiB, and lzma keeps 8
    with pytest.raises(BadToken, match="one of its headers has 25,165,824 bytes"):
        members(tmp_path / "token.tar")
    assert tracemalloc.get_traced_memory()[1] < 20 << 20
    tracemalloc.stop()
    (tmp_path / "good.tar").write_bytes(pack(archives.token()))
    assert set(members(tmp_path / "good.tar")) == {"ca.crt", "client.yaml", "servers.conf"}
