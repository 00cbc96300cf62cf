from __future__ import annotations

import base64
import json
import urllib.parse
import xml.sax.saxutils as sax

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
QUOTED = {
    "plain": VALUE,
    "json": json.dumps({"p": VALUE}),
    "json, letters kept": json.dumps(VALUE, ensure_ascii=False),
    "python": repr([VALUE]),
    "xml": sax.escape(VALUE),
    "xml attribute": sax.quoteattr(VALUE),
    "url": urllib.parse.quote(VALUE),
    "url, all": urllib.parse.quote(VALUE, safe=""),
    "form": urllib.parse.urlencode({"p": VALUE}),
    "hex": VALUE.encode().hex(),
    "utf-16": VALUE.encode("utf-16-le").hex(),
    **{f"base64 after {n}": base64.b64encode(b"u" * n + f":{VALUE}!".encode()).decode() for n in range(3)},
    "base64 of json": base64.b64encode(json.dumps({"p": VALUE}).encode()).decode(),
    "base64 for urls": base64.urlsafe_b64encode(f"?{VALUE}".encode()).decode(),
}


@pytest.mark.parametrize("quoted", QUOTED.values(), ids=QUOTED)
def test_a_hidden_value_is_not_shown_in_any_form(quoted):
    assert redact.redact(quoted) == quoted
    hide(VALUE)
    shown = redact.redact(f"it answered {quoted}.")
    assert redact.SHOWN in shown
    assert quoted not in shown


def test_each_line_of_a_long_secret_is_hidden_for_servers_fold_lines():
    key = (
        "-----BEGIN PRIVATE KEY-----\n"
        + "\n".join(letter * 64 for letter in "abc")
        + "\n-----END PRIVATE KEY-----\n"
    )
    hide(key)
    assert "bbbb" not in redact.redact(" ".join(key.split()))


def test_of_two_secrets_the_longer_one_is_hidden_whole():
    hide("password")
    hide("password-and-more")
    assert redact.redact("it was password-and-more") == f"it was {redact.SHOWN}"


def test_a_value_too_short_to_distinguish_from_other_text_stays():
    hide("abc")
    assert redact.redact("abc") == "abc"


def test_tokens_that_nobody_used_for_an_hour_are_forgotten_and_nothing_else(monkeypatch):
    now = 0.0
    monkeypatch.setattr(redact.time, "monotonic", lambda: now)
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


def test_tokens_that_are_in_use_stay_hidden_however_many_there_are(monkeypatch):
    tokens = [f"token-number-{number:04}" for number in range(2000)]
    for token in tokens:
        hide(token, passing=True)
    assert redact.redact(" ".join(tokens)) == " ".join([redact.SHOWN] * len(tokens))


def test_a_secret_is_hidden_once_it_was_revealed():
    Secret("env", "P", Sources(env={"P": VALUE})).reveal()
    assert Problem(f"wrong: {VALUE}", why=json.dumps(VALUE), next=VALUE) == Problem(
        "wrong: [secret]", why='"[secret]"', next="[secret]"
    )


def test_events_hide_what_a_workload_printed():
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


def test_a_document_stays_one_whatever_the_secret_looks_like():
    hide('"name": "other"')
    assert json.loads(
        json.dumps(redact.clean({"name": "other", "why": ['it answered "name": "other"', 1, None]}))
    ) == {"name": "other", "why": ["it answered [secret]", 1, None]}


@pytest.mark.parametrize("passing", [False, True])
def test_a_value_counts_as_hidden_only_once_it_is(monkeypatch, passing):
    early = []
    monkeypatch.setattr(
        redact, "_add", lambda _, value: early.append(value in redact._lasting or value in redact._passing)
    )
    hide("a-value-of-two-threads", passing=passing)
    assert early == [False]
