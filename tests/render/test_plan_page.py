"""The pages of a plan and of an apply, as a parser reads them; a browser looks at them in tests/peers."""

from __future__ import annotations

from dataclasses import replace

from bad_input.nasty import acts
from render_samples import CLUSTER, HOST, NAMESPACE, OLD, SECRET, units
from test_page import Read

from bfinfra.model.errors import Problem
from bfinfra.model.refs import Key
from bfinfra.model.resource import Spec
from bfinfra.render import plan_page
from bfinfra.render.html_page import identifier
from bfinfra.render.style import Style

RESOURCES = {HOST: Spec(), NAMESPACE: Spec(), CLUSTER: Spec(), SECRET: Spec()}
BEFORE = {HOST: {}, NAMESPACE: {}, CLUSTER: {NAMESPACE: ""}, SECRET: {CLUSTER: ""}}
WORDS = "</svg></style><script>alert(1)</script>\"'&\x1b[2J\u202e"


def of(plan) -> str:
    return plan_page.plan(plan, RESOURCES, BEFORE, Style(units=units))


def test_a_plan_has_a_row_for_each_change_and_none_for_what_is_up_to_date(plan):
    found = Read(of(plan))
    rows = {attrs.get("id") for attrs in found.all("tr")} - {None}
    assert rows == {identifier(key) for key in (HOST, NAMESPACE, SECRET, OLD)}


def test_a_plan_shows_steps_and_fields_in_the_units_of_the_site(plan):
    words = Read(of(plan)).words
    assert "limits.memory: 384GiB" in words
    assert "passthrough.0.count: 1 → 2" in words
    assert words.count("namespaces: ") == 1


def test_every_link_of_a_plan_has_its_target(plan):
    found = Read(of(plan))
    ids = {attrs["id"] for _, attrs in found.tags if attrs.get("id")}
    links = {str(attrs["href"])[1:] for attrs in found.all("a")}
    assert links
    assert links <= ids


def test_a_deletion_is_shown_by_sign_and_word(plan):
    found = Read(of(plan))
    label = next(str(a["aria-label"]) for a in found.all("a") if identifier(OLD) in str(a["href"]))
    assert label == "bitfusion_server/bf-00: to delete"


def test_a_plan_that_can_not_be_applied_says_why(broken):
    text = of(broken)
    assert 'class="verdict alarm"' in text
    assert "token_secret can&#x27;t be read; cluster-01 does not answer" in text
    assert "did you mean limits?" in text
    assert "the certificate ends in 9 days" in text


def test_a_plan_without_a_change_says_so(plan):
    kept = replace(plan, items=plan.items[2:3])
    assert "Everything that could be read is up to date." in of(kept)


def test_an_apply_shows_how_each_ended_and_what_to_do_next(outcome, events):
    found = Read(plan_page.outcome(outcome, events, RESOURCES, BEFORE))
    assert "the host did not come back" in found.words
    assert "Create the namespace cnasg" in found.words
    assert "Correct what failed, then run the same command again" in found.words


def test_the_pages_need_nothing_else(plan, outcome, events):
    for text in (of(plan), plan_page.outcome(outcome, events, RESOURCES, BEFORE)):
        tags = {tag for tag, _ in Read(text).tags}
        assert tags.isdisjoint({"script", "link", "img", "iframe", "object", "form", "base"})
        assert "url(" not in text


def test_words_of_others_stay_words(plan, outcome, events):
    key = Key("bitfusion_server", WORDS)
    item = replace(plan.items[0], key=key)
    nasty = replace(plan, site=WORDS, items=(item,), problems=(Problem(WORDS),), unreadable={WORDS: WORDS})
    ended = replace(next(iter(outcome.endings.values())), key=key, note=WORDS, problem=Problem(WORDS))
    after = replace(outcome, plan=nasty, endings={key: ended})
    for text in (of(nasty), plan_page.outcome(after, events, {}, {})):
        assert acts(text) == []
        assert Read(text).all("script") == []
