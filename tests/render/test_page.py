"""The page of a drift report, as a parser reads it; a browser looks at it in tests/peers."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from bad_input.nasty import acts
from test_drift_text import BLIND, HOST, NEW, REPORT, SERVER, SPACE

from bfinfra.kinds.vcenter.gpu_host.spec import Spec as Host
from bfinfra.model.drift import Cause, Drifted, Report
from bfinfra.model.refs import Key
from bfinfra.model.resource import Spec
from bfinfra.render.page import Followed, page
from bfinfra.render.topology import MOST, Box, Drawing

RESOURCES = {
    HOST: Host(passthrough=({"vendor": "0x10de", "device": "0x1db6", "count": 7},)),
    SERVER: Spec(),
    SPACE: Spec(),
    NEW: Spec(),
    Key("namespace", "a|b"): Spec(),
}
BEFORE = {HOST: (), SERVER: (HOST,), SPACE: (), NEW: (SERVER, SPACE), Key("namespace", "a|b"): ()}


class Read(HTMLParser):
    """Tags with their attributes; every open tag is closed, in order."""

    VOID = ("meta", "rect", "path", "wbr")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID or not (self.get_starttag_text() or "").endswith("/>"):
            self.open += [] if tag in ("meta", "wbr") else [tag]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


@pytest.mark.parametrize("report", [REPORT, BLIND, Report("poc", (), 5)])
def test_it_needs_nothing_else(report):
    text = page(report, RESOURCES, BEFORE)
    found = Read(text)
    assert {tag for tag, _ in found.tags}.isdisjoint(
        {"script", "link", "img", "iframe", "object", "form", "base"}
    )
    assert "http:" not in text
    assert "https:" not in text
    assert "url(" not in text
    assert [name for _, attrs in found.tags for name in attrs if name.startswith("on")] == []


def test_each_resource_is_a_box_with_a_name_that_says_all_of_it():
    found = Read(page(REPORT, RESOURCES, BEFORE))
    names = [
        attrs["aria-label"] for tag, attrs in found.tags if tag in ("a", "g") and attrs.get("aria-label")
    ]
    assert [name for name in names if name.startswith("bitfusion_server/bf-01")] == [
        "bitfusion_server/bf-01: drifted: the live state changed: power off instead of on, cpus 4 instead of 8"
    ]
    assert any(
        name.startswith("gpu_host/esx1") and name.endswith(f"holds {', '.join(['GPU 10de:1db6'] * 7)}")
        for name in names
    )
    assert "namespace/a|b: up to date" in names


def test_what_drifted_leads_to_its_row_and_every_link_has_its_target():
    found = Read(page(REPORT, RESOURCES, BEFORE))
    ids = [attrs["id"] for _, attrs in found.tags if attrs.get("id")]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] for attrs in found.all("a")]
    assert len(links) == 1 + 2 * 4  # to the findings; server, space, host, workload: as box and in the list
    assert {str(link).removeprefix("#") for link in links} <= set(ids)


def test_the_tables_heads_have_scopes_and_a_caption():
    found = Read(page(REPORT, RESOURCES, BEFORE))
    assert [attrs.get("scope") for attrs in found.all("th")] == ["col"] * 8 + ["row"] * 6
    assert len(found.all("caption")) == 1


def test_drift_is_shown_by_sign_and_word_and_not_by_colour_alone():
    found = Read(page(REPORT, RESOURCES, BEFORE))
    for words in (
        "~ drifted: the live state changed",
        "≠ conflict",
        "+ is not applied yet",
        "(ignored: being replaced",
    ):
        assert words in found.words


def test_a_narrow_screen_gets_what_is_drawn_as_a_list():
    text = page(REPORT, RESOURCES, BEFORE)
    listed = Read(re.findall(r'<ol class="listed">.*?</ol>', text, re.DOTALL)[0])
    assert len(listed.all("li")) == text.count('role="listitem"')
    assert "bitfusion_server/bf-01 ~ drifted: the live state changed: power off instead of on" in listed.words
    assert f"holds {', '.join(['GPU 10de:1db6'] * 7)}" in listed.words
    assert f"after {HOST}" in listed.words


def test_a_list_names_the_box_of_many_once():
    many = [Key("gpu_host", f"esx{n}") for n in range(MOST + 3)]
    drawing = Drawing([Box(key) for key in [*many, SERVER]], {SERVER: dict.fromkeys(many, "")})
    last = next(box for box in drawing.boxes if box.key == SERVER)
    assert drawing.comes_after(last) == [*many[:MOST], Key("gpu_host", "3 more")]


def test_a_blind_check_says_what_it_could_not_see():
    found = Read(page(BLIND, RESOURCES, BEFORE))
    assert "tanzu_cluster/c can't be read; no answer" in found.words
    assert "Everything that could be read is as the site says." in found.words


def test_many_that_agree_are_one_box_and_none_that_drifted_is_left_out():
    servers = {Key("bitfusion_server", f"bf-{n}"): Spec() for n in range(1000)}
    moved = tuple(
        Drifted(key=key, cause=Cause.DRIFT, field="power", now="off", wanted="on")
        for key in list(servers)[900:950]
    )
    text = page(Report("poc", moved, 950), servers, dict.fromkeys(servers, ()))
    assert f"bitfusion_server/{1000 - 50 - MOST} more: up to date" in text
    assert text.count('role="listitem"') == 50 + MOST + 1


WORDS = "</svg></style><script>alert(1)</script>\"'&\x1b[2J\u202e"


def test_words_of_others_stay_words():
    nasty = replace(
        REPORT,
        site=WORDS,
        found=(replace(REPORT.found[0], key=Key("bitfusion_server", WORDS), now=WORDS, by=WORDS),),
        ended=(WORDS,),
        unreadable={WORDS: WORDS},
    )
    text = page(nasty, {Key("bitfusion_server", WORDS): Spec()}, {})
    assert acts(text) == []
    assert Read(text).all("script") == []


def test_the_page_of_a_watch_renews_itself_and_says_when_it_is_out_of_date():
    def words(followed):
        found = Read(page(REPORT, RESOURCES, BEFORE, followed=followed))
        assert [each["content"] for each in found.all("meta") if each.get("http-equiv") == "refresh"] == ["2"]
        return found.words

    assert "Followed since 2001-09-09 01:46" in words(Followed(1e9))
    assert "are not followed since 2001-09-09 01:46 UTC: <vc> is off" in words(
        Followed(1e8, 1e9, "<vc> is off")
    )
    assert "The watch ended 2001-09-09 01:46" in words(Followed(1e8, ended=1e9))
    assert "refresh" not in page(REPORT, RESOURCES, BEFORE)
