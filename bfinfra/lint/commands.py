"""Checks of commands: what the webhook changes in them, and which of them won't start."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from decimal import Decimal

from bfinfra.lint.pods import Container, Pod, text
from bfinfra.lint.resources import MB, number
from bfinfra.model.device_plugin import MEMORY, PERCENT, Release
from bfinfra.model.errors import Place
from bfinfra.model.remark import Remark, error, refused

DROPPED = ("/bin/bash", "-c")
"""Elements that the webhook removes, as it adds them in front itself."""
RUN = re.compile(r"bitfusion\s+run\b(.*)", re.DOTALL)
INJECTION = "injection"


def rules(pod: Pod, release: Release) -> Iterator[Remark]:
    """The remarks of all rules about commands, container by container."""
    for container in pod.containers:
        words = [(text(node), node.at) for node in container.command]
        kept = [(word, at) for word, at in words if word.lower() not in DROPPED]
        if any(name in release.asked for name in container.asks):
            yield from _gpus(container, kept, pod, release)
        for word, at in kept:
            yield from _run(word, at, container, release)
        yield from _own_run(words, container, release)


def _gpus(
    container: Container, kept: list[tuple[str, Place]], pod: Pod, release: Release
) -> Iterator[Remark]:
    if not kept:
        yield refused(
            f"the container {container.name} has no command",
            container.at,
            "the webhook puts `bitfusion run` before a command; without one the pod stays unschedulable",
            "write the image's command into the pod",
        )
        return
    if pod.switch == INJECTION or any(word.strip().startswith("bitfusion") for word, _ in kept):
        return
    word, at = kept[0]
    if word.rpartition("/")[2] in ("sh", "bash", "dash", "zsh") and len(kept) > 1:
        yield error(
            f"the command begins with {word}",
            at,
            "the webhook removes only /bin/bash and -c, and runs the rest in its own bash",
            'write ["/bin/bash", "-c", "COMMAND"], or the command as one element',
        )
    elif release.glue.strip() and len(kept) > 1:
        yield error(
            "the command has several elements",
            kept[1][1],
            f"release {release.version} puts `{release.glue.strip()}` before each of them",
            'write it as one element: command: ["python train.py --epochs 3"]',
        )
    if "args" in container.fields:
        yield error(
            "args don't reach the command",
            container.fields["args"].at,
            "the webhook puts the command into one line for /bin/bash -c, and leaves args out",
            "write them into the command",
        )


def _own_run(words: list[tuple[str, Place]], container: Container, release: Release) -> Iterator[Remark]:
    """`bitfusion`, `run` and their arguments as separate elements."""
    for number_, (word, at) in enumerate(words):
        if (
            word.rpartition("/")[2] == "bitfusion"
            and number_ + 1 < len(words)
            and words[number_ + 1][0] == "run"
        ):
            yield from _check_numbers([each for each, _ in words[number_ + 2 :]], at, container, release)


def _run(word: str, at: Place, container: Container, release: Release) -> Iterator[Remark]:
    """`bitfusion run …` inside one element."""
    if found := RUN.search(word):
        try:
            yield from _check_numbers(shlex.split(found[1]), at, container, release)
        except ValueError:
            yield error("its quotes are not closed", at, next="close them")


def _check_numbers(options: list[str], at: Place, container: Container, release: Release) -> Iterator[Remark]:
    """Compare the numbers of a written `bitfusion run` with each other and with the container's requests."""
    given = _options(options)
    count = given.get("-n")
    if count is None or not count.isdecimal() or int(count) < 1:
        yield error(
            "`bitfusion run` has no number of GPUs"
            if count is None
            else f"`bitfusion run -n {count}` is no number of GPUs",
            at,
            next="write -n 1, or more",
        )
    share = _decimal(given.get("-p"))
    if "-p" in given and (share is None or not 0 < share <= 1):
        yield error(
            f"`bitfusion run -p {given['-p']}` is not a valid share",
            at,
            next="write a number above 0, at most 1, such as -p 0.5",
        )
    size = given.get("-m")
    if size is not None and (not size.isdecimal() or int(size) < 1):
        yield error(
            f"`bitfusion run -m {size}` is not a valid size", at, next="write megabytes, such as -m 8000"
        )
    if "-p" in given and "-m" in given:
        yield error("`bitfusion run` has both -p and -m", at, next="keep one of them")
    asks = container.asks
    for flag, name, factor in (("-n", release.count, 1), ("-p", PERCENT, 100), ("-m", MEMORY, MB)):
        wanted, passed = number(asks.get(name)), _decimal(given.get(flag))
        if wanted is not None and passed is not None and passed * factor != wanted:
            yield error(
                f"`bitfusion run {flag} {given[flag]}` doesn't agree with {name}: {text(asks[name].node)}",
                at,
                "the cluster counts one number, the servers allocate the other",
                "make them agree, or leave `bitfusion run` to the webhook",
            )


def _options(words: list[str]) -> dict[str, str]:
    """The options before the command. `-n2` and `-n=2` are read as `-n 2`."""
    found: dict[str, str] = {}
    names = {"-n": "-n", "--num_gpus": "-n", "-p": "-p", "--partial": "-p", "-m": "-m", "--memory": "-m"}
    queue = list(words)
    while queue and queue[0].startswith("-") and queue[0] != "--":
        word = queue.pop(0)
        name, sign, value = word.partition("=")
        if not sign and name not in names and word[:2] in names:
            name, value, sign = word[:2], word[2:], "="
        if name in names:
            found[names[name]] = value if sign else (queue.pop(0) if queue else "")
        elif not sign and queue and not queue[0].startswith("-"):
            queue.pop(0)  # the option's value, such as --filter k=v
    return found


def _decimal(word: str | None) -> Decimal | None:
    return Decimal(word) if word and re.fullmatch(r"\d+(\.\d+)?|\.\d+", word) else None
