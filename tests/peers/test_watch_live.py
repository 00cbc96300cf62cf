"""`bfinfra watch` on a real kube-apiserver, whose objects kubectl changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from heard import following
from peers.found import Peers
from peers.site_files import RUN_CONTEXT, all_are
from peers.sites import in_kubernetes

pytestmark = pytest.mark.peers


def test_what_kubectl_changes_is_reported(peers: Peers, tmp_path: Path) -> None:
    with in_kubernetes(peers, tmp_path) as site:
        all_are(site.apply(), "done", "kept")
        space = site.given["namespace"]["training"]["namespace"]
        with following(site.load(), RUN_CONTEXT) as heard:
            assert heard.next().report.found == ()
            peers.kubectl("label", "namespace", space, "team=somebody", "--overwrite")
            found = heard.next().report.found
            assert [(str(each.key), each.field) for each in found] == [("namespace/training", "labels.team")]
            peers.kubectl("label", "namespace", space, "team=a", "--overwrite")
            again = heard.next().report
            assert (again.found, len(again.ended)) == ((), 1)
        all_are(site.apply(destroy=True), "done", "kept")
