"""A name that others choose, in each format that bfinfra writes: the format's own parser finds it again as data, and
nothing that is not there with a plain name.

Each document is written twice, with a plain word and with the name. What is parsed of both differs only in that word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from bad_input import judges
from bad_input.foreign_names import COMMANDS, LISTED
from bad_input.nasty import acts
from hostile_samples import Samples, samples
from hypothesis import given, settings
from hypothesis import strategies as st

from bfinfra.model.observed import Observed
from bfinfra.model.redact import clean, encodable
from bfinfra.model.refs import Key
from bfinfra.model.yaml import compose
from bfinfra.render import (
    data,
    drift,
    graph,
    history,
    html_text,
    junit,
    markdown,
    notebook,
    observed,
    ova,
    page,
    plan_page,
    problems,
    site,
    summary,
    text,
)  # fmt: skip
from bfinfra.render.html_page import identifier
from bfinfra.render.safe import printed, safe
from bfinfra.render.style import Style
from bfinfra.render.values import shown

SPECIALS = st.text(alphabet="@#!:/[]()<>&`|\\*_~-+=.$%^'\"; \n\t1aw{}", max_size=14)
NAMES = st.one_of(
    st.text(max_size=12),
    SPECIALS,
    st.lists(st.sampled_from((*LISTED, "a", " ")), max_size=3).map("".join),
    st.text(
        alphabet=st.characters(categories=["Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp", "Mn"]), max_size=6
    ),
)
SHARES = 8  # a document is tried with every eighth of the listed names; the writers are with all
MANY = settings(max_examples=50, deadline=None, derandomize=True, database=None)
LOUD = Style(verbose=True)
WORD, VALUE, NOTE, FILE = "zqword", "zqvalue", "zqnote", "zqfile"
PLAIN = samples(WORD, VALUE, NOTE, FILE)


def of(name: str) -> Samples:
    return samples(name, name, line_of(name), file_of(name))


def line_of(name: str) -> str:
    """A note is text of several lines; in this one the name begins none."""
    return " ".join(name.splitlines()) or "-"


def file_of(name: str) -> str:
    return name.replace("/", "-")


def with_name(found: Any, name: str) -> Any:
    """What is found with the plain words, with the name instead, as people see it."""
    if isinstance(found, str):
        for sign in "ab":
            found = found.replace(identifier(Key("box", sign + WORD)), identifier(Key("box", sign + name)))
        seen = {WORD: safe(name), NOTE: safe(line_of(name)), FILE: safe(file_of(name)), VALUE: shown(name)}
        return re.sub("|".join(seen), lambda each: seen[each[0]], found)
    if isinstance(found, dict):
        return {key: with_name(value, name) for key, value in found.items()}
    return type(found)(with_name(each, name) for each in found) if isinstance(found, list | tuple) else found


MARKDOWN: dict[str, Callable[[Samples], str]] = {
    "plan": lambda s: markdown.plan(s.plan, LOUD),
    "outcome": lambda s: markdown.outcome(s.outcome, s.events),
    "drift": lambda s: drift.markdown(s.report, LOUD),
    "problems": lambda s: markdown.problems([s.problem]),
}
HTML: dict[str, Callable[[Samples], str]] = {
    "drift": lambda s: page.page(s.report, specs(s), before(s)),
    "watch": lambda s: page.page(s.report, specs(s), before(s), followed=page.Followed(1.0, 2.0, s.words)),
    "plan": lambda s: plan_page.plan(s.plan, specs(s), before(s)),
    "saved plan": lambda s: plan_page.saved(s.plan),
    "outcome": lambda s: plan_page.outcome(s.outcome, s.events, specs(s), before(s)),
    "graph": lambda s: graph.page(before(s), specs(s), s.words),
    "svg": lambda s: graph.svg(before(s), specs(s)),
    "plan in a notebook": lambda s: notebook.plan(s.plan),
    "drift in a notebook": lambda s: notebook.report(s.report),
}
TEXT: dict[str, Callable[[Samples], str]] = {
    "plan": lambda s: text.plan(s.plan, LOUD),
    "drift": lambda s: drift.text(s.report, LOUD),
    "changes": lambda s: drift.changes(s.report, LOUD),
    "outcome": lambda s: summary.outcome(s.outcome, s.events, LOUD),
    "problems": lambda s: problems.problems([s.problem], LOUD),
    "warnings": lambda s: problems.warnings(s.plan.warnings, LOUD),
    "history": lambda s: history.history(s.journal, LOUD),
    "ova": lambda s: ova.text(s.ova),
    "graph": lambda s: graph.tree(before(s)),
    "get": lambda s: observed.table([Observed(s.key, "ok", s.words)]),
    "names": lambda s: observed.names([Observed(s.key, "ok")]),
}
DATA: dict[str, Callable[[Samples], Any]] = {
    "plan": lambda s: data.plan(s.plan),
    "drift": lambda s: drift.data(s.report),
    "message": lambda s: drift.message(s.report),
    "outcome": lambda s: data.outcome(s.outcome, s.events),
    "graph": lambda s: graph.data(before(s), s.words),
    "history": lambda s: history.data(s.words, s.journal),
    "get": lambda s: observed.data(s.words, [Observed(s.key, "ok", s.words)]),
}


def before(found: Samples) -> dict[Key, dict[Key, str]]:
    return {found.key: {}, found.other: {found.key: found.words}}


def specs(found: Samples) -> dict[Key, Any]:
    return dict.fromkeys((found.key, found.other))


def in_markdown(made: Callable[[Samples], str], name: str) -> None:
    assert tidy(judges.markdown(made(of(name)))) == tidy(with_name(judges.markdown(made(PLAIN)), name))


def tidy(found: list[judges.Part]) -> list[judges.Part]:
    """Markdown keeps no spaces at the ends of a text."""
    texts = [(tag, rest if tag else (("words", "".join(str(rest[0][1]).split())),)) for tag, rest in found]
    return [each for each in texts if each[0] or each[1][0][1]]


def in_a_page(made: Callable[[Samples], str], name: str) -> None:
    assert unshortened(judges.html(made(of(name)))) == unshortened(with_name(judges.html(made(PLAIN)), name))


def unshortened(found: list[judges.Part]) -> list[judges.Part]:
    """The label in a box is cut; the box's own name is whole."""
    drawn = [number + 1 for number, (tag, _) in enumerate(found) if tag == "text"]
    return [each for number, each in enumerate(found) if number not in drawn or each[0]]


