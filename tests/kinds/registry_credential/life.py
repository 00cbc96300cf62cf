"""How the tests of printed rights change it."""

from __future__ import annotations

from rights.life import Life
from rights.others import overwrite_secrets

LIFE = Life(drifts=(overwrite_secrets,))
