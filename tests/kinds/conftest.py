from __future__ import annotations

from file_server import files  # noqa: F401 - a fixture
from kube_api import api, cluster, clusters, pki, sandbox_api, space  # noqa: F401 - fixtures
