"""One session for each server and API, opened when first needed and always closed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from pyVmomi import vim

from bfinfra.backends import background
from bfinfra.backends.credentials import FINAL, Shut, credentials
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import faults, leftovers, soap
from bfinfra.backends.vcenter.connector import Connector
from bfinfra.model.errors import Busy, Denied, Expired, Missing, Rejected, RemoteError
from bfinfra.model.redact import hide
from bfinfra.model.secret import Secret
from bfinfra.model.site import VCenterSettings

T = TypeVar("T")


def refused(username: str, server: str) -> Denied:
    """The error of a refused login, which the two APIs word differently."""
    made = Denied(
        f"vCenter refused the login of {username}",
        server=server,
        why="it does not accept this user name and password",
        next="check vcenter.username, and what vcenter.password refers to",
    )
    made.account = True
    return made


def over(server: str) -> Rejected:
    """The error of a request after `close`."""
    return Rejected("the session is over", server=server, why="the run that it belongs to has ended")


def _full(error: Busy) -> Busy:
    """The error of a login that is answered 503, while the requests before it were served."""
    made = Busy(
        "vCenter opens no session now",
        server=error.server,
        why=f"{error.problems[0].why}; it serves other requests, so its limit of sessions may be reached",
        next="end sessions that nobody uses (in the vSphere Client: Monitor, Sessions of the vCenter), then "
        "run this again",
        retry_after=error.retry_after,
    )
    made.away = error.away
    return made


class SoapSession:
    """The SOAP session. `read` logs in again once if the session has expired; `write` never repeats anything.

    With `site`, a run that writes ends the sessions that killed runs of the site left behind.
    """

    def __init__(
        self,
        settings: VCenterSettings,
        transport: Transport,
        env: Mapping[str, str] | None = None,
        site: str = "",
        connector: Connector | None = None,
    ) -> None:
        self.settings = settings
        self.server = settings.server
        self._read_only = transport.read_only
        self._env = env
        self._site = site
        self._connector = connector or Connector(settings, transport, site)
        self._content: Any = None
        self._closed = False
        self._entry: Future[Any] | None = None
        self.shut = Shut()
        self._lock = threading.Lock()

    def open(self) -> None:
        """Log in now, in the background; an error reaches the first caller that needs the session."""
        self._entry = background.start(self._login, "login")

    def content(self) -> Any:
        """ServiceContent of a session after login."""
        with self._lock:
            if self._closed:
                raise over(self.server)
            if self._content is None:
                self.shut.check(self._password)
                try:
                    self._content = self._enter()
                except (*FINAL, Missing) as error:
                    self.shut.by(error, self._password)
                    raise
            return self._content

    def read(self, operation: Callable[[Any], T]) -> T:
        """Run a whole read (its views and collectors included) on ServiceContent, again once if the session
        had ended.
        """
        content = self.content()
        try:
            return operation(content)
        except Expired:
            self.forget(content)
        return operation(self.content())

    def write(self, operation: Callable[[Any], T]) -> T:
        """Run a write on ServiceContent. An ended session is raised as Expired; the next call logs in
        again.
        """
        content = self.content()
        try:
            return operation(content)
        except Expired:
            self.forget(content)
            raise

    def forget(self, content: object) -> None:
        """The session that `content` belongs to has ended."""
        with self._lock:
            if self._content is content:
                self._content = None

    def close(self) -> None:
        """Log out, for good: what still reads gets no session any more. A server that no longer answers is
        left alone.
        """
        with self._lock:
            self._closed = True
            content, self._content = self._content or self._unused(), None
        if content is not None:
            with contextlib.suppress(RemoteError):  # it ends by itself on the server
                content.sessionManager.Logout()
        self._connector.close()

    def _password(self) -> Secret:
        return credentials(self.settings, self._env).password

    def _enter(self) -> Any:
        """A login; the one that `open` started, once."""
        if self._entry is None:
            return self._login()
        try:
            return self._entry.result()
        finally:
            if self._entry.done():  # else the waiting caller was interrupted, and `close` logs out
                self._entry = None

    def _unused(self) -> Any:
        """The login that `open` started and that was never used; None if it failed."""
        entry, self._entry = self._entry, None
        return None if entry is None or entry.exception() else entry.result()

    def _login(self) -> Any:
        who = credentials(self.settings, self._env)
        try:
            stub = soap.Stub(
                self._connector.http(), self.server, soap.negotiate(self._connector.versions(), self.server)
            )
            content = soap.service_instance(stub).RetrieveContent()
        except Expired:  # there is no session yet: whatever is asked is answered 401
            raise refused(who.username, self.server) from None
        if not isinstance(content, vim.ServiceInstanceContent) or content.sessionManager is None:
            raise faults.malformed(
                "this doesn't answer as a vCenter does", self.server, "it names no services"
            )
        try:
            own = content.sessionManager.Login(who.username, who.password.reveal(), "en_US")
        except Denied as error:
            if error.privilege:
                raise
            raise refused(who.username, self.server) from None
        except Busy as error:
            raise _full(error) from None
        hide(own.key, passing=True)  # it is part of every lease's name
        if self._site and not self._read_only:
            leftovers.end(content, own, self._site)
        return content
