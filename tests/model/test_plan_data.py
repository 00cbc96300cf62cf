"""A step as plain data: what a saved plan, the journal and JSON hold."""

from __future__ import annotations

from bfinfra.kinds.cluster.base.replicated_secret.decide import Write
from bfinfra.kinds.cluster.mpi_job.decide import WriteRecord
from bfinfra.kinds.cluster.nvidia_device_plugin.kind import Clear
from bfinfra.kinds.image.container_image import Commit, Forget
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.plan import step_data

HOME = Endpoint(server="sv.poc", namespace="ml", guest="tkc")


def test_a_commit_keeps_its_name_of_earlier_releases_so_that_their_plans_apply() -> None:
    commit = Commit(name="trainer", mark=Mark("poc", "container_image/trainer"))
    assert step_data(commit)["step"] == "Seal"


def test_a_record_keeps_its_name_of_earlier_releases() -> None:
    record = WriteRecord(what="mnist", namespace="ml", cluster="tkc", home=HOME, manifest={})
    assert step_data(record)["step"] == "Note"


def test_fields_keep_their_names_of_earlier_releases() -> None:
    write = Write(
        what="token",
        cluster="tkc",
        namespace="ml",
        home=HOME,
        mark=Mark("poc", "token_secret/t"),
        names=("ca",),
        source="token.tar",
        existing=("ca",),
    )
    assert step_data(write)["fields"]["standing"] == ["ca"]
    clear = Clear(cluster="tkc", namespace="ml", home=HOME, precondition={"uid": "1"})
    assert step_data(clear)["fields"]["seen"] == {"uid": "1"}


def test_another_step_has_the_name_of_its_class() -> None:
    assert step_data(Forget(name="trainer"))["step"] == "Forget"
