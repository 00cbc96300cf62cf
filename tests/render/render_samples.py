"""One small plan and one small run that the renderers are shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest

from bfinfra.model.compare import Change, Unknown
from bfinfra.model.errors import Place, Problem, Warned
from bfinfra.model.events import Ended, Ending, Progressed, Settling, Started, StepBegun, StepEnded
from bfinfra.model.kind import Done
from bfinfra.model.outcome import OutOfService
from bfinfra.model.plan import Action, Item, Plan
from bfinfra.model.refs import Key
from bfinfra.model.step import Disruption, Step

HOST = Key("gpu_host", "esx209-161.aiml.local")
NAMESPACE = Key("supervisor_namespace", "cnasg")
CLUSTER = Key("tanzu_cluster", "cluster-01")
SECRET = Key("token_secret", "cluster-01-default")
OLD = Key("bitfusion_server", "bf-00")


@dataclass(frozen=True, kw_only=True)
class Reboot(Step):
    """Reboot {host}."""

    disruption: ClassVar[Disruption] = Disruption.REBOOT
    why: ClassVar[str] = "passthrough becomes active only then"
    host: str


@dataclass(frozen=True, kw_only=True)
class Create(Step):
    """Create the namespace {name} on the cluster {cluster}."""

    name: str
    cluster: str


@dataclass(frozen=True, kw_only=True)
class Write(Step):
    """Write the secret {name}."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Destroy(Step):
    """Destroy the virtual machine {name}."""

    destructive: ClassVar[bool] = True
    disruption: ClassVar[Disruption] = Disruption.REPLACE
    name: str


@dataclass(frozen=True)
class Outcome:
    """What the outcome of an apply is, made by hand."""

    plan: Plan
    endings: dict[Key, Ended]
    seconds: float = 723.0
    requests: int = 180
    writes: int = 24
    whole: Ending = Ending.FAILED
    declined: bool = field(default=False)
    out_of_service: tuple[OutOfService, ...] = ()

    @property
    def ending(self) -> Ending:
        return self.whole


def units(kind: str, field: str) -> str:
    return {"limits.memory": "bytes", "limits.cpu": "MHz"}.get(field, "")


@pytest.fixture
def plan() -> Plan:
    return Plan(
        "singapore-poc",
        (
            Item(
                HOST, Action.UPDATE, (Reboot(host=HOST.name, changes=(Change("passthrough.0.count", 1, 2),)),)
            ),
            Item(
                NAMESPACE,
                Action.CREATE,
                (
                    Create(
                        name="cnasg",
                        cluster="compute",
                        changes=(
                            Change("limits.cpu", None, 48000),
                            Change("limits.memory", None, 384 * 2**30),
                            Change("vm_classes", None, ["best-effort-xlarge"]),
                        ),
                    ),
                ),
            ),
            Item(CLUSTER, Action.KEEP, (), (NAMESPACE,)),
            Item(
                SECRET,
                Action.UPDATE,
                (
                    Write(
                        name="tokens",
                        changes=(
                            Change("namespaces", ["default"], ["default", "gpu"]),
                            Change("digest", "scrypt$a", Unknown(CLUSTER, "digest")),
                        ),
                    ),
                    Write(name="seal", changes=(Change("namespaces", ["default"], ["default", "gpu"]),)),
                ),
                (CLUSTER,),
            ),
            Item(OLD, Action.DELETE, (Destroy(name="bf-00"),), (), ("vm/other-people's",)),
        ),
    )


@pytest.fixture
def broken(plan: Plan) -> Plan:
    place = Place(Path("site.yaml"), 12, 5, "    limts: {cpu: 48GHz}")
    return Plan(
        "singapore-poc",
        plan.items[:1],
        (Problem("unknown field limts", place, "a namespace has no such field", "did you mean limits?"),),
        {"token_secret": "cluster-01 does not answer"},
        (Warned(Problem("the certificate ends in 9 days", "vcsa.aiml.local:443", next="renew it")),),
    )


@pytest.fixture
def events() -> list[object]:
    """From 2026-02-03T04:05:00Z on."""
    at = 1770091500.0
    return [
        Started(at=at, key=NAMESPACE, action=Action.CREATE),
        StepBegun(at=at, key=NAMESPACE, title="Create the namespace cnasg", number=1),
        StepEnded(
            at=at + 2,
            key=NAMESPACE,
            title="Create the namespace cnasg",
            number=1,
            seconds=2.0,
            problem=Problem("the server is busy"),
            again=True,
        ),
        StepBegun(at=at + 3, key=NAMESPACE, title="Create the namespace cnasg", number=1),
        StepEnded(at=at + 6.5, key=NAMESPACE, title="Create the namespace cnasg", number=1, seconds=3.5),
        Settling(at=at + 7, key=NAMESPACE, why="CONFIGURING"),
        Ended(
            at=at + 20,
            key=NAMESPACE,
            action=Action.CREATE,
            ending=Ending.DONE,
            seconds=20,
            note="kubectl vsphere login --server=172.24.206.1",
        ),
        Ended(at=at + 20, key=CLUSTER, action=Action.KEEP, ending=Ending.UNCHANGED, seconds=0.1),
        StepBegun(at=at + 21, key=OLD, title="Upload disk-0.vmdk", number=1),
        Progressed(at=at + 22, key=OLD, progress=Done("disk-0.vmdk", 100 * 2**20, 1000 * 2**20)),
        Progressed(at=at + 32, key=OLD, progress=Done("disk-0.vmdk", 600 * 2**20, 1000 * 2**20)),
    ]


@pytest.fixture
def outcome(plan: Plan) -> Outcome:
    ended = (
        Ended(
            at=0,
            key=HOST,
            action=Action.UPDATE,
            ending=Ending.FAILED,
            seconds=61,
            problem=Problem(
                "the host did not come back",
                HOST.name,
                "no answer on port 443",
                "look at its console, then apply again",
            ),
        ),
        Ended(
            at=0,
            key=NAMESPACE,
            action=Action.CREATE,
            ending=Ending.DONE,
            seconds=20,
            note="https://172.24.206.1\nlogged: run on 2 GPUs",
        ),
        Ended(at=0, key=CLUSTER, action=Action.KEEP, ending=Ending.UNCHANGED, seconds=0.1),
        Ended(
            at=0,
            key=SECRET,
            action=Action.UPDATE,
            ending=Ending.BLOCKED,
            seconds=0,
            problem=Problem(f"{SECRET} waits for {HOST}", why="which failed"),
        ),
    )
    return Outcome(plan, {e.key: e for e in ended})
