"""What kinds on vCenter's machines share: the keys that are read of every machine, so that all of them share one read."""

from __future__ import annotations

MARK, SECRETS, SETTINGS = "bfinfra.mark", "bfinfra.secrets", "bfinfra.bitfusion"
OF_ALL = (MARK, SECRETS, SETTINGS)
"""The mark, the digests of a server's secrets, the mark of what is set for the Bitfusion plug-in."""
