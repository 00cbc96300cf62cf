"""Ends sessions that killed runs left behind: a run names itself in its user agent, and the next run of its
site and machine ends them.

vCenter lists sessions only to accounts with the right Sessions.TerminateSession; otherwise they time out.
"""

from __future__ import annotations

import contextlib
import re
from typing import Any
from urllib.parse import quote

from bfinfra.backends.vcenter import properties
from bfinfra.model import process
from bfinfra.model.errors import RemoteError

AGENT = re.compile(r"bfinfra \((?P<site>[^ ;()]+); (?P<who>[^ ;()]+)\)")


def end(content: Any, own: Any, site: str) -> None:
    """End the sessions of the site's earlier runs on this machine whose process is gone. `own`: the session
    that asks.
    """
    manager = content.sessionManager
    with contextlib.suppress(RemoteError):  # without the right, or if another run was faster
        listed = properties.one(content, manager, ["sessionList"])["sessionList"] or ()
        if left := [
            each.key
            for each in listed
            if each.key != own.key and each.userName == own.userName and _left(each.userAgent or "", site)
        ]:
            manager.TerminateSession(left)


def _left(annotation: str, site: str) -> bool:
    found = AGENT.fullmatch(annotation)
    return bool(found and found["site"] == quote(site) and process.ended(found["who"]))
