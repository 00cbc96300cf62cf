"""The names that a Site declares, by what is allowed. The definition of Site has the same patterns."""

from __future__ import annotations

import re
from typing import NamedTuple

SITE = "site.yaml"


class Rule(NamedTuple):
    """A pattern that the API server and this code check alike, and the same in words."""

    pattern: str
    words: str

    def fits(self, text: str) -> bool:
        """Whether the text may stand there."""
        return re.fullmatch(self.pattern, text) is not None


VARIABLE = Rule(
    r"^[A-Za-z_][A-Za-z0-9_.-]{0,127}$",
    "a variable's name has letters, digits, dots, dashes and underscores, and a letter or underscore first",
)
FILE = Rule(
    r"^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$",
    "a file's path is relative, without .. in it, and not site.yaml",
)
OBJECT = Rule(
    r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$",
    "an object's name has lower-case letters, digits, dashes and dots",
)
KEY = Rule(r"^[-._A-Za-z0-9]{1,253}$", "a key has letters, digits, dots, dashes and underscores")
