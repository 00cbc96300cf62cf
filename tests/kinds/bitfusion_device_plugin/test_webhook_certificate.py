"""The webhook's certificate is for the names of its Service, and is made anew where it no longer serves."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from bfinfra.backends import authority
from bfinfra.backends.authority import Certificate
from bfinfra.kinds.cluster.bitfusion_device_plugin import decide
from bfinfra.kinds.cluster.bitfusion_device_plugin.manifests import Values, host_names
from bfinfra.kinds.cluster.bitfusion_device_plugin.spec import Spec
from bfinfra.kinds.cluster.bitfusion_device_plugin.state import (
    AUTHORITY,
    CERTIFICATE,
    NamespaceFacts,
    Place,
    Thing,
    Trust,
)
from bfinfra.kinds.cluster.bitfusion_device_plugin.steps import Authorize, Certify
from bfinfra.model.context import PlanContext
from bfinfra.model.mark import Mark

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MARK = Mark("s", "bitfusion_device_plugin/p")
NAMES = ("bwki-webhook-svc", "bwki-webhook-svc.bwki", "bwki-webhook-svc.bwki.svc")
FAR = NOW + timedelta(days=300)
OURS = Certificate("ours", FAR)
GOOD = Trust((OURS,), "", whole=True, serving=Certificate("leaf", FAR, NAMES), fits=True, signer="ours")
SPEC = Spec.model_validate({"cluster": "k", "version": "0.4"})


def made_anew(
    monkeypatch: pytest.MonkeyPatch, trust: Trust, *, namespace: str = "bwki", marked: bool = True
) -> list[Any]:
    """The steps for certificates of a plug-in in a cluster that has these."""
    mark = MARK if marked else None
    things = {
        Place("v1", "Secret", namespace, name): Thing({}, mark, "", going=False, uid="u")
        for name in (AUTHORITY, CERTIFICATE)
    }
    state: Any = SimpleNamespace(trust=trust, things=things, home=None)
    for before in ("_trusted_first", "_foreign_first"):  # what the API server must trust before it
        monkeypatch.setattr(decide, before, lambda *_: ())
    monkeypatch.setattr(decide, "foreign", lambda *_: False)
    facts = NamespaceFacts(NOW, {})
    return [*decide._certificates(SPEC, Values(namespace, namespace), state, PlanContext(MARK, {}), facts)]


def test_a_certificate_is_for_the_names_by_which_its_service_is_called() -> None:
    assert host_names("bwki") == NAMES
    assert host_names("gpu")[-1] == "bwki-webhook-svc.gpu.svc", "by which the API server calls it"


def test_a_certificate_holds_every_name_of_its_service() -> None:
    own, key = authority.make("the webhook's", 30)
    leaf, _ = authority.issue(own, key, NAMES, 10)
    (found,) = authority.read(leaf)
    assert found.names == NAMES
    assert authority.signer(leaf, own) == authority.read(own)[0].fingerprint


def test_what_serves_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made_anew(monkeypatch, GOOD) == []


@pytest.mark.parametrize(
    "names", [(), NAMES[:2], NAMES[1:], (*NAMES, "theirs.example.com"), host_names("elsewhere")]
)
def test_a_certificate_for_other_names_is_made_anew_for_the_services(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]
) -> None:
    trust = replace(GOOD, serving=Certificate("leaf", FAR, names))
    (step,) = made_anew(monkeypatch, trust)
    assert isinstance(step, Certify)
    assert (step.names, step.days) == (NAMES, SPEC.certificates.days)


def test_another_namespace_is_another_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    (step,) = made_anew(monkeypatch, GOOD, namespace="gpu")
    assert step.names == host_names("gpu")


SOON = NOW + timedelta(days=SPEC.certificates.renew_before)


@pytest.mark.parametrize(
    "change",
    [{"serving": None}, {"fits": False}, {"signer": "theirs"}, {"serving": Certificate("leaf", SOON, NAMES)}],
    ids=["missing", "without its key", "of another authority", "soon to expire"],
)
def test_a_certificate_that_does_not_serve_is_made_anew(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    assert [type(step) for step in made_anew(monkeypatch, replace(GOOD, **change))] == [Certify]


@pytest.mark.parametrize(
    "change",
    [{"authorities": ()}, {"whole": False}, {"authorities": (Certificate("ours", SOON),)}],
    ids=["missing", "without its key", "soon to expire"],
)
def test_an_authority_that_does_not_serve_is_made_anew_with_what_it_signs(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any]
) -> None:
    made = made_anew(monkeypatch, replace(GOOD, **change))
    assert [type(step) for step in made] == [Authorize, Certify]
    assert made[0].days == SPEC.certificates.authority_days


def test_certificates_of_somebody_else_are_not_taken_for_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [type(step) for step in made_anew(monkeypatch, GOOD, marked=False)] == [Authorize, Certify]
