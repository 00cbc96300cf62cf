"""Searches users and groups in vCenter's directories: its own, and those joined to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bfinfra.backends.words import safe
from bfinfra.model.errors import Missing
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.session import SoapSession

NEAR = 3  # first letters of similar names: a whole directory may have a hundred thousand


@dataclass(frozen=True, slots=True)
class Found:
    """The result of looking up a name: whether a user or a group has it. If neither: the `users` and `groups`
    with the same first letters.
    """

    user: bool = False
    group: bool = False
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


class Directory:
    """Searches vCenter's UserDirectory. Raises RemoteError: Forbidden and Rejected if that can't be
    searched.
    """

    def __init__(self, session: SoapSession) -> None:
        self._session = session

    def find(self, account: str) -> Found:
        """The user and group `name@domain`; case does not count. An unknown domain has no accounts."""
        name, _, domain = account.partition("@")
        if exact := self._search(domain, name, exact=True):
            return Found(any(not each.group for each in exact), any(each.group for each in exact))
        near = self._search(domain, name[:NEAR], exact=False)
        users, groups = (
            tuple(sorted({f"{_plain(each.principal)}@{domain}" for each in near if each.group is group}))
            for group in (False, True)
        )
        return Found(users=users, groups=groups)

    def _search(self, domain: str, text: str, *, exact: bool) -> Sequence[Any]:
        def ask(content: Any) -> Sequence[Any]:
            return list(
                content.userDirectory.RetrieveUserGroups(
                    domain=domain, searchStr=text, exactMatch=exact, findUsers=True, findGroups=True
                )
                or ()
            )

        try:
            return self._session.read(ask)
        except Missing:
            return ()


def _plain(principal: str) -> str:
    """A name without its domain, in either form."""
    return safe(principal.rpartition("\\")[2].partition("@")[0], 80)
