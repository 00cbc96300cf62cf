"""A drift report as JUnit XML, which CI systems show: one test case for each resource."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from bfinfra.model.drift import ALARMING, Drifted, Report
from bfinfra.render.drift import SAYS, total, who
from bfinfra.render.safe import safe
from bfinfra.render.values import shown, utc

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(found: Report) -> str:
    """Drift fails a case; ignored or unapplied differences skip it; unreadable resources and problems are
    errors.
    """
    by: dict[str, list[Drifted]] = {address: [] for address in found.existing}
    for each in found.found:
        by.setdefault(str(each.key), []).append(each)
    blind = {where: why for where, why in found.unreadable.items() if where not in by or not by[where]}
    suite = ET.Element("testsuite", name=_text(f"bfinfra drift {found.site}"), timestamp=utc(found.at)[:19])
    for address, those in by.items():
        if address not in blind:
            _case(suite, address, those)
    for where, why in blind.items():
        ET.SubElement(_new(suite, where), "error", message=_text(f"can't be read: {why}"))
    for number, problem in enumerate(found.problems, 1):
        ET.SubElement(_new(suite, f"problem {number}"), "error", message=_text(problem.what)).text = _text(
            "\n".join(filter(None, (str(problem.where), problem.why, problem.next)))
        )
    ET.SubElement(suite, "system-out").text = _text(total(found))
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
            case, "failure", type=str(bad[0].cause), message=_text(f"{address} {SAYS[bad[0].cause][2]}")
        ).text = _text("\n".join(map(_line, bad)))
    elif those:
        ET.SubElement(
            case,
            "skipped",
            message=_text(
                "; ".join(
                    f"{SAYS[each.cause][2]}{f' (ignored: {each.ignored})' if each.ignored else ''}"
                    for each in those
                )
            ),
        )


def _new(suite: ET.Element, address: str) -> ET.Element:
    kind, _, name = address.partition("/")
    return ET.SubElement(suite, "testcase", classname=_text(kind), name=_text(name or kind))


def _line(found: Drifted) -> str:
    values = (
        f"{found.field}: is {shown(found.now)}, should be {shown(found.wanted)}" if found.field else found.why
    )
    return values + (f" ({origin})" if (origin := who(found)) else "")


def _text(words: str) -> str:
    return NOT_XML.sub(
        "\ufffd", safe(words) if "\n" not in words else "\n".join(map(safe, words.splitlines()))
    )