def in_junit(made: Callable[[Samples], str], name: str) -> None:
    """A reason may have several lines, in an element's text only."""
    plain, found = list(judges.xml(made(PLAIN))), list(judges.xml(made(of(name))))
    assert {tag for tag, _, _ in found} <= judges.JUNIT.keys()
    assert all(attributes.keys() <= judges.JUNIT[tag] for tag, attributes, _ in found)
    assert [each[:2] for each in found] == [with_name(each[:2], name) for each in plain]
    found = list(judges.xml(made(of(line_of(name)))))
    assert ["".join(words.split()) for *_, words in found] == [
        "".join(with_name(words, line_of(name)).split()) for *_, words in plain
    ]


def in_json(made: Callable[[Samples], Any], name: str) -> None:
    document = made(of(name))
    for form in (data.text, data.line):
        written = form(document)
        assert json.loads(written) == clean(document)
        assert (judges.commands(written), acts(written), written.isascii()) == ([], [], True)
    json.dumps(clean(document), ensure_ascii=False).encode()


def in_a_log(made: Callable[[Samples], str], name: str) -> None:
    written = printed(made(of(name)))
    assert (judges.commands(written), acts(written)) == ([], [])
    if len(name.splitlines()) == 1 and name.strip():
        assert written.count("\n") == made(PLAIN).count("\n")


FORMATS: dict[str, tuple[Callable[[Any, str], None], dict[str, Callable[[Samples], Any]]]] = {
    "Markdown": (in_markdown, MARKDOWN),
    "HTML": (in_a_page, HTML),
    "JUnit": (in_junit, {"drift": lambda s: junit.junit(s.report)}),
    "JSON": (in_json, DATA),
    "text": (in_a_log, TEXT),
    "printed Markdown": (in_a_log, MARKDOWN),
    "printed HTML": (in_a_log, HTML),
}
DOCUMENTS = [(form, document) for form, (_, made) in FORMATS.items() for document in made]
ids = pytest.mark.parametrize(("form", "document"), DOCUMENTS, ids=[" ".join(each) for each in DOCUMENTS])


@ids
def test_each_document_with_some_names(form, document):
    check, made = FORMATS[form]
    share = DOCUMENTS.index((form, document))
    for name in LISTED[share % SHARES :: SHARES]:
        check(made[document], name)


