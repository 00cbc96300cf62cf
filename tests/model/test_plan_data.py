"""A step as plain data: what a saved plan, the journal and JSON hold."""

from __future__ import annotations

from bfinfra.kinds.cluster.mpi_job.decide import WriteRecord
from bfinfra.kinds.image.container_image import Commit, Forget
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.plan import step_data


def test_a_commit_keeps_its_name_of_earlier_releases_so_that_their_plans_apply() -> None:
    commit = Commit(name="trainer", mark=Mark("poc", "container_image/trainer"))
    assert step_data(commit)["step"] == "Seal"


def test_a_record_keeps_its_name_of_earlier_releases() -> None:
    record = WriteRecord(
        what="mnist",
        namespace="ml",
        cluster="tkc",
        home=Endpoint(server="sv.poc", namespace="ml", guest="tkc"),
        version="1",
        mark=Mark("poc", "mpi_job/mnist"),
        digest="0",
    )
    assert step_data(record)["step"] == "Note"


def test_another_step_has_the_name_of_its_class() -> None:
    assert step_data(Forget(name="trainer"))["step"] == "Forget"
