"""World files are read whole or refused with file and field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from bfinfra.sandbox.passwords import Passwords
from bfinfra.sandbox.reading import BadWorld
from bfinfra.sandbox.world_file import load, parse

WORLDS = sorted((Path(__file__).resolve().parents[2] / "specs/worlds").glob("*.yaml"))
PASSWORDS = Passwords(b"seed")


def small() -> Any:
    return yaml.safe_load(next(path for path in WORLDS if path.stem == "small").read_text())


@pytest.mark.parametrize("path", WORLDS, ids=lambda path: path.stem)
def test_every_world_of_the_repository_is_valid(path: Path) -> None:
    assert load(path, PASSWORDS).vcenter.host


def test_sizes_have_units_and_class_is_a_field() -> None:
    device = parse(small(), PASSWORDS).hosts["esx1.small.test"].pci[0]
    assert (device.memory, device.class_, device.device) == (16 * 2**30, 0x0302, 0x1EB8)


def test_generated_passwords_are_shared_by_name_and_hidden() -> None:
    world = parse(small(), PASSWORDS)
    assert (
        world.users[0].password
        == world.env["VCENTER_PASSWORD"]
        == parse(small(), PASSWORDS).env["VCENTER_PASSWORD"]
    )
    assert world.env["VCENTER_PASSWORD"] not in repr(world)
    assert parse(small(), Passwords(b"other")).env != world.env


def test_an_administrators_token_is_generated_or_written_and_hidden() -> None:
    world = parse(small(), PASSWORDS)
    token = world.kubernetes_clusters["other"].token
    assert (
        token
        == parse(small(), PASSWORDS).kubernetes_clusters["other"].token
        != parse(small(), Passwords(b"x")).kubernetes_clusters["other"].token
    )
    assert token not in repr(world)
    given = small()
    given["kubernetes_clusters"]["other"]["token"] = {"env": "VCENTER_PASSWORD"}
    assert parse(given, PASSWORDS).kubernetes_clusters["other"].token == world.env["VCENTER_PASSWORD"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.update(colour=1), "unknown colour"),
        (lambda w: w.pop("vcenter"), "w.vcenter: missing"),
        (lambda w: w["vcenter"].update(version="8.0"), "w.vcenter: version '8.0'"),
        (
            lambda w: w["clusters"]["farm"]["hosts"]["esx1.small.test"].update(memory="2 potatoes"),
            "hosts.esx1.small.test.memory",
        ),
        (lambda w: w["clusters"]["farm"]["hosts"]["esx1.small.test"]["pci"][0].update(id="3b"), "pci[0]"),
        (lambda w: w["clusters"]["farm"]["hosts"].update({"esx2.small.test": {}}), "two clusters"),
        (lambda w: w["users"][0].update(role="king"), "w.users[0]"),
        (lambda w: w["users"][0].update(password={"env": "NOWHERE"}), "no NOWHERE"),
        (lambda w: w["users"][2].update(groups=["nobody"]), "there is no nobody"),
        (
            lambda w: w["storage_policies"]["gold"].update(datastores=["x"]),
            "storage_policies.gold.datastores: there is no x",
        ),
        (lambda w: w.update(durations={"nap": 1}), "durations: there is no nap"),
        (
            lambda w: w["kubernetes_clusters"]["other"].update(machines=["x"]),
            "kubernetes_clusters.other.machines: there is no x",
        ),
        (lambda w: w.update(pace=-1), "pace"),
        (lambda w: w.update(guest_network="10.0.0.1/24"), "guest_network"),
        (lambda w: w["networks"].append(7), "w.networks[1]: int"),
        (
            lambda w: w["kubernetes_clusters"]["other"].update(address="10.3.0.1"),
            "kubernetes_clusters.other: address '10.3.0.1'",
        ),
        (
            lambda w: w["kubernetes_clusters"]["other"].update(version="1.27"),
            "kubernetes_clusters.other: version '1.27'",
        ),
        (lambda w: w["kubernetes_clusters"]["other"].update(nodes=0), "kubernetes_clusters.other: nodes"),
        (
            lambda w: w["kubernetes_clusters"]["other"].update(address="10.1.0.20:6443"),
            "kubernetes_clusters.other.address: 10.1.0.20:6443 is taken",
        ),
        (
            lambda w: w["kubernetes_clusters"].update(twin=dict(w["kubernetes_clusters"]["other"])),
            "kubernetes_clusters.twin.address: 10.3.0.1:6443 is taken",
        ),
    ],
)
def test_a_wrong_world_is_refused_with_its_field(change: Any, message: str) -> None:
    world = small()
    change(world)
    with pytest.raises(BadWorld) as caught:
        parse(world, PASSWORDS, "w")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "vcenter:\n  host: a\n  version: 8\nusers: []\nclusters: {}\ndatastores: {}\nnetworks: []\n",
            "3:12: vcenter.version: int '8' where str is expected",
        ),
        ("vcenter: {host: a}\nclusters:\n  a.b: {hosts: {esx.c: {memory: x}}}\n", "1:1: users: missing"),
        ("a: [1\n", "2:1: did not find expected"),
        ("a: &x 1\nb: *x\n", "2:4: an alias, and a world has none"),
        ("\n{TAIL}\n", "4:42: clusters.a.b.hosts.esx.c.memory: 'x' is no size"),
    ],
)
def test_a_wrong_world_is_refused_with_line_and_column(text: str, message: str, tmp_path: Path) -> None:
    rest = "vcenter: {host: a}\nusers: []\nclusters: {a.b: {hosts: {esx.c: {memory: x}}}}\ndatastores: {}\nnetworks: []"
    file = tmp_path / "w.yaml"
    file.write_text(text.replace("{TAIL}", rest))
    with pytest.raises(BadWorld) as caught:
        load(file, PASSWORDS)
    assert f"{file}:{message}" in str(caught.value)
