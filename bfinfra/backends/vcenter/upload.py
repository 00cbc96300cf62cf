"""Uploads an import's files to the addresses of its lease, with constant memory. An interrupted file is sent
again within the same lease.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO

import httpx2

from bfinfra.backends.transport import Transport
from bfinfra.backends.vcenter import faults
from bfinfra.backends.vcenter.keepalive import KeepAlive
from bfinfra.backends.words import safe
from bfinfra.model import waits
from bfinfra.model.errors import Busy, Rejected, RemoteError, Unanswered, Unreachable
from bfinfra.model.trust import Trust
from bfinfra.model.waits import Wait

BLOCK = 1 << 20  # bytes read and sent at a time
UPLOADING = 24 * 3600.0  # seconds for all files of an import
TIMES = 4  # attempts for each file before the import is given up
PAUSE = 1.0  # seconds before a file is sent again, doubled each time
PASSING = (Unreachable, Busy, Unanswered)
"""Errors after which a file is sent again: it overwrites the partial one, so nothing exists twice."""
WAIT = httpx2.Timeout(120, connect=10)  # seconds for one read or write, not for the whole upload
VMDK = "application/x-vnd.vmware-streamVmdk"
Item = Any
"""vim.OvfManager.FileItem."""
Open = Callable[[str], BinaryIO]
Report = Callable[[int, int], None]


class Upload:
    """The files of one import. `report` gets bytes sent and bytes in all; it falls by what is sent again."""

    def __init__(
        self,
        transport: Transport,
        trust: Callable[[httpx2.URL], Trust],
        alive: KeepAlive,
        report: Report,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._transport, self._trust, self._alive, self._report, self._headers = (
            transport,
            trust,
            alive,
            report,
            dict(headers or {}),
        )

    def run(
        self, items: Sequence[Item], urls: Sequence[httpx2.URL], sizes: Mapping[str, int], source: Open
    ) -> None:
        """Upload all files, in the order of the items. Raises RemoteError, StillRunning too: then the lease
        is of no more use.
        """
        total, sent = sum(sizes[item.path] for item in items), 0
        wait = Wait("the upload", UPLOADING)
        for item, url in zip(items, urls, strict=True):

            def on_block(done: int, before: int = sent) -> None:
                self._alive.percent = 100 * (before + done) // max(total, 1)
                self._alive.check()
                wait.check(f"{before + done} of {total} bytes are sent")
                self._report(before + done, total)

            self._whole(item, url, sizes[item.path], source, on_block)
            sent += sizes[item.path]

    def _whole(
        self, item: Item, url: httpx2.URL, size: int, source: Open, on_block: Callable[[int], None]
    ) -> None:
        for again in range(1, TIMES + 1):
            try:
                self._send(item, url, size, source, on_block)
                break
            except PASSING as error:
                if again == TIMES:
                    raise
                on_block(0)
                self._alive.wait(min(_asked(error) or PAUSE * 2 ** (again - 1), waits.left()))

    def _send(
        self, item: Item, url: httpx2.URL, size: int, source: Open, on_block: Callable[[int], None]
    ) -> None:
        origin = f"https://{url.host}:{url.port or 443}"
        with source(item.path) as stream, self._transport.client(origin, self._trust(url)) as http:
            headers = {"Content-Type": VMDK, "Content-Length": str(size), "Overwrite": "t", **self._headers}
            answer = http.request(
                "PUT" if item.create else "POST",
                url,
                content=_blocks(stream, item.path, size, on_block),
                headers=headers,
                timeout=WAIT,
            )
        if not answer.is_success:
            raise faults.of_answer(
                answer, f"the upload of {safe(item.path)} failed", f"{url.host}:{url.port or 443}"
            )


def _asked(error: RemoteError) -> float | None:
    return error.retry_after if isinstance(error, Busy) else None


def _blocks(stream: BinaryIO, name: str, size: int, on_block: Callable[[int], None]) -> Iterator[bytes]:
    """Block by block; a thread reads and hashes the next one while one is encrypted and sent."""
    done = 0
    with ThreadPoolExecutor(1, thread_name_prefix="read") as background:
        following = background.submit(stream.read, BLOCK)
        while block := following.result():
            following = background.submit(stream.read, BLOCK)
            yield block
            done += len(block)
            on_block(done)
    if done != size:
        raise Rejected(
            f"{safe(name)} can't be sent",
            why=f"it ended after {done} of {size} bytes",
            next="check whether somebody changes the file",
        )
