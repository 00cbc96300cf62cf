"""A step as plain data: what a saved plan, the journal and JSON hold."""

from __future__ import annotations

from bfinfra.kinds.image.container_image import Commit, Forget
from bfinfra.model.mark import Mark
from bfinfra.model.plan import step_data


def test_a_commit_keeps_its_name_of_earlier_releases_so_that_their_plans_apply() -> None:
    commit = Commit(name="trainer", mark=Mark("poc", "container_image/trainer"))
    assert step_data(commit)["step"] == "Seal"


def test_another_step_has_the_name_of_its_class() -> None:
    assert step_data(Forget(name="trainer"))["step"] == "Forget"
