"""A check that has to wait for another one."""

from __future__ import annotations


class Blocked(Exception):
    """A check can't be made while something else is bad, which another check tells."""

    def __init__(self, about: str, why: str) -> None:
        super().__init__(why)
        self.about, self.why = about, why
