"""Tasks: queued, running with progress, then success or error; one at a time for an entity that it locks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.computed import computed
from bfinfra.sandbox.inventory.hosts import now
from bfinfra.sandbox.inventory.vmtypes import moid, support, vim, vmodl
from bfinfra.sandbox.soap.dispatch import Call, method

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

KINDS = (
    vim.Folder,
    vim.Datacenter,
    vim.ClusterComputeResource,
    vim.HostSystem,
    vim.VirtualMachine,
    vim.Datastore,
)
RECENT, SAVED = 20, 500
ON_CANCEL: list[Callable[[Inventory, Managed], bool]] = []  # others that end a task; the first one counts


def start(call: Call, entity: Managed, what: str, work: Callable[[], Any], *, lock: bool = True) -> Any:
    """A task on an entity: `work` runs under the inventory's lock when the world's time for a task is over,
    and gives the result or raises a fault.

    `what` is the description id ("VirtualMachine.powerOn"). Raises TaskInProgress if another task runs on the
    entity.
    """
    inventory, injected = call.inventory, call.task_fault
    task, duration = begin(call, entity, what, lock=lock), duration_of(call.inventory)
    inventory.clock.after(duration * 0.1, lambda: run(inventory, task))
    inventory.clock.after(duration * 0.5, lambda: progress(inventory, task, 50))
    inventory.clock.after(duration, lambda: finish(inventory, task, work, injected))
    return task.ref


def begin(call: Call, entity: Managed, what: str, *, lock: bool = True) -> Managed:
    """A queued task that the caller runs and finishes. Raises TaskInProgress if another task holds the
    entity.
    """
    inventory = call.inventory
    if lock:
        refuse_busy(inventory, entity)
    task = inventory.add(vim.Task, inventory.new_id("task-"), {"locks": entity.moid if lock else ""})
    task["info"] = vim.TaskInfo(
        key=task.moid,
        task=task.ref,
        descriptionId=what,
        name=support.GetWsdlMethod("urn:vim25", call.method),
        entity=entity.ref if entity.is_a(vim.ManagedEntity) else None,
        entityName=entity.name or None,
        state="queued",
        cancelled=False,
        cancelable=True,
        queueTime=now(inventory),
        eventChainId=int(task.moid.rpartition("-")[2]),
        reason=vim.TaskReasonUser(userName=call.user),
    )
    inventory.touch(task, entity)
    trim(inventory)
    return task


def duration_of(inventory: Inventory, name: str = "task", default: float = 1.0) -> float:
    """Seconds that something takes in this world."""
    return float(inventory.world.durations.get(name, default))


def refuse_busy(inventory: Inventory, entity: Managed) -> None:
    """TaskInProgress where a task holds the entity."""
    for task in inventory.of(vim.Task):
        if task.hidden["locks"] == entity.moid and task["info"].state in ("queued", "running"):
            raise vim.fault.TaskInProgress(
                task=task.ref,
                msg=f"Another task is already in progress: {task['info'].descriptionId} on {entity.name}.",
            )


def trim(inventory: Inventory) -> None:
    """Forget the oldest finished tasks beyond a bound."""
    done = [task for task in inventory.of(vim.Task) if task["info"].state in ("success", "error")]
    for task in done[:-SAVED]:
        inventory.objects.pop(task.moid, None)


def run(inventory: Inventory, task: Managed) -> None:
    """From queued to running."""
    with inventory.lock:
        if task["info"].state == "queued":
            task["info"].state, task["info"].startTime, task["info"].progress = "running", now(inventory), 0
            inventory.touch(task)


def progress(inventory: Inventory, task: Managed, percent: int) -> None:
    """Per cent done."""
    with inventory.lock:
        if task["info"].state == "running":
            task["info"].progress = percent
            inventory.touch(task)


def finish(inventory: Inventory, task: Managed, work: Callable[[], Any], injected: object) -> None:
    """Do the work, and write its result into the task."""
    with inventory.lock:
        info = task["info"]
        if info.state not in ("queued", "running") or inventory.objects.get(task.moid) is not task:
            return
        info.startTime = info.startTime or now(inventory)
        try:
            info.result = outcome(work, injected)
            info.state, info.progress = "success", None
        except vmodl.MethodFault as error:
            info.state, info.error = "error", error
        except Exception as error:
            info.state, info.error = (
                "error",
                vmodl.fault.SystemError(reason=repr(error)[:300], msg=repr(error)[:300]),
            )
            raise
        finally:
            info.completeTime, info.cancelable = now(inventory), False
            entity = inventory.objects.get(moid(info.entity)) if info.entity else None
            inventory.touch(task, *([entity] if entity else []))


def outcome(work: Callable[[], Any], injected: Any) -> Any:
    """Return the result of the work, or raise a fault rule's fault in its place."""
    if injected is not None:
        raise injected
    return work()


@method("vim.Task", "CancelTask")
def cancel(call: Call, this: Managed, _: object) -> None:
    """End a task that hasn't done its work. NotSupported where it can't be, InvalidState where it is over."""
    info = this["info"]
    if info.state not in ("queued", "running"):
        raise vim.fault.InvalidState(msg=f"the task {this.moid} is over")
    if not info.cancelable:
        raise vmodl.fault.NotSupported(msg=f"the task {this.moid} ({info.descriptionId}) can't be cancelled")
    info.cancelled = True
    if any(hook(call.inventory, this) for hook in ON_CANCEL):
        return
    info.state, info.completeTime = "error", now(call.inventory)
    info.error = vmodl.fault.RequestCanceled(msg="The task was canceled by a user.")
    call.inventory.touch(this)


@computed("vim.TaskManager", "recentTask")
def _recent(inventory: Inventory, _: Managed) -> Any:
    return [task.ref for task in inventory.of(vim.Task)][-RECENT:]


@computed("vim.TaskManager", "maxCollector")
def _collectors(_: Inventory, __: Managed) -> int:
    return 32


@computed("vim.TaskManager", "description")
def _descriptions(_: Inventory, __: Managed) -> Any:
    methods = {
        f"{kind.__name__.rpartition('.')[2]}.{info.name[0].lower()}{info.name[1:]}"
        for kind in KINDS
        for info in kind._GetMethodList()  # noqa: SLF001 - pyVmomi's public name
        if info.result is vim.Task
    }
    reasons = [
        vim.TypeDescription(key=each, label=each.__name__, summary=each.__name__)
        for each in (vim.TaskReasonUser, vim.TaskReasonSystem)
    ]
    return vim.TaskDescription(
        methodInfo=_described(sorted(methods)),
        state=_described(("queued", "running", "success", "error")),
        reason=reasons,
    )


def _described(keys: Iterable[str]) -> list[Any]:
    return [vim.ElementDescription(key=key, label=key.rpartition(".")[2], summary=key) for key in keys]


@computed("vim.ManagedEntity", "recentTask")
def _of_entity(inventory: Inventory, entity: Managed) -> Any:
    index: dict[str, list[Any]] = inventory.remembered("tasks", lambda: by_entity(inventory))
    return index.get(entity.moid, [])[-RECENT:]


def by_entity(inventory: Inventory) -> dict[str, list[Any]]:
    """References of tasks by the id of their entity."""
    found: dict[str, list[Any]] = {}
    for task in inventory.of(vim.Task):
        if task["info"].entity is not None:
            found.setdefault(moid(task["info"].entity), []).append(task.ref)
    return found
