"""`bfinfra watch` on a real kube-apiserver, whose objects kubectl changes."""

from __future__ import annotations

import queue
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from peers.found import Peers
from peers.site_files import RUN_CONTEXT, all_are
from peers.sites import in_kubernetes

from bfinfra.app.listener import Listener
from bfinfra.app.sight import Sight
from bfinfra.app.watch import WatchOptions, watch
from bfinfra.model.stop import Stop

pytestmark = pytest.mark.peers


class Heard(Listener):
    def __init__(self) -> None:
        self.seen: queue.SimpleQueue[Sight] = queue.SimpleQueue()

    def report(self, sight: Sight) -> None:
        self.seen.put(sight)


SOON = 30  # seconds within which a report must come


def test_what_kubectl_changes_is_reported(peers: Peers, tmp_path: Path) -> None:
    with in_kubernetes(peers, tmp_path) as site:
        all_are(site.apply(), "done", "kept")
        heard = Heard()
        seen = heard.seen
        stop = Stop()
        stop.begin_writing()
        how = {"options": WatchOptions(interval=3600), "context": replace(RUN_CONTEXT, stop=stop)}
        running = threading.Thread(target=watch, args=(site.load(), heard), kwargs=how)
        running.start()
        space = site.given["namespace"]["training"]["namespace"]
        try:
            assert seen.get(timeout=SOON).report.found == ()
            peers.kubectl("label", "namespace", space, "team=somebody", "--overwrite")
            found = seen.get(timeout=SOON).report.found
            assert [(str(each.key), each.field) for each in found] == [("namespace/training", "labels.team")]
            peers.kubectl("label", "namespace", space, "team=a", "--overwrite")
            again = seen.get(timeout=SOON).report
            assert (again.found, len(again.ended)) == ((), 1)
        finally:
            stop.ask(15)
            running.join(SOON)
        assert not running.is_alive()
        all_are(site.apply(destroy=True), "done", "kept")