@pytest.mark.thorough
@ids
def test_each_document_with_all_names(form, document):
    check, made = FORMATS[form]
    for name in LISTED:
        check(made[document], name)

    @settings(MANY, max_examples=60)
    @given(NAMES.filter(lambda name: bool(name.strip())))
    def holds(name: str) -> None:
        check(made[document], name)

    holds()


def with_all(test: Callable[[str], None]) -> Callable[[], None]:
    """Each listed name, and others by hypothesis."""

    def holds() -> None:
        for name in LISTED:
            test(name)
        MANY(given(NAMES.filter(lambda name: bool(name.strip())))(test))()

    return holds


def test_markdown_in_each_place():
    places = {
        "- {}": "li", "x {} x": "p", "### x {}": "h3", "**{}**": "strong", "| a | b |\n| --- | --- |\n| {} | x |": "td",
        "- x<br>why: {}": "li", "1. {}": "li",
    }  # fmt: skip

    @with_all
    def holds(name: str) -> None:
        for place in places:
            for write in (markdown.prose, markdown.code):
                found, plain = (judges.markdown(place.format(write(each))) for each in (name, WORD))
                assert tidy(found) == tidy(with_name(plain, name))

    holds()


def test_html_in_each_place():
    places = (
        "<p>{}</p>",
        '<a title="{}" href="#x">x</a>',
        "<title>{}</title>",
        "<svg><text>{}</text></svg>",
        "<code>{}</code>",
    )

    @with_all
    def holds(name: str) -> None:
        for place in places:
            found, plain = (judges.html(place.format(html_text.text(each))) for each in (name, WORD))
            assert found == with_name(plain, name)
            if "=" not in place and "title" not in place:
                assert judges.html(place.format(html_text.broken(name))) == found

    holds()


def test_text_in_each_place():
    @with_all
    def holds(name: str) -> None:
        for made in (
            f"{safe(name)}",
            f"  {safe(name)}: x",
            f"x\n\t{safe(name)}",
            name,
            f"x\n{name}",
            f"::{name}::",
            f"##{name}[]",
        ):
            written = printed(made)
            assert (judges.commands(written), acts(written.replace("\t", " "))) == ([], [])
            assert printed(written) == written

    holds()


def test_what_begins_in_one_piece_and_ends_in_the_next():
    for word in COMMANDS:
        for at in range(len(word)):
            assert judges.commands(printed(f"{safe(word[:at])}{safe(word[at:])}")) == []


def test_what_is_no_command_stays_as_it_is():
    for word in (
        "::1",
        "fd00::1",
        "a ::b::",
        "## heading",
        "#1",
        "a#b",
        "std::vector::iterator".removeprefix("std")[1:],
    ):
        assert printed(word) == word


def test_a_line_of_a_message_begins_no_line_of_the_output():
    for end in ("\n", "\r\n", "\r", "\u2028", "\x85", "\x0b"):
        for made in TEXT.values():
            assert not [
                line for line in printed(made(of(f"a{end}forged"))).splitlines() if line.startswith("forged")
            ]


@pytest.mark.parametrize("style", [Style(colour=True), LOUD])
def test_colours_stay_and_a_colour_in_a_name_does_not(style):
    found = printed(style.paint(safe("a\x1b[31mb"), "bold", "red"))
    assert found == style.paint("a\\x1b[31mb", "bold", "red")
    assert printed("\x1b[8mhidden\x1b[38;5;1m") == "\\x1b[8mhidden\\x1b[38;5;1m"


def test_yaml_that_get_prints():
    @with_all
    def holds(name: str) -> None:
        found = [Observed(Key("box", name), "ok", name, {name: [name, f"a\n  {name}"]})]
        written = printed(observed.as_yaml(name, found))
        assert yaml.safe_load(written) == clean(observed.data(name, found))
        assert (judges.commands(written), acts(written)) == ([], [])

    holds()


def test_yaml_that_render_prints():
    @with_all
    def holds(name: str) -> None:
        key = name if name.isprintable() else "key"  # a site with another one is refused
        value = {"site": "a", "x": {key: [encodable(name), f"a\n{encodable(name)}"]}}
        root, _ = compose(Path("site.yaml"), yaml.safe_dump(value))
        written = printed(site.text(root))
        assert yaml.safe_load(written) == value
        assert judges.commands(written) == []

    holds()
