"""The steps of a GPU operator beside those of its objects: at its nodes, one after the other. Their rights
are those of `GpuOperator.own_rights`, as most sites need none of them.
"""

from __future__ import annotations

from typing import ClassVar

from bfinfra.kinds.cluster.base.rendered.steps import STEPS as OF_OBJECTS
from bfinfra.kinds.cluster.base.rendered.steps import AwaitObjects, Delete, Update
from bfinfra.kinds.cluster.gpu_operator.state import User
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Right, Use
from bfinfra.model.step import Disruption, Step

EVICTED = "pods with GPUs are evicted, and start anew where GPUs are free"
LOST = "the pods of a node lose its GPUs while its driver restarts"


@dataclass(frozen=True, kw_only=True)
class OfNode(Step):
    """change node {node} of {cluster}"""

    rights: ClassVar[tuple[Right, ...]] = ()
    uses = (Use.APPLY, Use.DESTROY)
    node: str
    cluster: str
    home: Endpoint


@dataclass(frozen=True, kw_only=True)
class Cordon(OfNode):
    """cordon node {node} of {cluster}, to divide its GPUs as {layout}"""

    layout: str
    note: str
    version: str
    """The node's version that was read, so that nobody's cordon is taken for bfinfra's."""


@dataclass(frozen=True, kw_only=True)
class AwaitPods(OfNode):
    """wait until the pods that use GPUs of node {node} of {cluster} are gone: {pods}"""

    waits_ready = True
    pods: str


@dataclass(frozen=True, kw_only=True)
class Evict(OfNode):
    """evict the pods that use GPUs of node {node} of {cluster}: {pods}"""

    disruption = Disruption.RESTART
    why = EVICTED
    waits_ready = True
    pods: str
    users: tuple[User, ...]


@dataclass(frozen=True, kw_only=True)
class Divide(OfNode):
    """divide the GPUs of node {node} of {cluster} as {layout}"""

    waits_ready = True
    layout: str
    note: str


@dataclass(frozen=True, kw_only=True)
class AwaitDivision(OfNode):
    """wait until the GPUs of node {node} of {cluster} are divided as {layout}"""

    waits_ready = True
    layout: str


@dataclass(frozen=True, kw_only=True)
class TryAgain(OfNode):
    """restart the MIG manager of node {node} of {cluster}, which failed to divide its GPUs as {layout}"""

    waits_ready = True
    layout: str
    namespace: str
    pod: str
    note: str


@dataclass(frozen=True, kw_only=True)
class RestartPlugin(OfNode):
    """restart the DRA driver of node {node} of {cluster}, pod {pod}, which publishes its GPUs as they were"""

    waits_ready = True
    namespace: str
    pod: str
    note: str


@dataclass(frozen=True, kw_only=True)
class AwaitSlice(OfNode):
    """wait until the GPUs of node {node} of {cluster} can be claimed as {layout}"""

    waits_ready = True
    layout: str


@dataclass(frozen=True, kw_only=True)
class Uncordon(OfNode):
    """uncordon node {node} of {cluster}"""


@dataclass(frozen=True, kw_only=True)
class LeaveCordoned(OfNode):
    """leave node {node} of {cluster} cordoned, as it was before"""


@dataclass(frozen=True, kw_only=True)
class RestartDriver(OfNode):
    """restart the driver of node {node} of {cluster}, pod {pod}, which {reason}"""

    disruption = Disruption.RESTART
    why = LOST
    waits_ready = True
    namespace: str
    pod: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class UpdateDriver(Update):
    """change objects in {cluster}; the operator then restarts the driver on {nodes}"""

    disruption = Disruption.RESTART
    why = LOST
    nodes: str


@dataclass(frozen=True, kw_only=True)
class UpdateOperator(Update):
    """change objects in {cluster}, and wait until they are ready"""

    waits_ready = True


@dataclass(frozen=True, kw_only=True)
class AwaitOperator(AwaitObjects):
    """wait until the operator in {cluster} is ready, and its nodes offer their GPUs"""


@dataclass(frozen=True, kw_only=True)
class DeletePolicy(Delete):
    """delete objects from {cluster}, and wait until the operator's operands are gone"""


@dataclass(frozen=True, kw_only=True)
class AwaitNoOperands(Step):
    """wait until the operator's operands in {cluster} are gone: {operands}"""

    rights: ClassVar[tuple[Right, ...]] = ()
    uses = (Use.DESTROY,)
    waits_ready = True
    cluster: str
    operands: str


STEPS: tuple[type[Step], ...] = (
    *OF_OBJECTS,
    Cordon,
    AwaitPods,
    Evict,
    Divide,
    AwaitDivision,
    TryAgain,
    RestartPlugin,
    AwaitSlice,
    Uncordon,
    LeaveCordoned,
    RestartDriver,
    UpdateDriver,
    UpdateOperator,
    AwaitOperator,
    DeletePolicy,
    AwaitNoOperands,
)
