"""The webhook as its receiver sees it: signed, once, tried again, with nothing secret in it."""

from __future__ import annotations

import hashlib
import hmac
import json
import ssl
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from trust.listening import Listening, listening
from waiting import until

import bfinfra
from bfinfra.app.notifier import Notifier
from bfinfra.app.sight import Sight
from bfinfra.engine import checks
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.drift import Cause, Drifted, DriftSettings, Report
from bfinfra.model.errors import BfinfraError
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.sources import Sources
from bfinfra.spec.load import load

MOVED = Drifted(
    key=Key("bitfusion_server", "bf"),
    cause=Cause.DRIFT,
    field="power",
    applied="on",
    now="planted-value",
    wanted="on",
    since=5.0,
)
REPORT = Report(
    "poc", (MOVED,), 3, new=frozenset({MOVED.identity}), ended=("namespace/a labels drift",), at=9.0
)
SECRET = "planted-signing-secret"
QUICK = bfinfra.RunContext(retry=RetryPolicy(attempts=4, lasts=0, pause=0.001, longest=0.002))


class InTurn(dict):
    """Answers, one after the other; the last one for good."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)

    def get(self, path, _default=None):
        return path != "*" and (
            self.codes.pop(0) if len(self.codes) > 1 else self.codes[0],
            b"",
            {"location": "https://elsewhere.test/"},
        )


@pytest.fixture
def hook(own_certificate) -> Iterator[Listening]:
    with listening(own_certificate[1]) as found:
        found.answers = InTurn(204)
        yield found


@pytest.fixture
def site(hook, own_certificate) -> Site:
    pin = hashlib.sha256(ssl.PEM_cert_to_DER_cert(own_certificate[0])).hexdigest()
    notify = {"url": f"{hook.url}/hooks/drift?team=a", "secret": {"env": "HOOK"}, "trust": {"sha256": pin}}
    return Site(
        "poc",
        None,
        {},
        drift=DriftSettings.model_validate(
            {"notify": notify}, context={"sources": Sources(env={"HOOK": SECRET})}
        ),
    )


def test_the_receiver_can_tell_who_sent_it_and_what_began_and_ended(site, hook):
    assert bfinfra.notify(site, REPORT, context=QUICK)
    ((method, path, _, body),) = hook.asked
    sent = json.loads(body)
    assert (method, path) == ("POST", "/hooks/drift?team=a")
    assert (sent["type"], sent["site"], sent["drifted"], sent["ended"]) == (
        "drift_news",
        "poc",
        True,
        ["namespace/a labels drift"],
    )
    assert [(each["address"], each["field"], each["cause"]) for each in sent["began"]] == [
        ("bitfusion_server/bf", "power", "drift")
    ]
    assert b"planted" not in body


def test_the_signature_is_over_time_and_body(site, hook):
    bfinfra.notify(site, REPORT, context=QUICK)
    ((_, _, heard, body),) = hook.asked
    headers = {name.lower(): value for name, value in heard.items()}
    wanted = hmac.new(
        SECRET.encode(), headers["x-bfinfra-timestamp"].encode() + b"." + body, hashlib.sha256
    ).hexdigest()
    assert headers["x-bfinfra-signature"] == f"sha256={wanted}"


def test_nothing_is_sent_without_a_change(site, hook):
    assert not bfinfra.notify(site, replace(REPORT, new=frozenset(), ended=()), context=QUICK)
    assert hook.asked == []


def test_what_passes_is_tried_again_with_the_same_id(site, hook):
    hook.answers = InTurn(503, 429, 204)
    bfinfra.notify(site, REPORT, context=QUICK)
    assert len({json.loads(body)["id"] for *_, body in hook.asked}) == 1
    assert len(hook.asked) == 3


@pytest.mark.parametrize(
    ("code", "times", "why"),
    [
        (401, 1, "it answers 401"),
        (410, 1, "it answers 410"),
        (503, 4, "it answers 503"),
        (302, 1, "redirect"),
    ],
)
def test_a_failed_delivery_is_reported_and_holds_no_secret(site, hook, code, times, why):
    hook.answers = InTurn(code)
    with pytest.raises(BfinfraError, match=why) as raised:
        bfinfra.notify(site, REPORT, context=QUICK)
    assert len(hook.asked) == times
    assert SECRET not in str(raised.value.problems)


def test_a_later_check_of_the_same_news_has_the_same_id(site, hook):
    for at in (9.0, 99.0):
        bfinfra.notify(site, replace(REPORT, at=at), context=QUICK)
    assert len({json.loads(body)["id"] for *_, body in hook.asked}) == 1
    bfinfra.notify(site, replace(REPORT, found=(replace(MOVED, since=50.0),)), context=QUICK)
    assert len({json.loads(body)["id"] for *_, body in hook.asked}) == 2


@pytest.mark.parametrize(
    "url", ["http://hooks.test/x", "https://me:secret@hooks.test/", "hooks.test", "ftp://hooks.test"]
)
def test_an_address_without_tls_or_with_an_account_in_it_is_refused(tmp_path, url):
    (tmp_path / "site.yaml").write_text(
        f'site: poc\ndrift: {{notify: {{url: "{url}", secret: {{env: HOOK}}}}}}\n'
    )
    with pytest.raises(BfinfraError, match=r"drift: notify\.url"):
        load([tmp_path / "site.yaml"])


def heard(hook: Listening) -> list[tuple[int, list[str]]]:
    """Of each message: how many drifts started, and which ended."""
    return [(len(body["began"]), body["ended"]) for body in (json.loads(each[3]) for each in hook.asked)]


@pytest.fixture
def refusals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("BFINFRA_STATE_HOME", str(tmp_path / "state"))
    return []


def test_a_watch_reports_once_what_started_and_once_what_ended(site, hook, refusals):
    found = replace(REPORT, ended=())
    notifier = Notifier(site, context=QUICK, failed=refusals.append)
    notifier.report(Sight(replace(found, found=(), new=frozenset())))
    notifier.report(Sight(found))
    until(lambda: len(hook.asked) == 1)
    notifier.report(Sight(replace(found, new=frozenset())))  # a survey anew: the drift lasts
    notifier.report(Sight(replace(found, found=(), new=frozenset(), unreadable={"esx": "it is off"})))
    notifier.report(Sight(replace(found, found=(), new=frozenset(), ended=(MOVED.identity,))))
    until(lambda: len(hook.asked) == 2)
    notifier.close()
    assert heard(hook) == [(1, []), (0, [MOVED.identity])]
    assert refusals == []


def test_a_watch_that_starts_does_not_repeat_an_earlier_check(site, hook, refusals):
    notifier = Notifier(site, context=QUICK, failed=refusals.append)
    notifier.report(Sight(replace(REPORT, new=frozenset(), ended=())))
    notifier.close()
    assert hook.asked == []


def test_what_the_webhook_does_not_accept_is_sent_again_and_delays_no_report(site, hook, refusals):
    hook.answers = InTurn(*[503] * 6, 204)
    notifier = Notifier(site, context=QUICK, failed=refusals.append, pause=0.01)
    notifier.report(Sight(replace(REPORT, ended=())))
    until(lambda: len(hook.asked) == 7)
    notifier.close()
    assert len({json.loads(body)["id"] for *_, body in hook.asked}) == 1
    (refusal,) = refusals
    assert "it is sent again" in refusal


def test_what_is_not_sent_when_the_watch_ends_is_new_for_the_next_check(site, hook, refusals):
    hook.answers = InTurn(503)
    notifier = Notifier(site, context=QUICK, failed=refusals.append, pause=60)
    notifier.report(Sight(replace(REPORT, ended=())))
    until(lambda: refusals)
    notifier.close()
    later = checks.since(replace(REPORT, new=frozenset(), ended=()), checks.recall("poc"))
    assert later.new == {MOVED.identity}
