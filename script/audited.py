"""Judges what script/audit had from pip and pip-audit. Ends with 1 where there is a fault."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ACCEPTED: dict[str, str] = {}
"""Advisory → why it does not matter here, and since when."""


def judge(folder: Path) -> tuple[list[str], list[str]]:
    """What was looked up, and the faults, from the reports in a folder."""
    said, faults = [], []
    for report in sorted(folder.glob("*.lock.pip.json")):
        pins = json.loads(report.read_text())["install"]
        said.append(f"{report.name.removesuffix('.pip.json')}: pip was asked for {len(pins)} files")
        faults += [f"{name(pin['metadata'])} {why}" for pin in pins for why in withdrawn(pin)]
    known = [each for report in folder.glob("*.json") for each in audited(report)]
    faults += [f"{name(each)} {why}" for each in known for why in advisories(each)]
    if known:
        said.append(f"{len({name(each) for each in known})} releases were looked up in advisories")
    else:
        said.append("NOT AUDITED for advisories: no vulnerability service can be reached from here")
    return said, list(dict.fromkeys(faults))


def name(of: dict[str, Any]) -> str:
    return f"{of['name']} {of['version']}"


def withdrawn(pin: dict[str, Any]) -> Iterator[str]:
    """What is wrong with a locked file, by pip."""
    if pin.get("is_yanked"):
        yield "was withdrawn by its authors"
    if not pin["download_info"].get("archive_info", {}).get("hashes"):
        yield "has no digest"


def audited(report: Path) -> list[dict[str, Any]]:
    """The releases that a service knows; none where it can't be reached."""
    try:
        return [each for each in json.loads(report.read_text())["dependencies"] if "vulns" in each]
    except (ValueError, KeyError):
        return []


def advisories(known: dict[str, Any]) -> Iterator[str]:
    """The advisories for a release, but for those that were accepted."""
    for found in known["vulns"]:
        if not {found["id"], *found.get("aliases", ())} & ACCEPTED.keys():
            yield f"has {found['id']}, mended in {', '.join(found.get('fix_versions') or ['no release'])}"


if __name__ == "__main__":
    lines, wrong = judge(Path(sys.argv[1]))
    print("\n".join([*lines, *wrong]))
    sys.exit(1 if wrong else 0)
