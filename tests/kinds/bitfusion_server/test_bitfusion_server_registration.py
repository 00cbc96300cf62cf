"""What a Bitfusion server gets to know of its vCenter: filled in where left out, refused where wrong, left alone
where it stands.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan
from kinds.servers import INVENTORY, context, machine, package, spec, state, steps, titles

from bfinfra.backends.ova import Property
from bfinfra.backends.vcenter.identity import Identity
from bfinfra.kinds.vcenter.bitfusion_server.state import MARK, BitfusionServerFacts
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark

GUID, SHA1, SHA256 = "4f2c3c0e-6a53-4a0f-9f57-9d3f0c1c2a61", ":".join(["7E"] * 20), ":".join(["AB"] * 32)
VCENTER = Identity("vc.test", GUID, "https://vc.test", SHA1, SHA256, ("vc.test", "vcsa.lab.test", "10.0.0.2"))
ASKS = ("vcenter_url", "vcenter_guid", "vcenter_thumbprint")
BASE = {"hostname": "bf", "password": {"env": "PW"}}
SITE = EXAMPLES["bitfusion_server"]


def asking():
    more = tuple(
        Property(key, required=True, user_configurable=True, label=key.replace("_", " ")) for key in ASKS
    )
    return replace(package(), properties=(*package().properties, *more))


def looking(vcenter: Identity | None = VCENTER) -> PlanContext:
    return replace(
        context(), facts=BitfusionServerFacts(INVENTORY, {"server.ova": asking()}, vcenter=vcenter)
    )


def facts(**typed: str):
    return spec(properties={**BASE, **typed})


def existing(wanted, **has: str):
    committed = Mark("site", "bitfusion_server/bf-01").committed(wanted.applied()).encode()
    there = machine()
    return state(machine(extra={**there.extra, MARK: committed}, properties={**there.properties, **has}))


def made_with(wanted, vcenter: Identity | None = VCENTER) -> dict[str, object]:
    deploy = steps(wanted, None, looking(vcenter))[0]
    return {key: value for key, value in deploy.target.properties.items() if key in ASKS}


def test_what_the_file_leaves_out_is_filled_in():
    assert made_with(facts()) == {
        "vcenter_url": "https://vc.test",
        "vcenter_guid": GUID,
        "vcenter_thumbprint": SHA1,
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("vcenter_guid", GUID.upper()),
        ("vcenter_thumbprint", SHA1.lower()),
        ("vcenter_thumbprint", SHA256),
        ("vcenter_thumbprint", SHA256.replace(":", "").lower()),
        ("vcenter_url", "https://vcsa.lab.test/"),
        ("vcenter_url", "https://10.0.0.2:443"),
    ],
)
def test_what_the_file_says_is_taken_as_it_is_where_it_is_right(key, value):
    assert made_with(facts(**{key: value}))[key] == value


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("vcenter_guid", GUID.replace("4", "5"), "is not the GUID of vc.test"),
        ("vcenter_thumbprint", SHA1.replace("7E", "7F"), "is not the certificate's thumbprint of vc.test"),
        ("vcenter_thumbprint", "unknown", "is not the certificate's thumbprint of vc.test"),
        ("vcenter_url", "https://other.test", "is not the URL of vc.test"),
        ("vcenter_url", "http://vc.test", "is not the URL of vc.test"),
        ("vcenter_url", "https://vc.test:8443", "is not the URL of vc.test"),
        ("vcenter_url", "vc.test", "is not the URL of vc.test"),
        ("vcenter_url", "https://[vc", "is not the URL of vc.test"),
    ],
)
def test_what_is_wrong_is_refused_at_its_field_with_what_is_right(key, value, says):
    with pytest.raises(Refusal, match=says) as refused:
        steps(facts(**{key: value}), None, looking())
    (problem,) = refused.value.problems
    assert refused.value.field == f"properties.{key}"
    assert problem.why.endswith(f"vc.test has {made_with(facts())[key]}")
    assert problem.next == "leave it out, and bfinfra fills it in; or correct it"


def test_an_existing_server_is_left_as_it_was_made():
    typed = facts(vcenter_guid="0" * 36, vcenter_url="https://elsewhere.test", vcenter_thumbprint="AB")
    there = existing(
        typed, vcenter_guid="0" * 36, vcenter_url="https://elsewhere.test", vcenter_thumbprint="AB"
    )
    assert steps(typed, there, looking()) == []
    without = facts()
    assert steps(without, existing(without, **dict.fromkeys(ASKS, "")), looking()) == []
    assert steps(without, existing(without, vcenter_guid=GUID), looking(None)) == []


def test_values_that_leave_the_file_stay_where_they_are_right_and_are_mended_where_they_are_wrong():
    typed = facts(vcenter_guid=GUID, vcenter_thumbprint="AB")
    found = steps(facts(), existing(typed, vcenter_guid=GUID, vcenter_thumbprint="AB"), looking())
    assert titles(found) == ["Stop", "Write", "Start", "Note"]
    assert found[1].properties == {"vcenter_thumbprint": SHA1}


def test_a_wrong_value_in_the_file_of_an_existing_server_is_refused():
    there = existing(facts(), vcenter_guid=GUID)
    with pytest.raises(Refusal, match="is not the GUID"):
        steps(facts(vcenter_guid="0" * 36), there, looking())


def test_what_vcenter_does_not_show_is_asked_of_the_file():
    unseen = Identity("vc.test", GUID, "https://vc.test")
    with pytest.raises(Refusal, match=r"vcenter_thumbprint .* is missing"):
        steps(facts(), None, looking(unseen))
    fields = {"vcenter_thumbprint": "AB", "vcenter_url": "https://vcsa.lab.test"}
    assert made_with(facts(**fields), unseen) == {**fields, "vcenter_guid": GUID}


def test_on_the_sandbox_the_filled_in_values_are_those_that_let_the_server_register(sandbox, tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text(SITE.read_text().replace("    properties:", "    readiness: port\n    properties:"))
    found = apply(site, sandbox)
    assert made(found), endings(found)
    assert plan(site, sandbox).pending == ()


@pytest.mark.parametrize(
    "line",
    [
        "vcenter_guid: 4f2c3c0e-6a53-4a0f-9f57-000000000000",
        "vcenter_url: https://vcsa.elsewhere.test",
        'vcenter_thumbprint: "AB:CD"',
    ],
)
def test_on_the_sandbox_a_wrong_one_is_refused_before_anything_is_written(sandbox, tmp_path: Path, line):
    site = tmp_path / "site.yaml"
    site.write_text(SITE.read_text().replace("    properties:\n", f"    properties:\n      {line}\n"))
    (problem,) = plan(site, sandbox).problems
    assert problem.what.startswith("bitfusion_server/bf-01: ")
    assert problem.where.text.strip() == line
    assert sandbox.tally()["written"] == 0
