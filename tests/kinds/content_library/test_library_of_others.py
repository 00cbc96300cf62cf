"""Items of a content library that somebody changed, or that another machine stores or left half stored: what
is deployed is the appliance of the site, or nothing.
"""

from __future__ import annotations

import json
import tarfile
import threading
from pathlib import Path
from typing import Any

import pytest
from kinds.lifecycle import EVERYTHING, EXAMPLES, apply, endings, made, plan, run_context
from sandbox.asking import Https, Rest, read

import bfinfra
from bfinfra.backends.vcenter import library
from bfinfra.engine.apply import Options
from bfinfra.engine.retry import RetryPolicy
from bfinfra.sandbox import Running

pytestmark = pytest.mark.thorough

SERVER = "bitfusion_server/bf-01"
ITEMS, SESSIONS = "/api/content/library/item", "/api/content/library/item/update-session"
ELSEWHERE = (
    "Bitfusion 3.0. bfinfra keeps this appliance here, under its digest; stored by elsewhere/1a2b3c/4711"
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    text = (
        EXAMPLES["bitfusion_server"]
        .read_text()
        .replace("    ova: {file", "    library: {name: appliances, datastore: local}\n    ova: {file")
    )
    (tmp_path / "site.yaml").write_text(text)
    return tmp_path / "site.yaml"


class Other:
    """Another client of the library, by plain REST."""

    def __init__(self, sandbox: Running) -> None:
        self.rest = Rest(sandbox)
        with tarfile.open(Path(sandbox.files) / "server.ova") as ova:
            self.files = {
                each.name: ova.extractfile(each).read()
                for each in ova
                if not each.name.endswith((".mf", ".cert"))
            }  # type: ignore[union-attr]  # all are files

    def item(self) -> dict[str, Any]:
        (identity,) = [
            each
            for home in self.rest.get("/api/content/library")
            for each in self.rest.get(f"{ITEMS}?library_id={home}")
        ]
        return dict(self.rest.get(f"{ITEMS}/{identity}"))

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.rest.call(method, path, body)
        assert answer.status < 300, answer
        return answer.data

    def begin(self, item: str, *names: str) -> str:
        """A session that takes these files; it is not complete."""
        session = str(self.ask("POST", SESSIONS, {"library_item_id": item}))
        for name in names:
            where = self.ask(
                "POST",
                f"{SESSIONS}/{session}/file",
                {"name": name, "source_type": "PUSH", "size": len(self.files[name])},
            )["upload_endpoint"]["uri"]
            line = Https(self.rest.host, self.rest.port, self.rest.ca_file)
            line.request(
                "PUT",
                where.partition("://")[2].partition("/")[1] + where.partition("://")[2].partition("/")[2],
                self.files[name],
                {"vmware-api-session-id": self.rest.token},
            )
            assert read(line).status < 300
            line.close()
        return session

    def end(self, session: str, how: str = "complete") -> None:
        self.ask("POST", f"{SESSIONS}/{session}?action={how}")

    def half(self) -> tuple[str, str]:
        """As another machine leaves it that has only just started: the item without its content, and a session.
        Their ids.
        """
        before = self.item()
        self.ask("DELETE", f"{ITEMS}/{before['id']}")
        item = str(
            self.ask(
                "POST",
                ITEMS,
                {
                    "library_id": before["library_id"],
                    "name": before["name"],
                    "type": "ovf",
                    "description": ELSEWHERE,
                },
            )
        )
        return item, self.begin(item, next(name for name in self.files if name.endswith(".ovf")))


@pytest.fixture
def other(site: Path, sandbox: Running) -> Other:
    """The library is there, and holds the appliance; no server is there."""
    for destroy in (False, True):
        assert made(apply(site, sandbox, destroy=destroy))
    return Other(sandbox)


def once(site: Path, sandbox: Running) -> str:
    """An apply that tries nothing twice; how the server ended."""
    outcome = bfinfra.apply(
        bfinfra.load(site, sandbox=sandbox),
        approve=lambda _: EVERYTHING,
        options=Options(retry=RetryPolicy(attempts=1, lasts=0)),
        context=run_context(sandbox),
    )
    return endings(outcome)[SERVER]


def machines(sandbox: Running) -> int:
    return json.dumps(sandbox.world()).count('"bf-01"')


def good(site: Path, sandbox: Running) -> None:
    outcome = apply(site, sandbox)
    assert made(outcome), endings(outcome)
    assert plan(site, sandbox).pending == ()


def test_an_item_that_somebody_changed_is_not_deployed(site: Path, sandbox: Running, other: Other) -> None:
    disk = next(name for name in other.files if name.endswith(".vmdk"))
    other.files[disk] = other.files[disk][:-1] + b"x"
    other.end(other.begin(other.item()["id"], disk))
    ended = once(site, sandbox)
    assert "does not hold that appliance" in ended
    assert "delete the item; the next apply stores it again" in ended
    assert machines(sandbox) == 0
    other.ask("DELETE", f"{ITEMS}/{other.item()['id']}")
    good(site, sandbox)


def test_what_another_machine_stores_is_waited_for(site: Path, sandbox: Running, other: Other) -> None:
    item, session = other.half()
    ended = once(site, sandbox)
    assert "is being stored in the library" in ended
    assert "elsewhere/1a2b3c/4711" in ended
    assert machines(sandbox) == 0
    assert other.rest.get(f"{SESSIONS}/{session}")["state"] == "ACTIVE", "theirs goes on"
    other.end(session, "cancel")
    good(site, sandbox)
    assert other.item()["id"] == item
    assert other.rest.get(f"{SESSIONS}?library_item_id={item}") == []


def test_what_another_machine_stored_meanwhile_is_not_uploaded_again(
    site: Path, sandbox: Running, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "LONGEST", 0.2)
    item, session = other.half()
    whole = other.begin(item, *other.files)
    before = uploads(sandbox)

    def finish() -> None:
        other.end(session, "cancel")
        other.end(whole)

    timer = threading.Timer(0.3, finish)
    timer.start()
    good(site, sandbox)
    timer.join()
    assert uploads(sandbox) == before


def test_what_another_machine_stored_between_two_reads_is_not_uploaded_again(
    site: Path, sandbox: Running, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    item, session = other.half()
    whole = other.begin(item, *other.files)
    before = uploads(sandbox)
    take_over = library.Libraries._take_over

    def late(self: library.Libraries, *arguments: Any) -> str:
        other.end(session, "cancel")
        other.end(whole)
        return take_over(self, *arguments)

    monkeypatch.setattr(library.Libraries, "_take_over", late)
    good(site, sandbox)
    assert uploads(sandbox) == before


def uploads(sandbox: Running) -> dict[str, int]:
    """How often each file was uploaded."""
    asked = sandbox.tally()["calls"]["rest"]
    return {name: count for name, count in asked.items() if name.startswith("PUT /cls/data/")}
