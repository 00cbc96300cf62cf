"""The account for vCenter and its supervisors: from the site, else from the variables that govc, Terraform
and Ansible use.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping

from bfinfra.model.errors import BfinfraError, Denied, Malformed, Rejected, RemoteError, Untrusted
from bfinfra.model.records import dataclass
from bfinfra.model.secret import Secret, digest, matches
from bfinfra.model.site import VCenterSettings
from bfinfra.model.sources import Sources

USERNAMES = ("BFINFRA_VCENTER_USERNAME", "GOVC_USERNAME", "VSPHERE_USER", "VMWARE_USER")
PASSWORDS = ("BFINFRA_VCENTER_PASSWORD", "GOVC_PASSWORD", "VSPHERE_PASSWORD", "VMWARE_PASSWORD")


REFUSED, FAILED = 300.0, 60.0  # seconds until a refused login is tried again, and one that failed otherwise


FINAL = (Denied, Malformed, Rejected, Untrusted)
"""How a login fails for good."""


class Shut:
    """A login that failed for good: whoever tries it again soon may lock the account. With another password
    it may be tried at once. `others`: those of the same account, at the server's other APIs.
    """

    def __init__(self) -> None:
        self.others: tuple[Shut, ...] = ()
        self._error: RemoteError | None = None
        self._proof, self._until = "", 0.0

    def check(self, password: Callable[[], Secret]) -> None:
        """Raises the error of the login that failed, unless the reference has another password now, or some
        minutes have passed.
        """
        if self._error is None or time.monotonic() > self._until or self._renewed(password):
            self._error = None
            return
        raise self._error

    def by(self, error: RemoteError, password: Callable[[], Secret]) -> None:
        """The login failed so. A password that is not accepted is not tried at another API either."""
        for each in self.others if isinstance(error, Denied) and error.account else ():
            each.remember(error, password)
        self.remember(error, password)

    def remember(self, error: RemoteError, password: Callable[[], Secret]) -> None:
        """Keep the error, for as long as this password is the one."""
        refused = isinstance(error, Denied)
        self._error, self._until = error, time.monotonic() + (REFUSED if refused else FAILED)
        self._proof = ""
        with contextlib.suppress(BfinfraError):  # the error may be that there is no password
            self._proof = digest(password().reveal()) if refused else ""

    def _renewed(self, password: Callable[[], Secret]) -> bool:
        try:
            return bool(self._proof) and not matches(password().reveal(), self._proof)
        except BfinfraError:
            return False


@dataclass(frozen=True, slots=True)
class Credentials:
    """The account. The password is a reference until it is sent."""

    username: str
    password: Secret


def credentials(
    settings: VCenterSettings, env: Mapping[str, str] | None = None, *, before: tuple[str, ...] = ()
) -> Credentials:
    """From the site, else from the environment (`env`, else that of the password's reference, else that of
    the site). Raises Denied.

    `before`: variables of the password that come before the usual ones.
    """
    if env is None:
        env = settings.password.sources.env if settings.password else settings.env
    username = settings.username or next((env[n] for n in USERNAMES if env.get(n)), None)
    named = next((n for n in (*before, *PASSWORDS) if env.get(n)), None)
    if not username:
        raise Denied(
            "no user name for vCenter",
            server=settings.server,
            next=f"write vcenter.username or set {USERNAMES[0]}",
        )
    if settings.password:
        return Credentials(username, settings.password)
    if not named:
        raise Denied(
            "no password for vCenter",
            server=settings.server,
            next=f"write vcenter.password as a reference or set {PASSWORDS[0]}",
        )
    return Credentials(username, Secret("env", named, Sources(env=env)))
