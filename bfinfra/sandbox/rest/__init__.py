"""vCenter's REST API (vAPI JSON) over the same inventory and sessions as SOAP."""

from bfinfra.sandbox.rest.filled import FilledRestState
from bfinfra.sandbox.rest.handler import rest_handler
from bfinfra.sandbox.rest.items import content_handler
from bfinfra.sandbox.rest.state import RestState

__all__ = ["FilledRestState", "RestState", "content_handler", "rest_handler"]
