"""Each setting whose effect needs several of something is tried with several.

Such a setting is found by what it is, not by a list: a number that counts (no unit, no port, no id), a list or a map of
places at each of which the same work is done (PLACES), and an option of the command line that takes a number. The test
that tries one says so beside itself: `@of_several("host_image.at_once")`. So a new setting without a test, a deleted
test, and a test of a setting that is gone are all red here.

What counts nothing, or what nothing is done at, stands in NOT_SEVERAL with the reason.
"""

from __future__ import annotations

import argparse
import ast
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, BeforeValidator, Field
from pydantic.fields import FieldInfo

from bfinfra import kinds
from bfinfra.cli import arguments, parser

TESTS = Path(__file__).parents[1]
PLACES = frozenset(
    {"clusters", "datastores", "hosts", "namespaces", "nodes", "quotas", "servers", "vms", "workers", "zones"}
)
LAST_PORT = 65535
NOT_SEVERAL = {
    "bitfusion_client.vms": "nothing is done at them: they only come before it",
    "bitfusion_device_plugin.certificates.authority_days": "days",
    "bitfusion_device_plugin.certificates.days": "days",
    "bitfusion_device_plugin.certificates.renew_before": "days",
    "bitfusion_device_plugin.interval": "seconds",
    "distributed_switch.mtu": "bytes",
    "kubeadm_cluster.drain": "seconds",
    "port_group.vlan": "a name that is a number",
    "resource_pool.cpu.shares": "a weight",
    "resource_pool.memory.shares": "a weight",
    "vm_class.cpu_reservation": "percent",
    "vm_class.memory_reservation": "percent",
    "vmkernel_adapter.mtu": "bytes",
    "--total-gpu-memory": "megabytes",
}


def fields(model: type[BaseModel], path: str) -> Iterator[tuple[str, FieldInfo]]:
    """The fields of a spec and of its parts, by their dotted names."""
    for name, found in model.model_fields.items():
        yield f"{path}.{name}", found
        for part in parts(found.annotation):
            yield from fields(part, f"{path}.{name}")


def parts(form: Any) -> Iterator[type[BaseModel]]:
    if isinstance(form, type) and issubclass(form, BaseModel):
        yield form
    for each in typing.get_args(form):
        yield from parts(each)


def counts(form: Any, about: tuple[Any, ...] = ()) -> bool:
    """Return whether values of this type are numbers that count."""
    if typing.get_origin(form) is Annotated:
        form, *more = typing.get_args(form)
        about = (*about, *more)
    if form is int:
        more = [each for found in about for each in getattr(found, "metadata", (found,))]
        unit = any(isinstance(each, BeforeValidator) for each in more)
        return not unit and all(getattr(each, "le", None) != LAST_PORT for each in more)
    if typing.get_origin(form) in (typing.Union, types.UnionType):
        return any(counts(each, about) for each in typing.get_args(form))
    return typing.get_origin(form) is dict and counts(typing.get_args(form)[1])


def repeats(name: str, form: Any) -> bool:
    """Return whether it names places at each of which the same is done."""
    return name.rpartition(".")[2] in PLACES and typing.get_origin(form) in (tuple, dict)


def settings() -> Iterator[str]:
    """The settings of all kinds, and the options of the command line, whose effect needs several."""
    for kind in kinds.names():
        for name, found in fields(kinds.spec(kind), kind):
            if counts(found.annotation, tuple(found.metadata)) or repeats(name, found.annotation):
                yield name
    yield from options(parser.build())


def options(found: argparse.ArgumentParser) -> Iterator[str]:
    for action in found._actions:
        if action.type is arguments.positive:
            yield action.option_strings[-1]
        for inner in (action.choices or {}).values() if isinstance(action.choices, dict) else ():
            yield from options(inner)


def tried() -> Iterator[str]:
    """The settings that tests say to try with several."""
    for path in TESTS.rglob("test_*.py"):
        if "@of_several(" in (text := path.read_text()):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    for mark in node.decorator_list:
                        if isinstance(mark, ast.Call) and getattr(mark.func, "id", "") == "of_several":
                            yield from (str(ast.literal_eval(each)) for each in mark.args)


def test_each_setting_whose_effect_needs_several_is_tried_with_several() -> None:
    needed = {*settings()}
    assert sorted(needed - NOT_SEVERAL.keys() - {*tried()}) == [], "write a test with several, @of_several"
    assert sorted({*tried()} - needed - {"bitfusion_device_plugin.quotas"}) == [], (
        "tests of settings that are gone"
    )
    assert sorted(NOT_SEVERAL.keys() - needed) == [], "exceptions that are gone"
    assert sorted(NOT_SEVERAL.keys() & {*tried()}) == [], "exceptions that are tried"


class Part(BaseModel):
    pods: dict[str, Annotated[int, "of each"]] = {}
    port: Annotated[int, Field(le=LAST_PORT)] = 1
    size: Annotated[int, BeforeValidator(int)] = 1
    share: int | str = 1


class Whole(BaseModel):
    hosts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    part: Part | None = None
    many: Annotated[int, Field(le=9)] | None = None
    on: bool = False


@pytest.mark.parametrize(
    ("name", "several"),
    [
        ("k.hosts", True),
        ("k.labels", False),
        ("k.many", True),
        ("k.on", False),
        ("k.part", False),
        ("k.part.pods", True),
        ("k.part.port", False),
        ("k.part.share", True),
        ("k.part.size", False),
    ],
)
def test_a_setting_of_several_is_known_by_its_type(name: str, several: bool) -> None:
    found = dict(fields(Whole, "k"))[name]
    assert (counts(found.annotation, tuple(found.metadata)) or repeats(name, found.annotation)) is several
