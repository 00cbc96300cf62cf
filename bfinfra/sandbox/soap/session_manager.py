"""SessionManager: logins and sessions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.computed import UNSTABLE, computed
from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.sessions import BadLogin, Session
from bfinfra.sandbox.soap.dispatch import CALLING, Call, method, shown_name
from bfinfra.sandbox.soap.journal import record

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

MANAGER = "vim.SessionManager"
UNSTABLE.update({"currentSession", "sessionList"})


@method(MANAGER, "Login", writes=False)
def login(call: Call, this: Managed, args: Any) -> Any:
    """A new session. InvalidLogin where name and password don't fit or the caller is logged in already."""
    try:
        session = call.sessions.login(args.userName, args.password, "vcenter", call.agent)
    except BadLogin:
        record(
            call,
            vim.event.BadUsernameSessionEvent,
            None,
            f"Cannot login {args.userName}",
            ipAddress="127.0.0.1",
        )
        raise vim.fault.InvalidLogin(
            msg="Cannot complete login due to an incorrect user name or password."
        ) from None
    call.session, call.cookie = session, session.key
    record(
        call,
        vim.event.UserLoginSessionEvent,
        None,
        f"User {call.user} logged in",
        ipAddress="127.0.0.1",
        sessionId=session.key,
        locale="en",
        userAgent=call.agent,
    )
    call.inventory.touch(this)
    return shown(session)


def shown(session: Session) -> Any:
    """A session as the API shows it."""
    name = shown_name(session.user.name)
    return vim.UserSession(
        key=session.key,
        userName=name,
        fullName=session.user.name,
        loginTime=moment(session.started),
        lastActiveTime=moment(session.used),
        locale="en",
        messageLocale="en",
        extensionSession=False,
        ipAddress="127.0.0.1",
        userAgent=session.agent,
        callCount=session.calls,
    )


def moment(seconds: float) -> datetime:
    """A time as the API gives it."""
    return datetime.fromtimestamp(seconds, UTC)


@computed(MANAGER, "currentSession")
def _current(_: Inventory, __: Managed) -> Any:
    session = CALLING.get().session
    return shown(session) if session else None


@computed(MANAGER, "sessionList")
def _all(_: Inventory, __: Managed) -> Any:
    return [shown(each) for each in CALLING.get().sessions.all()]


@method(MANAGER, "Logout", writes=False)
def logout(call: Call, _: Managed, __: object) -> None:
    """End the caller's session."""
    if call.session is not None:
        end(call, call.session.key)


@method(MANAGER, "TerminateSession")
def terminate(call: Call, _: Managed, args: Any) -> None:
    """End other sessions. NotFound for one that isn't open; InvalidArgument for the caller's own."""
    for key in args.sessionId:
        if call.session is not None and key == call.session.key:
            raise vmodl.fault.InvalidArgument(
                invalidProperty="sessionId", msg="a session can't terminate itself"
            )
        if not end(call, key):
            raise vim.fault.NotFound(msg="no session is open under this key")


def end(call: Call, key: str) -> bool:
    """Close a session and drop what belongs to it."""
    ended = call.sessions.end(key)
    for each in [
        managed for managed in call.inventory.objects.values() if managed.hidden.get("session") == key
    ]:
        call.inventory.remove(each)
    return ended is not None


@method(MANAGER, "SessionIsActive", writes=False)
def is_active(call: Call, _: Managed, args: Any) -> bool:
    """Return whether a session is open under this key and name."""
    return any(
        each.key == args.sessionID and shown_name(each.user.name) == args.userName
        for each in call.sessions.all()
    )
