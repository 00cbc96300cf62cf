"""vCenter's REST API (vAPI JSON) over the same inventory and sessions as SOAP."""

from bfinfra.sandbox.rest.door import rest_door
from bfinfra.sandbox.rest.filled import FilledRestState
from bfinfra.sandbox.rest.items import content_door
from bfinfra.sandbox.rest.state import RestState

__all__ = ["FilledRestState", "RestState", "content_door", "rest_door"]
