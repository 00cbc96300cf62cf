"""FlexDirect and the Bitfusion client on a machine: their commands and output. FlexDirect's report is in the
words of its guide; list_gpus has none that is published.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence

import yaml

from bfinfra.sandbox.linux.machine import Machine, Node
from bfinfra.sandbox.linux.output import Output

SCHEDULER, PORT = "flexdirect-scheduler.service", 56001
GRIDD, GRIDD_CONF = "nvidia-gridd.service", "/etc/nvidia/gridd.conf"
CONF, LICENSES = "/etc/bitfusionio/servers.conf", "/etc/bitfusionio/lic"
CHECKS = (
    ("PASS", "Check flexdirect install"),
    ("PASS", "Check library dependency"),
    ("PASS", "Check Network Errors/Drops: found no errors or packet drops"),
    (
        "PASS",
        (
            "Check external connectivity to Bitfusion license server. Ignore for\n               on-premise "
            "installations."
        ),
    ),
    ("PASS", "Check GPU API mismatch"),
    ("PASS", "Check ulimit -n >= 4096: 4096"),
    ("MARGINAL", "Check MTU Size: 10000Mbps interface eth0 MTU 1500 < 4K:\n                performance hit"),
    ("MARGINAL", "Check multinode support: RDMA not supported"),
)


def serving(machine: Machine, address: str) -> str:
    """Return the address of its scheduler, "" while it doesn't listen."""
    unit = machine.services.get(SCHEDULER)
    text = (machine.read(f"/etc/systemd/system/{SCHEDULER}") or b"").decode(errors="replace")
    if unit is None or not unit.active or not initialized(machine):
        return ""
    port = re.search(r"resource_scheduler\b.*? -s (\d+)", text)
    return f"{address}:{port[1] if port else PORT}"


def flexdirect(machine: Machine, words: Sequence[str], servers: Mapping[str, Machine], stdin: str) -> Output:
    """Init and health; the scheduler runs as a service."""
    if words[:1] == ["init"]:
        return _init(machine, list(words[1:]), stdin)
    if words[:1] == ["health"]:
        return health(machine, servers)
    return Output(f"flexdirect {' '.join(words)}: the sandbox's machines only init and health\n", 2)


def _init(machine: Machine, words: list[str], stdin: str) -> Output:
    given = words[words.index("-l") + 1] if "-l" in words[:-1] else stdin.strip().rpartition("\n")[2]
    if not given:
        return Output("a license is needed\n", 1)
    for folder in ("/etc/bitfusionio", LICENSES):
        machine.files.setdefault(folder, Node(None, 0o755))
    machine.files[f"{LICENSES}/host_id"] = Node(
        f"{uuid.uuid5(uuid.NAMESPACE_DNS, machine.name)}\n".encode(), 0o600
    )
    return Output("License initialized\n")


def initialized(machine: Machine) -> bool:
    """Return whether `flexdirect init` has run."""
    return bool(host_id(machine))


def host_id(machine: Machine) -> str:
    """Its id for licensing; "" where it has none."""
    return (machine.read(f"{LICENSES}/host_id") or b"").decode(errors="replace").strip()


def health(machine: Machine, servers: Mapping[str, Machine]) -> Output:
    """The reports of the servers that its list names, and its own."""
    lines = [
        line.partition("#")[0].strip()
        for line in (machine.read(CONF) or b"").decode(errors="replace").splitlines()
    ]
    named = [line if ":" in line else f"{line}:{PORT}" for line in lines if line] or [
        address for address, each in servers.items() if each.name == machine.name
    ]
    reports = [_report(f"for server: {address}", servers.get(address)) for address in named]
    return Output("".join([*reports, _report("for localhost", machine), "All cuda versions are the same\n"]))


def _report(whom: str, machine: Machine | None) -> str:
    found = (
        [("FATAL", "Check connection: the server does not answer")]
        if machine is None
        else [*CHECKS, _license(machine)]
    )
    counted = {
        status: sum(each == status for each, _ in found)
        for status in ("PASS", "MARGINAL", "FATAL", "SKIPPED")
    }
    lines = [
        f"Health report {whom}",
        *(f"[{status:<8}] {text}" for status, text in found),
        *(f"{status}: {count}" for status, count in counted.items()),
    ]
    return "\n".join(lines) + "\n"


def _license(machine: Machine) -> tuple[str, str]:
    return (
        ("PASS", "Check license") if initialized(machine) else ("FATAL", "Check license: run flexdirect init")
    )


def bitfusion(
    machine: Machine, words: Sequence[str], user: str, servers: Mapping[str, Sequence[int]]
) -> Output:
    """`list_gpus`, for a user who has a token and may use it."""
    if words[:1] != ["list_gpus"]:
        return Output(f"bitfusion {' '.join(words)}: the sandbox's machines only list_gpus\n", 2)
    home = f"{machine.home(user)}/.bitfusion"
    conf = machine.read(f"{home}/servers.conf") or machine.read("/etc/bitfusion/servers.conf")
    if (
        machine.read(f"{home}/client.yaml") is None
        or conf is None
        or machine.read("/etc/bitfusion/tls/ca.crt") is None
    ):
        return Output("Error: no client configuration for this user\n", 1)
    addresses = [
        str(address)
        for each in (yaml.safe_load(conf) or {}).get("servers", ())
        for address in each.get("addresses", ())
    ]
    if not any(address in servers for address in addresses):
        return Output("Error: none of the servers responded correctly to client id claim requests.\n", 1)
    printed = ""
    for number, address in enumerate(address for address in addresses if address in servers):
        printed += f" - server {number} [{address}]: running 0 tasks\n" + "".join(
            f"   |- GPU {n}: free memory {mib} MiB / {mib} MiB\n" for n, mib in enumerate(servers[address])
        )
    return Output(printed)


def nvidia_smi(machine: Machine) -> Output:
    """`-q` of a vGPU with the guest driver: limited to licensing, which any license server grants."""
    if GRIDD not in machine.services:
        return Output("nvidia-smi: command not found\n", 127)
    printed = "Licensed (Expiry: Permanent)" if licensed(machine) else "Unlicensed (Unrestricted)"
    return Output(
        "==============NVSMI LOG==============\n    vGPU Software Licensed Product\n        Product "
        "Name                      : NVIDIA Virtual Compute Server\n        License Status             "
        f"       : {printed}\n"
    )


def licensed(machine: Machine) -> bool:
    """Return whether its vGPUs have a license; GPUs of a machine without nvidia-gridd need none."""
    unit = machine.services.get(GRIDD)
    conf = (machine.read(GRIDD_CONF) or b"").decode(errors="replace")
    return unit is None or (unit.active and re.search(r"^ServerAddress=\S", conf, re.MULTILINE) is not None)
