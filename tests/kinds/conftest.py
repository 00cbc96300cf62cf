from __future__ import annotations

from file_server import files  # noqa: F401 - a fixture
from kube_api import api, clock, cluster, clusters, kubelet_folders, pki, sandbox_api, server_version, space  # noqa: F401 - fixtures
