"""govc on the sandbox and on vcsim at once; and what of its output is the servers' word."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

Govc = Callable[..., str]


@dataclass
class Both:
    """The same command on both; `same` insists that it says the same."""

    sandbox: Govc
    peer: Govc

    def same(
        self,
        *words: str,
        plain: Callable[[str], Any] = lambda text: sorted(
            ",".join(sorted(line.split(","))) for line in text.splitlines()
        ),
    ) -> Any:
        ours, theirs = (plain(ask(*words)) for ask in (self.sandbox, self.peer))
        assert ours == theirs, (*words, ours, theirs)
        return ours

    def fails(self, *words: str) -> tuple[str, str]:
        """Both refuse; what they say."""
        output = []
        for ask in (self.sandbox, self.peer):
            with pytest.raises(AssertionError) as failed:
                ask(*words)
            output.append(str(failed.value))
        return output[0], output[1]


def machine(text: str) -> dict[str, Any]:
    (found,) = json.loads(text)["virtualMachines"]
    hardware = found["config"]["hardware"]
    return {
        "name": found["name"],
        "power": found["runtime"]["powerState"],
        "cpus": hardware["numCPU"],
        "memory": hardware["memoryMB"],
    }


def devices(text: str) -> list[tuple[str, str]]:
    """What an OVF brings: disks and adapters; which controllers a machine has by itself, and labels, are each
    server's own.
    """
    return sorted(
        (d["type"], str(d.get("capacityInKB", "")))
        for d in json.loads(text)["devices"]
        if d["type"] in ("VirtualDisk", "VirtualVmxnet3")
    )


def added(text: str) -> list[str]:
    return sorted(
        d["type"]
        for d in json.loads(text)["devices"]
        if d["type"].startswith(("VirtualVmxnet", "VirtualE1000"))
    )


def connected(text: str) -> list[bool]:
    return [
        d["connectable"]["connected"] or d["connectable"]["startConnected"]
        for d in json.loads(text)["devices"]
    ]


def output(text: str) -> str:
    """Without times and ids."""
    return (
        re.sub(r"VirtualMachine:\S+|Folder:\S+|\(.*?\)|\[\S+ \S+\]|\d+%", "", text.replace("\r", ""))
        .split("\x1b[K")[-1]  # where a bar of progress began anew
        .split("...")[-1]
        .strip()
    )


def cards(text: str) -> list[str]:
    """Addresses of PCI devices: of those on offer, or of those in a machine."""
    return sorted(
        d.get("id") or d.get("pciDevice", {}).get("id") or d["backing"]["id"]
        for d in json.loads(text).get("pciDevices") or json.loads(text).get("devices") or ()
    )


def named(text: str) -> list[tuple[str, ...]]:
    """Names and descriptions of tags and categories, without ids."""
    found = json.loads(text or "null") or []
    return sorted(
        (
            each["name"],
            each.get("description", ""),
            each.get("cardinality", ""),
            *sorted(each.get("associable_types") or ()),
        )
        for each in found
    )


def policy(text: str) -> tuple[Any, ...]:
    """A storage policy and its rules, without ids and times."""
    (found,) = (each["profile"] for each in json.loads(text)["policies"])
    (rules,) = (each["capability"] for each in found["constraints"]["subProfiles"])
    return found["name"], found["description"], found["profileCategory"], found["resourceType"], rules


def listed(text: str, kind: str) -> list[str]:
    """Names of the devices of a kind, `ethernet-0`."""
    return [line.split()[0] for line in text.splitlines() if line.startswith(kind)]


def happened(text: str) -> list[str]:
    """Types of the events that change a machine, the oldest first; which others a server adds, and its words,
    are its own.
    """
    return [
        found
        for found in re.findall(r"\[(Vm\w+Event)\]", text)
        if found in ("VmReconfiguredEvent", "VmPoweredOnEvent", "VmPoweredOffEvent")
    ]
