"""Which backends a kind is given, and which kinds need a vCenter."""

from __future__ import annotations

import importlib
import inspect
from types import NoneType
from typing import Any, get_args, get_type_hints

import pytest

from bfinfra.app.wiring import ON_VCENTER, Backends
from bfinfra.backends.ansible import LinuxHosts
from bfinfra.backends.helm import Charts
from bfinfra.backends.images import Images
from bfinfra.backends.kubernetes import Clusters
from bfinfra.backends.survey_cache import SurveyCache
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import VCenter
from bfinfra.kinds import kind, names
from bfinfra.model.site import Site

TYPES = {
    each.__name__: each
    for each in (Charts, Clusters, Images, LinuxHosts, Site, SurveyCache, Transport, VCenter)
}


def takes(name: str) -> dict[str, Any]:
    """Type by parameter of a kind's constructor; imported for type checkers alone, as start-up wants it."""
    parameters = inspect.signature(kind(name)).parameters
    own = {
        str(each.annotation): of_its_module(each) for each in parameters.values() if each.name not in given()
    }
    hints = get_type_hints(kind(name).__init__, localns={**TYPES, **own})
    return {parameter: hints[parameter] for parameter in parameters}


def of_its_module(taken: inspect.Parameter) -> type:
    """The class of a vCenter backend that is in the module of the parameter's name."""
    found = getattr(importlib.import_module(f"bfinfra.backends.vcenter.{taken.name}"), str(taken.annotation))
    assert isinstance(found, type)
    return found


def given() -> dict[str, Any]:
    """Type by name of what there is for a run."""
    made = {
        name: get_type_hints(each.func, localns=TYPES)["return"]
        for name, each in vars(Backends).items()
        if hasattr(each, "func")
    }
    return {**get_type_hints(Backends.__init__, localns=TYPES), **made}


@pytest.mark.parametrize("name", names())
def test_what_a_constructor_names_is_of_the_type_that_it_takes(name: str) -> None:
    there = given()
    for parameter, wanted in takes(name).items():
        if parameter not in there:
            assert wanted.__module__ == f"bfinfra.backends.vcenter.{parameter}"
            continue
        assert {*get_args(wanted), wanted} & {*get_args(there[parameter]), there[parameter]} - {NoneType}


def test_what_takes_a_vcenter_and_can_do_nothing_without_lives_on_one() -> None:
    assert {name for name in names() if VCenter in takes(name).values()} == ON_VCENTER
