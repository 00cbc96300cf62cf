from __future__ import annotations

from kube_api import api, cluster, clusters, pki, sandbox_api, space  # noqa: F401 - fixtures
