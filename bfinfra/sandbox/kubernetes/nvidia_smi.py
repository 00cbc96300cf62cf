"""`nvidia-smi` in a container: its table, and its list with -L."""

from __future__ import annotations

import shlex
import time
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from bfinfra.sandbox.kubernetes.nvidia import Gpus, owned
from bfinfra.sandbox.kubernetes.objects import Object, dig, uid_of

PROGRAM = "nvidia-smi"
CUDA = {535: "12.2", 550: "12.4", 560: "12.6", 570: "12.8", 580: "13.0", 590: "13.1"}
"""Branch of the driver → the newest CUDA that it runs."""
NOT_FOUND = f"sh: 1: {PROGRAM}: not found"
RULE = "+" + "-" * 89 + "+"
COLUMNS = "+" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+"


class Given(NamedTuple):
    """What a container was given: a GPU, or of the GPU `card` a part of a MIG profile."""

    uuid: str
    card: str = ""
    profile: str = ""


def asked(container: Object) -> list[str] | None:
    """The options of the call that the container makes; None if it makes none."""
    words = [str(each) for each in [*(container.get("command") or []), *(container.get("args") or [])]]
    if words[:1] and words[0].rpartition("/")[2] in ("sh", "bash") and "-c" in words[:-1]:
        try:
            words = shlex.split(words[words.index("-c") + 1].partition(";")[0].partition("&&")[0])
        except ValueError:
            return None
    return words[1:] if words and words[0].rpartition("/")[2] == PROGRAM else None


def printed(options: list[str], given: Sequence[Given], gpus: Gpus, now: float) -> tuple[list[str], bool]:
    """The lines that it prints, and whether it ends well: without GPUs, its container has no such program."""
    if not given:
        return [NOT_FOUND], False
    cards = list(dict.fromkeys(each.card or each.uuid for each in given))
    name = gpus.product.replace("-", " ", 1)
    if options == ["-L"]:
        return [line for n, card in enumerate(cards) for line in _listed(n, card, name, given)], True
    if options:
        return [f"{PROGRAM} {' '.join(options)}: the sandbox's GPUs only know -L"], False
    return _table(name, len(cards), gpus, now), True


def _listed(number: int, card: str, name: str, given: Sequence[Given]) -> list[str]:
    """A GPU, and the parts of it that were given."""
    parts = [each for each in given if each.card == card]
    return [
        f"GPU {number}: {name} (UUID: {card})",
        *(f"  MIG {each.profile:<11} Device {n:>2}: (UUID: {each.uuid})" for n, each in enumerate(parts)),
    ]


def by_plugin(pod: Object, container: Object, gpus: Gpus) -> list[Given]:
    """What the device plug-in gave a container; parts of GPUs as whole ones."""
    limits = dig(container, "resources", "limits", default={})
    asked_for = sum(int(value) for name, value in limits.items() if owned(name))
    count = min(asked_for, gpus.count * sum(number for _, number in gpus.parts or (("", 1),)))
    return [Given(f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, f'{uid_of(pod)} {n}')}") for n in range(count)]


def cuda(driver: str) -> str:
    """The newest CUDA that a version of the driver runs; N/A for an unknown one."""
    branch = driver.partition(".")[0]
    return CUDA.get(int(branch), "N/A") if branch.isdigit() else "N/A"


def _table(name: str, count: int, gpus: Gpus, now: float) -> list[str]:
    version = gpus.driver
    divided = "Enabled" if gpus.parts else "Disabled" if gpus.divisible else "N/A"
    lines = [
        time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime(now)),
        RULE,
        f"| NVIDIA-SMI {version:<22} Driver Version: {version:<14} CUDA Version: {cuda(version):<8} |",
        COLUMNS,
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |",
        "|                                         |                        |               MIG M. |",
        COLUMNS.replace("-", "=").replace("+", "|", 1)[:-1].rstrip("+") + "|",
    ]
    for number in range(count):
        used = f"{0}MiB / {gpus.memory:>6}MiB"
        lines += [
            f"|{number:>4}  {name[:30]:<31}On  | {f'00000000:{number + 2:02X}:00.0 Off':>22} |{'0':>21} |",
            f"| N/A   N/A    P0             N/A /  N/A  | {used:>22} |      0%      Default |",
            f"|                                         |                        |{divided:>21} |",
            COLUMNS,
        ]
    return [
        *lines,
        "",
        RULE,
        f"| {'Processes:':<88}|",
        "|  GPU   GI   CI              PID   Type   Process name                        GPU Memory |",
        "|        ID   ID                                                               Usage      |",
        "|" + "=" * 89 + "|",
        f"|  {'No running processes found':<87}|",
        RULE,
    ]
