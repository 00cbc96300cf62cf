from __future__ import annotations

from bad_input.desk import desk  # noqa: F401 - a fixture
