"""A load of admin requests with a fixed number in flight, sent by our own asyncio client.

The requests are spread over a few connections to one broker, because Kafka processes the requests
of one connection one after another.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

from benchmarks.figure import Figure, percentile
from quorate.cli.nodes.node_process import loop_factory
from quorate.config.listeners import parse_servers
from quorate.quorum.clock import AsyncioClock
from quorate.quorum.protocol.apis import APIS, Api
from quorate.quorum.protocol.codec import decode, encode
from quorate.quorum.protocol.wire import Message
from quorate.quorum.rpc.kafka.client import ClientError, KafkaClient
from quorate.quorum.rpc.transport import AioTransport
from quorate.quorum.seams import Address

MAX_CONNECTIONS = 8

MakeRequest = Callable[[int], Message]
"""A function that makes a request from a number, which is new for each request."""
ErrorOf = Callable[[Message], str | None]
"""A function that returns the error of a response as text, or None."""


class LoadFailed(Exception):
    """A request was refused or its response was lost, so the figure would have no meaning."""


@dataclass(frozen=True, slots=True)
class Held:
    """The result of a load."""

    per_s: float
    """Responses per second."""
    taken_ms: list[float]
    """The time from each request to its response, in ms."""

    def figures(self, name: str, outstanding: int) -> list[Figure]:
        """Return the rate and two percentiles as figures."""
        limit = "fsyncs_per_s" if outstanding == 1 else None
        p50_ms, p99_ms = (percentile(self.taken_ms, share) for share in (0.5, 0.99))
        return [
            Figure(f"{name}, {outstanding} outstanding", self.per_s, "/s", limit, True),
            Figure(f"  p50, {outstanding}", p50_ms, "ms"),
            Figure(f"  p99, {outstanding}", p99_ms, "ms"),
        ]


class PipelinedLoad:
    """Keeps a number of requests in flight: every response sends the next request until the time is
    over.

    It runs once, on the event loop of its clients."""

    def __init__(self, api: Api, make: MakeRequest, error_of: ErrorOf, numbers: count[int]) -> None:
        self.taken_ms: list[float] = []
        self._api = api
        self._make = make
        self._error_of = error_of
        self._numbers = numbers
        self._end_s = 0.0
        self._outstanding = 0
        self._good = b""
        self._over: asyncio.Future[float]

    async def run(self, clients: list[KafkaClient], outstanding: int, seconds: float) -> Held:
        """Send requests for `seconds`, and return the result after the last response.

        At least `outstanding` requests are sent. Raise LoadFailed if a request fails."""
        self._over = asyncio.get_running_loop().create_future()
        begin_s = time.monotonic()
        self._end_s = begin_s + seconds
        self._outstanding = outstanding
        for index in range(outstanding):
            self._send(clients[index % len(clients)])
        end_s = await self._over
        return Held(len(self.taken_ms) / (end_s - begin_s), self.taken_ms)

    def _send(self, client: KafkaClient) -> None:
        version = client.version_of(self._api.key)
        body = encode(self._make(next(self._numbers)), version)
        sent_s = time.monotonic()

        def done(answer: memoryview | None, error: ClientError | None) -> None:
            if self._over.done():
                return
            failure = str(error) if answer is None else self._failure(version, answer)
            if failure is not None:
                self._over.set_exception(LoadFailed(failure))
                return
            now_s = time.monotonic()
            self.taken_ms.append((now_s - sent_s) * 1000)
            if now_s < self._end_s:
                self._send(client)
                return
            self._outstanding -= 1
            if not self._outstanding:
                self._over.set_result(now_s)

        client.send_raw(self._api, version, body, done=done)

    def _failure(self, version: int, answer: memoryview) -> str | None:
        """Return the error in a response, or None.

        A response that equals the last good one is not decoded, because the load shares the cores
        with the cluster under test.
        """
        if answer == self._good:
            return None
        failure = self._error_of(decode(self._api.response, version, answer))
        if failure is None:
            self._good = bytes(answer)
        return failure


def hold(
    bootstrap: str,
    api_key: int,
    make: MakeRequest,
    error_of: ErrorOf,
    *,
    outstanding: int,
    seconds: float,
    numbers: count[int],
) -> Held:
    """Run a load against the first bootstrap server, and return the result.

    `make` makes each request from the next of `numbers`. The load is that of `PipelinedLoad.run`,
    in a new event loop. Raise LoadFailed if a request fails, and the error of KafkaClient if the
    server cannot be reached."""

    async def measure() -> Held:
        host, port = parse_servers("bootstrap", bootstrap.split(","))[0]
        transport, clock = AioTransport(), AsyncioClock()
        clients = [
            await KafkaClient.connect(transport, clock, Address(host, port))
            for _ in range(min(outstanding, MAX_CONNECTIONS))
        ]
        try:
            for client in clients:
                await client.negotiate()
            load = PipelinedLoad(APIS[api_key], make, error_of, numbers)
            return await load.run(clients, outstanding, seconds)
        finally:
            for client in clients:
                client.close()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(measure())
