"""What the user's ~/.ssh/config says of a machine that bfinfra can't reach. An error says that it isn't used.

The file is data: nothing in it is run, and no other file is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from bfinfra.backends.ansible import programs
from bfinfra.formats import shell
from bfinfra.model.records import dataclass
from bfinfra.model.sources import small

FILE = "~/.ssh/config"
LARGEST = 1 << 18  # bytes of the file that are looked at
LONGEST = 80  # characters of a value in a message
LINE = re.compile(r"\s*(\w+)(?:\s*=\s*|\s+)(.*?)\s*$")
PATTERN = re.compile(r"!?[\w.:*?-]{1,253}")
JUMPS = re.compile(r"[\w.@:\[\],-]{1,253}")
SERVES = {"hostname": "address", "port": "port", "user": "user"}
"""What ssh's own client would take from the file → the field of linux_host for it."""
PROXIES = ("proxyjump", "proxycommand")


@dataclass(frozen=True)
class Entry:
    """A setting of a host: its line, its name as written, and its value."""

    line: int
    name: str
    value: str


def unread(address: str, port: int) -> tuple[str, str]:
    """Why ssh may reach a machine that bfinfra doesn't, and what to do instead; "", "" where the file says
    nothing of the machine.
    """
    try:
        found = settings(small(Path(FILE).expanduser(), LARGEST), address)
    except (OSError, RuntimeError):
        return "", ""
    proxy = next((found[name] for name in PROXIES if name in found), None)
    said = [proxy] if proxy else [found[name] for name in SERVES if name in found]
    if not said or (proxy and proxy.value.lower() == "none"):
        return "", ""
    values = ", ".join(
        f"{each.name} {programs.excerpt(each.value, LONGEST)} (line {each.line})" for each in said
    )
    return f"{FILE}, which isn't read, has for it: {values}", (
        _tunnel(proxy, found.get("hostname"), address, port)
        if proxy
        else f"write these as {', '.join(SERVES[each.name.lower()] for each in said)} of the machine"
    )


def settings(text: str, address: str) -> dict[str, Entry]:
    """The settings for a host by their names in small letters, the first of each, as ssh takes them. A host
    is also known by its HostName. What is under Match stays out: it may depend on commands.
    """
    found: dict[str, Entry] = {}
    for patterns, entries in _blocks(text):
        if _matches(patterns, address) or any(
            each.name.lower() == "hostname" and each.value.lower() == address.lower() for each in entries
        ):
            for each in entries:
                found.setdefault(each.name.lower(), each)
    return found


def _blocks(text: str) -> Iterator[tuple[list[str], list[Entry]]]:
    """Each Host with its patterns and settings; what comes before the first is for all."""
    patterns, entries = ["*"], list[Entry]()
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or not (words := LINE.match(line)):
            continue
        name, value = words[1], words[2].strip('"')
        if name.lower() in ("host", "match"):
            yield patterns, entries
            patterns, entries = (value.lower().split() if name.lower() == "host" else []), []
        else:
            entries.append(Entry(number, name, value))
    yield patterns, entries


def _matches(patterns: list[str], address: str) -> bool:
    fit = [each for each in patterns if PATTERN.fullmatch(each)]
    said = [fnmatchcase(address.lower(), each.removeprefix("!")) for each in fit]
    return any(said) and not any(hit for each, hit in zip(fit, said, strict=True) if each.startswith("!"))


def _tunnel(proxy: Entry, host: Entry | None, address: str, port: int) -> str:
    """What serves instead of a proxy: a forwarded port."""
    known = proxy.name.lower() == "proxyjump" and JUMPS.fullmatch(proxy.value)
    hops = proxy.value.split(",") if known else ["THE-HOST-BETWEEN"]
    there = host.value if host and PATTERN.fullmatch(host.value) else address
    jumps = ["-J", ",".join(hops[:-1])] if hops[:-1] else []
    forward = shell.line(["ssh", "-N", *jumps, "-L", f"2222:{there}:{port}", "--", hops[-1]])
    return f"forward a port ({forward}) and write address: 127.0.0.1, port: 2222 and trust: {{sha256: …}}"
