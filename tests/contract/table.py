"""From what script/record wrote down to the tables in docs/explanation/sandbox.md and docs/explanation/flaws.md: `python
tests/contract/table.py` writes them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs/explanation"
PEERS = {"vcsim": "vcsim", "kube-apiserver": "kube-apiserver"}
BEGIN, END = "<!-- made by script/record: begin -->", "<!-- made by script/record: end -->"
Results = Mapping[str, Any]


def sandbox_page(results: Results) -> str:
    """The two tables, and the requests that each side was asked."""
    parts = [
        f"{_count(results)}\n",
        _table("vCenter: SOAP and REST", "vcsim", results),
        _table("Kubernetes", "kube-apiserver", results),
        _requests(results),
    ]
    return "\n".join(parts)


def flaws_section(results: Results) -> str:
    """Who lacks what, once each."""
    found = sorted({(who, what) for each in results.values() for who, what in each["about"]["lacks"].items()})
    return "\n".join(f"- **{who}**: {what}." for who, what in found) + "\n"


def _peer(each: Any, name: str) -> str:
    return "kube-apiserver" if name.startswith("test_contract_kubernetes") else "vcsim"


def _count(results: Results) -> str:
    rows = [(each, _peer(each, name)) for name, each in results.items()]
    both = [(each, peer) for each, peer in rows if _passed(each, "sandbox") and _passed(each, peer)]
    same = sum(each["sandbox"]["said"] == each[peer]["said"] for each, peer in both)
    return (
        f"{len(rows)} cases: {same} in which the sandbox and the peer do the same, {len(both) - same} "
        "in which both do what is asked and each in a way of its own, "
        f"{len(rows) - len(both)} in which one of them can't."
    )


def _passed(each: Any, side: str) -> bool:
    return bool(each.get(side, {}).get("outcome") == "passed")


def _table(title: str, peer: str, results: Results) -> str:
    lines = [f"### {title}\n", f"| call | case | sandbox | {PEERS[peer]} | |", "|---|---|---|---|---|"]
    rows = [each for name, each in results.items() if _peer(each, name) == peer]
    for each in sorted(rows, key=lambda each: (each["about"]["calls"][0], each["about"]["case"])):
        about = each["about"]
        sandbox, other = _says(each, "sandbox"), _says(each, peer)
        lines.append(
            "| "
            + " | ".join(
                (
                    ", ".join(f"`{c}`" for c in about["calls"]),
                    about["case"],
                    sandbox,
                    other,
                    "same" if sandbox == other else "**differs**",
                )
            )
            + " |"
        )
    return "\n".join(dict.fromkeys(lines)) + "\n"


def _says(each: Any, side: str) -> str:
    if side in each["about"]["lacks"]:
        return f"can't: {each['about']['lacks'][side]}"
    found = each.get(side)
    if not found or found["outcome"] != "passed":
        return "not asked"
    return "; ".join(dict.fromkeys(found["said"])) or "as asked"


def _requests(results: Results) -> str:
    lines = [
        "### Requests\n",
        "Each request that bfinfra sends in these cases, and who answered it as the case wants.\n",
        "| request | sandbox | peer |",
        "|---|---|---|",
    ]
    by = {
        side: {r for each in results.values() if _passed(each, side) for r in each[side]["requests"]}
        for side in ("sandbox", "vcsim", "kube-apiserver")
    }
    for request in sorted(set().union(*by.values()), key=lambda name: (" " in name, name)):
        who = [side for side in PEERS if request in by[side]]
        lines.append(
            f"| `{request}` | {'yes' if request in by['sandbox'] else '–'} | {', '.join(who) or '–'} |"
        )
    return "\n".join(lines) + "\n"


def inserted(page: str, part: str) -> str:
    """The page with what stands between the two marks replaced."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the page has no place for a table: {BEGIN} … {END}")
    return f"{before}{BEGIN}\n{part}{END}{after}"


def pages(results: Results) -> Iterable[tuple[Path, str]]:
    """Each page and what belongs into it."""
    return (DOCS / "sandbox.md", sandbox_page(results)), (DOCS / "flaws.md", flaws_section(results))


def results() -> Results:
    """What script/record wrote."""
    return dict(json.loads((HERE / "results.json").read_text()))


if __name__ == "__main__":
    for file, part in pages(results()):
        file.write_text(inserted(file.read_text(), part))
