"""So many hosts of a cluster are out of service at a time as the site allows, one by default."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from kinds.lifecycle import EXAMPLES, apply, endings, made, plan
from kinds.of_several import of_several

from bfinfra.engine import journal
from bfinfra.sandbox import Running
from bfinfra.testing import world

HERE = Path(__file__).parent
FIRST, SECOND, THIRD = (f"esx{number}.small.test" for number in (1, 2, 3))


@world(HERE / "three-hosts.yaml")
@of_several("host_image.at_once")
@pytest.mark.parametrize(
    ("at_once", "batches"),
    [
        (None, [(FIRST,), (SECOND,), (THIRD,)]),
        (2, [(FIRST, SECOND), (THIRD,)]),
        (3, [(FIRST, SECOND, THIRD)]),
    ],
)
def test_no_more_hosts_than_at_once_enter_maintenance_together(
    sandbox: Running, tmp_path: Path, at_once: int | None, batches: list[tuple[str, ...]]
) -> None:
    site = yaml.safe_load(EXAMPLES["host_image"].read_text())
    if at_once is not None:
        site["host_image"]["gpu"]["at_once"] = at_once
    path = tmp_path / "site.yaml"
    path.write_text(yaml.safe_dump(site))
    titles = [
        f"install the image of farm on {', '.join(hosts)}, through maintenance mode" for hosts in batches
    ]
    (item,) = plan(path, sandbox).pending
    assert [step.title() for step in item.steps if "install" in step.title()] == titles
    done = apply(path, sandbox)
    assert made(done), endings(done)
    ran = [line["title"] for line in journal.everywhere("example") if line["event"] == "StepBegun"]
    assert [title for title in ran if "install" in title] == titles
    assert plan(path, sandbox).pending == ()
