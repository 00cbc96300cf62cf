"""Name rules of the systems that bfinfra manages. A Spec uses the pair that fits."""

from __future__ import annotations

from typing import Annotated

from pydantic import StringConstraints

DNS_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
DNS_LABEL_RULE = (
    "lower-case letters, digits and dashes, with a letter or digit at both ends, at most 63 characters"
)
DNS_NAME = r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
DNS_NAME_RULE = "lower-case letters, digits, dashes and dots, at most 253 characters"
VCENTER_NAME = r"[^\s/]{1,80}"
VCENTER_NAME_RULE = "no blanks and no slash, at most 80 characters"
TITLE = r"(?=.{1,80}$)[^\s/]+( +[^\s/]+)*"
TITLE_RULE = "no slash, blanks between words only, at most 80 characters"
LABEL_VALUE = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
LABEL_VALUE_RULE = (
    "letters, digits, dashes, underscores and dots, with a letter or digit at both ends, at most 63 "
    "characters"
)

ImageName = Annotated[
    str,
    StringConstraints(
        pattern=r"^[a-z0-9][a-z0-9._-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?$"
    ),
]
"""Name and tag of a container image."""


def storage_class(policy: str) -> str:
    """The storage class that a supervisor makes for a storage policy: `vSAN Default Storage Policy` →
    `vsan-default-storage-policy`.
    """
    return "".join(each if each.isalnum() or each in "-." else "-" for each in policy.lower()).strip("-.")
