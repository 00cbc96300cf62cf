from __future__ import annotations

from file_server import files  # noqa: F401 - a fixture
