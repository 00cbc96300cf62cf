"""Secrets are hidden in whatever form a server quotes them, and nothing else is."""

from __future__ import annotations

import base64
import html
import json
import time
import urllib.parse
import xml.sax.saxutils as sax
from collections.abc import Callable

import pytest

from bfinfra.model import redact
from bfinfra.model.errors import Problem
from bfinfra.model.events import Ended, Ending
from bfinfra.model.plan import Action
from bfinfra.model.redact import hide
from bfinfra.model.refs import Key
from bfinfra.model.secret import Secret
from bfinfra.model.sources import Sources

VALUE = 'pä55"<&>\\ word/+='
WRITTEN: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": lambda value: json.dumps({"p": value}),
    "json, letters kept": lambda value: json.dumps(value, ensure_ascii=False),
    "python": lambda value: repr([value]),
    "xml": sax.escape,
    "xml attribute": lambda value: f'"{sax.escape(value, {chr(34): "&quot;"})}"',
    "xml attribute, apostrophe too": lambda value: sax.escape(value, {'"': "&quot;", "'": "&apos;"}),
    "xml attribute by numbers": lambda value: sax.escape(value, {'"': "&#34;", "'": "&#39;"}),
    "html attribute": html.escape,
    "url": urllib.parse.quote,
    "url, all": lambda value: urllib.parse.quote(value, safe=""),
    "form": lambda value: urllib.parse.urlencode({"p": value}),
}
QUOTED = {
    **{name: write(VALUE) for name, write in WRITTEN.items()},
    "hex": VALUE.encode().hex(),
    "hex, upper case": VALUE.encode().hex().upper(),
    "utf-16": VALUE.encode("utf-16-le").hex(),
    **{f"base64 after {n}": base64.b64encode(b"u" * n + f":{VALUE}!".encode()).decode() for n in range(3)},
    "base64 of json": base64.b64encode(json.dumps({"p": VALUE}).encode()).decode(),
    "base64 for urls": base64.urlsafe_b64encode(f"?{VALUE}".encode()).decode(),
}


@pytest.mark.parametrize("quoted", QUOTED.values(), ids=QUOTED)
def test_a_hidden_value_is_not_shown_in_any_form(quoted: str) -> None:
    assert redact.redact(quoted) == quoted
    hide(VALUE)
    shown = redact.redact(f"it answered {quoted}.")
    assert redact.SHOWN in shown
    assert quoted not in shown


@pytest.mark.parametrize("write", WRITTEN.values(), ids=WRITTEN)
@pytest.mark.parametrize("value", [VALUE, "'pä55'\"<&>\\ word/+='", '"pä55\'"\\/"'])
def test_of_a_value_that_is_escaped_no_letter_is_shown_and_of_the_text_around_it_each(
    write: Callable[[str], str], value: str
) -> None:
    hide(value)
    assert redact.redact(write(value)) == write("HERE").replace("HERE", redact.SHOWN)


