"""What kinds on vCenter's machines share: the keys of bfinfra's notes, and those that are read of every machine, so that all of them share one read."""

from __future__ import annotations

MARK, SECRETS, SETTINGS, IMPORTING = "bfinfra.mark", "bfinfra.secrets", "bfinfra.bitfusion", "bfinfra.importing"
"""`IMPORTING`: who makes it of several parts, until it is whole."""
OF_ALL = (MARK, SECRETS, SETTINGS)
"""The mark, the digests of a server's secrets, the mark of what is set for the Bitfusion plug-in."""
