"""A delay in the path: a TCP proxy on loopback that holds every byte for half a round trip each way, and
counts round trips.

    python benchmarks/delay.py HOST:PORT MILLISECONDS    prints its port; each line on standard input is
    answered with the counts so far

A new connection costs its handshake: what is first sent on it waits a round trip more.
"""

from __future__ import annotations

import asyncio
import collections
import json
import sys
from typing import Any

MOST = 32 << 20  # bytes under way in one direction before its sender must wait
LEAST = 8 << 20


class Counts:
    """`connections`; `turns`: how often a client spoke after its server had; bytes each way."""

    def __init__(self) -> None:
        self.connections = self.turns = self.up = self.down = 0


class End(asyncio.Protocol):
    """One end of a connection; what arrives here leaves at `other`."""

    def __init__(self, delay: float, counts: Counts, *, client: bool) -> None:
        self.delay, self.counts, self.client = delay, counts, client
        self.other: End | None = None
        self.transport: Any = None
        self.held: collections.deque[bytes | None] = collections.deque()
        self.size = 0
        self.spoke = False
        self.blocked = False
        self.loop = asyncio.get_running_loop()

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._count(data)
        self.held.append(data)
        self.size += len(data)
        if self.size > MOST:
            self.transport.pause_reading()
        self.loop.call_later(self.delay, self._forward)

    def _count(self, data: bytes) -> None:
        assert self.other is not None
        if self.client:
            self.counts.up += len(data)
            self.counts.turns += not self.spoke
        else:
            self.counts.down += len(data)
        self.spoke, self.other.spoke = True, False

    def connection_lost(self, error: Exception | None) -> None:
        self.held.append(None)
        self.loop.call_later(self.delay, self._forward)

    def _forward(self) -> None:
        assert self.other is not None
        data = self.held.popleft()
        if data is None:
            if self.other.transport:
                self.other.transport.close()
            return
        self.size -= len(data)
        self.other.transport.write(data)
        self._resume()

    def _resume(self) -> None:
        if self.size < LEAST and not self.blocked and not self.transport.is_closing():
            self.transport.resume_reading()

    def pause_writing(self) -> None:
        assert self.other is not None
        self.other.blocked = True
        self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        assert self.other is not None
        self.other.blocked = False
        self.other._resume()  # noqa: SLF001 - the other end of the same connection


class Entry(End):
    """The client's end: its connection to the server is made a round trip after its own."""

    def __init__(self, target: tuple[str, int], delay: float, counts: Counts) -> None:
        super().__init__(delay, counts, client=True)
        self.target = target

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.counts.connections += 1
        transport.pause_reading()
        self.connecting = self.loop.create_task(self._connect())

    async def _connect(self) -> None:
        await asyncio.sleep(2 * self.delay)
        self.other = End(self.delay, self.counts, client=False)
        self.other.other = self
        try:
            await self.loop.create_connection(lambda: self.other, *self.target)  # type: ignore[arg-type,return-value]  # it was just set
        except OSError:
            self.transport.abort()
            return
        self.transport.resume_reading()


async def serve(target: tuple[str, int], delay: float) -> None:
    loop, counts = asyncio.get_running_loop(), Counts()
    server = await loop.create_server(lambda: Entry(target, delay, counts), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.readline():  # the end of its input is the end of it
        print(json.dumps(vars(counts)), flush=True)


if __name__ == "__main__":
    host, _, port = sys.argv[1].rpartition(":")
    asyncio.run(serve((host, int(port)), float(sys.argv[2]) / 2000))