@pytest.mark.parametrize("before", range(4))
@pytest.mark.parametrize("after", range(1, 4))
@pytest.mark.parametrize("value", ["pässword", "???>>>??>>?>"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_each_letter_of_base64_that_is_of_the_secret_alone_is_hidden(
    encode: Callable[[bytes], bytes], value: str, before: int, after: int
) -> None:
    zeros, ones, text = (
        encode(each * before + value.encode() + each * after).decode() for each in (b"\0", b"\xff", b"u")
    )
    own = [at for at, (one, other) in enumerate(zip(zeros, ones, strict=True)) if one == other != "="]
    hide(value)
    assert redact.redact(text) == text[: own[0]] + redact.SHOWN + text[own[-1] + 1 :]


def test_each_line_of_a_long_secret_is_hidden_for_servers_fold_lines() -> None:
    key = (
        "-----BEGIN PRIVATE KEY-----\n"
        + "\n".join(letter * 64 for letter in "abc")
        + "\n-----END PRIVATE KEY-----\n"
    )
    hide(key)
    assert "bbbb" not in redact.redact(" ".join(key.split()))


def test_of_two_secrets_the_longer_one_is_hidden_whole() -> None:
    hide("password")
    hide("password-and-more")
    assert redact.redact("it was password-and-more") == f"it was {redact.SHOWN}"


def test_a_value_too_short_to_distinguish_from_other_text_stays() -> None:
    hide("abc")
    assert redact.redact("abc 616263") == "abc 616263", "nor is it hidden in another form"


def test_tokens_that_nobody_used_for_an_hour_are_forgotten_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    hide("a-password-that-stays")
    hide("in-use-before", passing=True)
    hide("a-password-and-token")
    hide("a-password-and-token", passing=True)
    for number in range(1000):
        now += 60
        hide(f"token-number-{number:04}", passing=True)
        hide("in-use-before", passing=True)
    kept = "a-password-that-stays in-use-before a-password-and-token token-number-0999 token-number-0941"
    assert redact.redact(kept) == " ".join([redact.SHOWN] * 5)
    assert redact.redact("token-number-0001") == "token-number-0001"
    assert len(redact._passing) <= 62 + redact.BATCH
    assert len(redact._heads) < 200 * (len(redact._passing) + len(redact._lasting))


def test_tokens_that_are_in_use_stay_hidden_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [f"token-number-{number:04}" for number in range(2000)]
    for token in tokens:
        hide(token, passing=True)
    assert redact.redact(" ".join(tokens)) == " ".join([redact.SHOWN] * len(tokens))


def test_a_secret_is_hidden_once_it_was_revealed() -> None:
    Secret("env", "P", Sources(env={"P": VALUE})).reveal()
    assert Problem(f"wrong: {VALUE}", why=json.dumps(VALUE), next=VALUE) == Problem(
        "wrong: [secret]", why='"[secret]"', next="[secret]"
    )


def test_events_hide_what_a_workload_printed() -> None:
    hide(VALUE)
    ended = Ended(
        at=0,
        key=Key("workload", "w"),
        action=Action.CREATE,
        ending=Ending.DONE,
        seconds=1,
        note=f"its log: {VALUE}",
        problem=None,
    )
    assert ended.note == "its log: [secret]"


def test_a_document_stays_one_whatever_the_secret_looks_like() -> None:
    hide('"name": "other"')
    assert json.loads(
        json.dumps(redact.clean({"name": "other", "why": ['it answered "name": "other"', 1, None]}))
    ) == {"name": "other", "why": ["it answered [secret]", 1, None]}


@pytest.mark.parametrize("passing", [False, True])
def test_a_value_counts_as_hidden_only_once_it_is(monkeypatch: pytest.MonkeyPatch, passing: bool) -> None:
    early = []
    monkeypatch.setattr(
        redact, "_add", lambda _, value: early.append(value in redact._lasting or value in redact._passing)
    )
    hide("a-value-of-two-threads", passing=passing)
    assert early == [False]


@pytest.mark.parametrize(("value", "hidden"), [("abcdef", True), ("abcde", False)])
def test_a_secret_of_six_characters_or_more_is_hidden(value: str, hidden: bool) -> None:
    assert hide(value) == value
    assert (redact.SHOWN in redact.redact(f"it was {value}.")) is hidden
    assert (redact.redact(value) == redact.SHOWN) is hidden


@pytest.mark.parametrize(
    ("line", "hidden"), [("x" * 16, True), ("x" * 15, False), ("two words of a line", False)]
)
def test_a_line_of_a_secret_is_hidden_by_itself_if_it_is_long_and_one_word(line: str, hidden: bool) -> None:
    hide(f"{line}\nand another line of it")
    assert (redact.SHOWN in redact.redact(f"it was {line}.")) is hidden


def test_a_secret_that_was_written_with_a_line_end_is_hidden_without_it() -> None:
    hide("secret-of-a-file\n")
    assert redact.redact("it was secret-of-a-file.") == f"it was {redact.SHOWN}."


def test_every_place_where_a_secret_stands_is_hidden_and_the_text_around_it_stays() -> None:
    hide("first-secret")
    hide("second-secret")
    text = "a first-secret, a second-secret, a first-secret"
    assert redact.redact(text) == f"a {redact.SHOWN}, a {redact.SHOWN}, a {redact.SHOWN}"
    assert redact.redact("first-secretsecond-secret!") == f"{redact.SHOWN * 2}!"
    assert redact.redact("first-secre") == "first-secre", "a part of one is none"


def test_where_nothing_is_hidden_all_is_shown() -> None:
    assert redact.redact("anything at all") == "anything at all"


@pytest.mark.parametrize(("seconds", "hidden"), [(3600, True), (3601, False)])
def test_a_token_counts_as_in_use_for_an_hour(
    monkeypatch: pytest.MonkeyPatch, seconds: float, hidden: bool
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    for number in range(redact.BATCH):
        hide(f"token-number-{number:04}", passing=True)
    now = seconds
    hide("the-one-that-makes-room", passing=True)
    assert (redact.redact("token-number-0001") == redact.SHOWN) is hidden


def test_few_tokens_are_kept_as_to_forget_is_dear(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    for number in range(redact.BATCH - 1):
        hide(f"token-number-{number:04}", passing=True)
    now = 100_000.0
    hide("the-one-that-makes-room", passing=True)
    assert redact.redact("token-number-0001") == redact.SHOWN


def test_a_password_that_was_a_token_first_stays_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    hide("both-of-them", passing=True)
    hide("both-of-them")
    for number in range(2 * redact.BATCH):
        now += 3600
        hide(f"token-number-{number:04}", passing=True)
    assert redact.redact("both-of-them") == redact.SHOWN


def test_half_a_pair_of_a_character_is_shown_as_unreadable() -> None:
    assert redact.encodable("a\ud800b") == "a\ufffdb"
    assert redact.encodable("ü \U0001f600") == "ü \U0001f600"
    hide("half-\ud800-of-a-pair")
    assert redact.clean({"half-\ud800-of-a-pair": ("half-\ud800-of-a-pair", "\ud800")}) == {
        redact.SHOWN: [redact.SHOWN, "\ufffd"]
    }


@pytest.mark.parametrize(
    "quotes", [("&quot;", "&apos;"), ("&#34;", "&#39;"), ("&quot;", "&#x27;"), ("&quot;", "'")]
)
def test_every_way_to_escape_quotes_is_known(quotes: tuple[str, str]) -> None:
    hide('it\'s "secret"')
    double, single = quotes
    quoted = f"it{single}s {double}secret{double}"
    assert redact.redact(f"<a>{quoted}</a>") == f"<a>{redact.SHOWN}</a>"


def test_a_secret_in_base64_of_base64_and_in_hexadecimal_of_either_case_is_hidden() -> None:
    hide("a-secret-of-many-letters")
    twice = base64.b64encode(base64.b64encode(b"x:a-secret-of-many-letters:y")).decode()
    assert redact.SHOWN in redact.redact(twice)
    for text in (b"a-secret-of-many-letters".hex(), b"a-secret-of-many-letters".hex().upper()):
        assert redact.redact(text) == redact.SHOWN
