"""Tasks of REST operations that take their time. Source: com.vmware.cis.Tasks."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.rest.content import moment
from bfinfra.sandbox.rest.errors import Refused, missing
from bfinfra.sandbox.rest.routes import Call, route

if TYPE_CHECKING:
    from bfinfra.sandbox.rest.state import Info


@route("GET", "/cis/tasks/{task}")
def task(call: Call, task: str) -> Any:
    """One task."""
    found = call.state.tasks.get(task)
    if found is None:
        raise missing("The task", task)
    return found


def begin(call: Call, service: str, operation: str, seconds: float, work: Callable[[], Any]) -> str:
    """Start a task, whose id is returned: `work` gives its result, or raises Refused. OPERATION_NOT_FOUND
    where the caller didn't ask for a task.
    """
    if call.request.params.get("vmw-task") != "true":
        raise Refused("OPERATION_NOT_FOUND", f"{service}.{operation} is asked with vmw-task=true.")
    identity = f"{uuid.uuid4()}:{service}"
    record: Info = {
        "service": service,
        "operation": f"{operation}$task",
        "description": localized(f"{service}.{operation}", operation),
        "status": "RUNNING",
        "cancelable": False,
        "start_time": moment(call.inventory),
        "user": call.session.user.name,
        "progress": {"total": 100, "completed": 0, "message": localized("progress", "running")},
    }
    call.state.tasks[identity] = record
    call.state.clock.after(seconds, lambda: _end(call, identity, work))
    return identity


def running(call: Call, service: str) -> bool:
    """Return whether a task of a service is running."""
    return any(
        each["status"] == "RUNNING" for each in call.state.tasks.values() if each["service"] == service
    )


def localized(identity: str, text: str) -> dict[str, Any]:
    """A message in the API's form."""
    return {"id": identity, "default_message": text, "args": []}


def _end(call: Call, identity: str, work: Callable[[], Any]) -> None:
    ended: Info
    try:
        ended = {"status": "SUCCEEDED", "result": work()}
    except Refused as error:
        words = [localized(f"com.vmware.vapi.std.errors.{error.kind.lower()}", str(error))]
        ended = {"status": "FAILED", "error": {"error_type": error.kind, "messages": words}}
    progress = {"total": 100, "completed": 100, "message": localized("progress", "done")}
    with call.state.lock:
        record = call.state.tasks[identity]
        call.state.tasks[identity] = {
            **record,
            **ended,
            "progress": progress,
            "end_time": moment(call.inventory),
        }
