"""When a watch logs in again whose login was refused. Each try with an old password may lock the account."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from threading import Event as Flag

from bfinfra.model import secret
from bfinfra.model.errors import BfinfraError, Denied
from bfinfra.model.site import Site

REFUSED = 300.0  # seconds until the same password is tried again
LOOK = 5.0  # seconds between two looks at the password


class Login:
    """The login of a site's vCenter."""

    def __init__(self, site: Site) -> None:
        self._password = site.vcenter.password if site.vcenter else None
        self._proof = ""

    def read(self) -> None:
        """Note which password the next login uses. Its reference is read anew."""
        secret.read_again()
        self._proof = ""
        if self._password:
            with contextlib.suppress(BfinfraError):  # the login reports it
                self._proof = secret.digest(self._password.reveal())

    def wait(self, error: BfinfraError, pause: float, ended: Flag, look: Callable[[], None]) -> None:
        """Wait for `pause` seconds, but after a refused login until there is another password, or for some
        minutes. `look` is called now and then.
        """
        refused = isinstance(error, Denied) and not error.privilege
        until = time.monotonic() + (max(pause, REFUSED) if refused else pause)
        look()
        while (left := until - time.monotonic()) > 0 and not ended.wait(min(left, LOOK)):
            look()
            if refused and self._renewed():
                return

    def _renewed(self) -> bool:
        if not self._password:
            return False
        secret.read_again()
        try:
            return not secret.matches(self._password.reveal(), self._proof)
        except BfinfraError:
            return False
