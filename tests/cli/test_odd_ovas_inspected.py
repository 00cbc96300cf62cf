"""`bfinfra ova inspect` of each odd OVA: it shows what the OVA is, or refuses it with a reason and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from odd_ovas import ODD, Odd

from bfinfra.cli import main


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.name)
def test_each_is_shown_or_refused(odd: Odd, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["ova", "inspect", "--verify", "--output", "json", str(odd.write(tmp_path))])
    said = capsys.readouterr()
    if odd.refused:
        assert (code, said.out) == (1, "")
        (problem,) = json.loads(said.err)["problems"]
        assert odd.refused in " ".join(problem.values())
        assert "odd.ova: " in problem["what"]
        assert problem["next"]
    else:
        assert code == 0, said.err
        assert tuple(disk["capacity"] for disk in json.loads(said.out)["disks"]) == odd.sizes
