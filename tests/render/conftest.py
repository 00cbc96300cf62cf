"""The samples as fixtures; they lie in a module of their own because every folder's conftest bears the same
name.
"""

from __future__ import annotations

from render_samples import broken, events, outcome, plan

__all__ = ["broken", "events", "outcome", "plan"]
