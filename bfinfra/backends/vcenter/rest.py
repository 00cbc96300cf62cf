"""vCenter's REST API (`/api`): a small typed client with one session; errors by `error_type`."""

from __future__ import annotations

import base64
import contextlib
import re
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import httpx2

from bfinfra.backends.credentials import FINAL, Shut, credentials
from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import faults
from bfinfra.backends.vcenter.connector import agent
from bfinfra.backends.vcenter.session import over, refused
from bfinfra.backends.words import web_page
from bfinfra.model.errors import Denied, Expired, Missing, RemoteError, Untrusted
from bfinfra.model.redact import hide, redact
from bfinfra.model.secret import Secret
from bfinfra.model.site import VCenterSettings

SESSION = "/api/session"
OLD_SESSION = "/rest/com/vmware/cis/session"
TOKEN = re.compile(r"[!-~]{1,4096}")
HEADER = "vmware-api-session-id"
MOST = 20_000
"""Entries of a list, far above what vCenter allows of anything. Many are asked for one by one, as the API has
no bulk form.
"""
Params = Mapping[str, Any]


class Rest:
    """Paths start with `/api/` (or `/rest/`); bodies and answers are plain JSON values. Raises
    RemoteError.
    """

    def __init__(
        self,
        settings: VCenterSettings,
        transport: Transport,
        env: Mapping[str, str] | None = None,
        site: str = "",
    ) -> None:
        self.server = settings.server
        self._settings = settings
        self._transport = transport
        self._env = env
        self._agent = agent(site)
        self._http: httpx2.Client | None = None
        self._token = ""
        self.shut = Shut()
        self._session_path = SESSION
        self._closed = False
        self._lock = threading.Lock()

    def get(self, path: str, *, params: Params | None = None) -> Any:
        """Read. After an expired session it logs in again, once."""
        try:
            return self._call("GET", path, None, params)
        except Expired:
            return self._call("GET", path, None, params)

    def post(
        self, path: str, body: object = None, *, params: Params | None = None, timeout: float | None = None
    ) -> Any:
        """Create, or act (`params={"action": …}`). `timeout`: seconds, if the answer may take long."""
        return self._call("POST", path, body, params, timeout)

    def headers(self) -> dict[str, str]:
        """The headers of the session, for uploads to the same server."""
        return {HEADER: self._session()}

    def patch(self, path: str, body: object = None, *, params: Params | None = None) -> Any:
        """Change some fields."""
        return self._call("PATCH", path, body, params)

    def put(self, path: str, body: object = None, *, params: Params | None = None) -> Any:
        """Set all fields."""
        return self._call("PUT", path, body, params)

    def delete(self, path: str, body: object = None, *, params: Params | None = None) -> Any:
        """Remove."""
        return self._call("DELETE", path, body, params)

    def bytes(self, path: str) -> bytes:
        """A download without login (`/certs/download.zip`)."""
        answer = self._client().get(path)
        if answer.status_code != 200:
            raise faults.of_answer(answer, f"GET {path} failed", self.server)
        return answer.content

    def close(self) -> None:
        """Log out for good: later requests get no session."""
        with self._lock:
            self._closed = True
            token, http = self._token, self._http
            self._token, self._http = "", None
        if http is None:
            return
        if token:
            with contextlib.suppress(RemoteError):  # it ends by itself on the server
                http.delete(self._session_path, headers={HEADER: token})
        http.close()

    @property
    def account(self) -> str:
        """The name of the account that logs in."""
        return credentials(self._settings, self._env).username

    def _call(
        self, method: str, path: str, body: object, params: Params | None, timeout: float | None = None
    ) -> Any:
        token = self._session()
        what = f"{method} {path}" + (f"?action={params['action']}" if params and "action" in params else "")
        extra: dict[str, Any] = {} if body is None else {"json": body}
        if timeout is not None:
            extra["timeout"] = httpx2.Timeout(timeout, connect=10)
        http = self._client()
        try:
            answer = http.request(method, path, params=params, headers={HEADER: token}, **extra)
        except Untrusted:
            self._trust_again(http)
            raise
        if answer.status_code == 401:
            with self._lock:
                self._token = "" if self._token == token else self._token
        if not answer.is_success:
            raise faults.of_answer(answer, f"{what} failed", self.server)
        try:
            found = answer.json() if answer.content.strip() else None
        except (ValueError, RecursionError):
            raise faults.malformed(
                f"the answer to {what} is not JSON", self.server, redact(answer.text[:4000])[:100]
            ) from None
        if any(isinstance(each, list) and len(each) > MOST for each in (found, *_values(found))):
            raise faults.malformed(
                f"the answer to {what} can't be right", self.server, f"a list of more than {MOST:,} entries"
            )
        return found

    def _client(self) -> httpx2.Client:
        with self._lock:
            self._check_open()
            if self._http is None:
                self._http = self._transport.client(
                    f"https://{self.server}", self._settings.trust, headers={"User-Agent": self._agent}
                )
            return self._http

    def _trust_again(self, http: httpx2.Client) -> None:
        """Read what is trusted anew with the next request: the server's certificate may have been renewed."""
        with self._lock:
            self._http = None if self._http is http else self._http
        http.close()

    def _session(self) -> str:
        http = self._client()
        with self._lock:
            self._check_open()
            if not self._token:
                self.shut.check(self._password)
                try:
                    self._token = self._login(http)
                except (*FINAL, Missing) as error:
                    self.shut.by(error, self._password)
                    raise
            return self._token

    def _check_open(self) -> None:
        if self._closed:
            raise over(self.server)

    def _password(self) -> Secret:
        return credentials(self._settings, self._env).password

    def _login(self, http: httpx2.Client) -> str:
        who = credentials(self._settings, self._env)
        basic = base64.b64encode(f"{who.username}:{who.password.reveal()}".encode()).decode()
        for path in (SESSION, OLD_SESSION):  # the only login before 7.0 U2
            answer = http.post(path, headers={"Authorization": f"Basic {basic}"})
            if answer.status_code != 404:
                break
        self._session_path = path
        if answer.status_code == 401:
            raise refused(who.username, self.server)
        if answer.status_code == 403:
            raise Denied(
                f"vCenter refused the login of {who.username} to its REST API",
                server=self.server,
                why="it answers 403",
                next="check what the account may do there, and vcenter.username",
            )
        if not answer.is_success:
            raise faults.of_entrance(answer, "the login at vCenter failed", self.server)
        try:
            found = answer.json() if answer.content else None
        except (ValueError, RecursionError):
            found = None
        token = found.get("value") if isinstance(found, dict) else found
        if not isinstance(token, str) or not TOKEN.fullmatch(token):
            why = web_page(answer.read()) or type(found).__name__
            raise faults.malformed("the login's answer holds no session", self.server, why)
        return hide(token, passing=True)


def _values(found: object) -> Iterable[object]:
    return found.values() if isinstance(found, dict) else ()
