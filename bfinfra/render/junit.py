"""A drift report as JUnit XML, which CI systems show: one test case for each resource. XML has no form for
most control characters, not even escaped: what is written went through `safe`.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable

from bfinfra.model.drift import ALARMING, Drifted, Report
from bfinfra.render.drift import SAYS, total, who
from bfinfra.render.safe import safe, safe_lines
from bfinfra.render.values import shown, utc


def junit(found: Report) -> str:
    """Drift fails a case; ignored or unapplied differences skip it; unreadable resources and problems are
    errors.
    """
    by: dict[str, list[Drifted]] = {address: [] for address in found.existing}
    for each in found.found:
        by.setdefault(str(each.key), []).append(each)
    blind = {where: why for where, why in found.unreadable.items() if where not in by or not by[where]}
    suite = ET.Element("testsuite", name=safe(f"bfinfra drift {found.site}"), timestamp=utc(found.at)[:19])
    for address, those in by.items():
        if address not in blind:
            _case(suite, address, those)
    for where, why in blind.items():
        ET.SubElement(_new(suite, where), "error", message=safe(f"can't be read: {why}"))
    for number, problem in enumerate(found.problems, 1):
        case = _new(suite, f"problem {number}")
        about = (str(problem.where), problem.why, problem.next)
        ET.SubElement(case, "error", message=safe(problem.what)).text = _lines(filter(None, about))
    ET.SubElement(suite, "system-out").text = total(found)
    cases = suite.findall("testcase")
    counted = {
        name: str(sum(case.find(tag) is not None for case in cases))
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    }
    suite.attrib |= {"tests": str(len(cases)), **counted}
    ET.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suite, encoding="unicode") + "\n"


def _case(suite: ET.Element, address: str, those: list[Drifted]) -> None:
    case = _new(suite, address)
    bad = [each for each in those if each.cause in ALARMING and not each.ignored]
    if bad:
        ET.SubElement(
            case, "failure", type=str(bad[0].cause), message=safe(f"{address} {SAYS[bad[0].cause][2]}")
        ).text = _lines(map(_line, bad))
    elif those:
        ET.SubElement(
            case,
            "skipped",
            message=safe(
                "; ".join(
                    f"{SAYS[each.cause][2]}{f' (ignored: {each.ignored})' if each.ignored else ''}"
                    for each in those
                )
            ),
        )


def _new(suite: ET.Element, address: str) -> ET.Element:
    kind, _, name = address.partition("/")
    return ET.SubElement(suite, "testcase", classname=safe(kind), name=safe(name or kind))


def _line(found: Drifted) -> str:
    where, now, wanted = safe(found.field), shown(found.now), shown(found.wanted)
    values = f"{where}: is {now}, should be {wanted}" if found.field else safe(found.why)
    return values + (f" ({safe(origin)})" if (origin := who(found)) else "")


def _lines(found: Iterable[str]) -> str:
    return "\n".join(line for each in found for line in safe_lines(each, len(each)))
