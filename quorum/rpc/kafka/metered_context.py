"""One request while quotas are set: its CPU is measured, and its client may be throttled.

The rules of Kafka (KIP-13, KIP-124, KIP-219):

- The response says for how many ms the client is throttled, and leaves immediately. The connection
  is not read for that time.
- The longest of the throttle times counts: that of the request's CPU, that of the bytes that were
  produced or fetched, and that which the active controller put into its response.
- A throttled Fetch gets a response without records, and its bytes do not count (KAFKA-6946).
  Unlike in Kafka, a client that has received nothing in all windows gets its records. A batch that
  is larger than the quota of all windows would otherwise never be sent.
- A Produce with acks=0 is not throttled for its CPU.

CPU that a request uses after its response, such as the rest of a slice, counts for the next one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ParamSpec

from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.protocol.layout import layout
from quorate.quorum.protocol.wire import Message
from quorate.quorum.quotas.client_quotas import PERCENT_PER_CPU_MS, ClientQuotas
from quorate.quorum.quotas.client_rates import ClientRates
from quorate.quorum.rpc.kafka.context import RequestConnection, RequestContext
from quorate.quorum.rpc.kafka.server_state import Route
from quorate.quorum.seams import Buffer

P = ParamSpec("P")
UNDECIDED = -1
_INT32 = struct.Struct(">i")
Withhold = Callable[[int], Sequence[Buffer]]
"""Takes back a response to a Fetch, and returns the body without records that replaces it. Takes
the throttle time in ms."""


class MeteredContext(RequestContext):
    """A request whose client may have quotas.

    `body_bytes` is the size of the body of a Produce. `full_fetch` is True for a Fetch that does
    not continue a session. `withhold` is set before the response to a Fetch."""

    __slots__ = (
        "_quotas",
        "_routes",
        "_since_ms",
        "_sliced",
        "_spent_ms",
        "_throttle_ms",
        "body_bytes",
        "full_fetch",
        "withhold",
    )

    def __init__(
        self,
        quotas: ClientQuotas,
        routes: Mapping[int, Route],
        connection: RequestConnection,
        api_key: int,
        version: int,
        correlation_id: int,
    ) -> None:
        """Create the context of a request that has just arrived, and begin to measure its CPU."""
        super().__init__(connection, api_key, version, correlation_id)
        self._quotas = quotas
        self._routes = routes
        # None while others run, and while no quota bounds the CPU
        self._since_ms: float | None = connection.clock.cpu_ms() if quotas.request.enabled else None
        self._spent_ms = 0.0  # CPU that no quota has counted yet
        self._sliced = False
        self._throttle_ms = UNDECIDED
        self.body_bytes = 0
        self.full_fetch = False
        self.withhold: Withhold | None = None

    # --- CPU

    def runs_in_slices(self) -> None:
        """Note that the scheduler reports the CPU from now on (`used_cpu`)."""
        self._sliced = True
        self._stop()

    def handled(self) -> None:
        """Note that the handler has returned."""
        if not self._sliced:
            self._stop()
            self._count_late()

    def used_cpu(self, cpu_ms: float) -> None:
        """Count `cpu_ms` of CPU that a slice of the request has used."""
        self._spent_ms += cpu_ms
        self._count_late()

    def callback(self, function: Callable[P, None]) -> Callable[P, None]:
        """Return `function` wrapped in the boundary. Its CPU counts for this request."""
        inner = super().callback(function)

        def call(*args: P.args, **kwargs: P.kwargs) -> None:
            if self._since_ms is not None or not self._quotas.request.enabled:
                inner(*args, **kwargs)  # the handler calls it, or no CPU is measured
                return
            self._since_ms = self.connection.clock.cpu_ms()
            try:
                inner(*args, **kwargs)
            finally:
                self._stop()
                self._count_late()

        return call

    def _stop(self) -> None:
        if self._since_ms is not None:
            self._spent_ms += self.connection.clock.cpu_ms() - self._since_ms
            self._since_ms = None

    def _take_percent(self) -> float:
        """Return the CPU that no quota has counted yet, in percent of a second."""
        if self._since_ms is not None:
            now_ms = self.connection.clock.cpu_ms()
            self._spent_ms += now_ms - self._since_ms
            self._since_ms = now_ms
        spent_ms, self._spent_ms = self._spent_ms, 0.0
        return spent_ms * PERCENT_PER_CPU_MS

    def _count_late(self) -> None:
        """Count the CPU that was used after the response."""
        if self._throttle_ms != UNDECIDED and self._spent_ms:
            now_ms = self.connection.clock.now_ms()
            self._quotas.request.add(self._client, self._take_percent(), now_ms, self._user)

    # --- throttle times

    @property
    def _client(self) -> str:
        return self.client_id or ""

    @property
    def _user(self) -> str:
        return self.principal.name

    def produced(self) -> int:
        """Count the bytes of this Produce. Return the time in ms for which its client must be
        throttled for them and for the CPU."""
        return self._decide(*self._bytes_produced())

    def produced_without_response(self) -> None:
        """Count the bytes of this Produce with acks=0."""
        rates, own_ms = self._bytes_produced()
        self._throttle_ms = own_ms
        if own_ms:
            rates.note_throttled(self._client, own_ms, self.connection.clock.now_ms(), self._user)

    def _bytes_produced(self) -> tuple[ClientRates, int]:
        rates = self._quotas.produce
        now_ms = self.connection.clock.now_ms()
        return rates, rates.record(self._client, self.body_bytes, now_ms, self._user)

    def _decide(self, rates: ClientRates | None, own_ms: int) -> int:
        """Return the throttle time of the request: that of its CPU, or `own_ms` if it is longer.
        `rates` are those that `own_ms` comes from, or None if another node measured them."""
        now_ms = self.connection.clock.now_ms()
        request, cpu_ms = self._quotas.request, 0
        if request.enabled:
            cpu_ms = request.record(self._client, self._take_percent(), now_ms, self._user)
        self._throttle_ms = max(own_ms, cpu_ms)
        longest = rates if own_ms > cpu_ms else request
        if self._throttle_ms and longest is not None:
            longest.note_throttled(self._client, self._throttle_ms, now_ms, self._user)
        return self._throttle_ms

    # --- answers

    def respond(self, response: Message) -> None:
        """Answer with `response` and the throttle time."""
        super().respond(self._throttled(response))

    def respond_steps(self, response: Message) -> IncrementalWork[None]:
        """Answer like `respond`, but encode in steps."""
        yield from super().respond_steps(self._throttled(response))

    def respond_raw(self, *body: Buffer) -> None:
        """Answer with the encoded parts of the body, and with the throttle time if the body begins
        with one."""
        if self._throttle_ms == UNDECIDED:
            body = self._fetched(body) if self.withhold is not None else self._throttled_raw(body)
        super().respond_raw(*body)

    def _throttled(self, response: Any) -> Message:
        if self._throttle_ms == UNDECIDED:
            delay_ms = self._decide(None, 0)
            if delay_ms and hasattr(response, "throttle_time_ms"):
                response = replace(response, throttle_time_ms=delay_ms)
        message: Message = response
        return message

    def _throttled_raw(self, body: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
        if not begins_with_throttle_time(self.api_key, self.version) or len(body[0]) < _INT32.size:
            self._decide(None, 0)
            return body
        (own_ms,) = _INT32.unpack_from(body[0])
        delay_ms = self._decide(None, own_ms)
        if delay_ms == own_ms:
            return body
        return self._with_throttle_time(delay_ms, body)

    def _fetched(self, body: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
        """Count the bytes of a response to a Fetch. If its client must be throttled, withhold
        them, unless it has received nothing in all windows."""
        assert self.withhold is not None
        rates, now_ms = self._quotas.fetch, self.connection.clock.now_ms()
        size_bytes = sum(map(len, body))
        unused = rates.is_unused(self._client, now_ms, self._user)
        own_ms = rates.record(self._client, size_bytes, now_ms, self._user)
        delay_ms = self._decide(rates, own_ms)
        if not delay_ms:
            return body
        if unused and delay_ms == own_ms:
            return self._with_throttle_time(delay_ms, body)
        rates.add(self._client, -size_bytes, now_ms, self._user)
        return tuple(self.withhold(delay_ms))

    def _with_throttle_time(self, delay_ms: int, body: tuple[Buffer, ...]) -> tuple[Buffer, ...]:
        """Return a body that begins with a throttle time, with `delay_ms` instead."""
        return _INT32.pack(delay_ms), memoryview(body[0])[_INT32.size :], *body[1:]

    def _answered(self, *parts: Buffer) -> None:
        super()._answered(*parts)
        if self._throttle_ms > 0:
            self._routes[self.api_key].times.throttled(self._throttle_ms)
            self.connection.pause_reading_for(self._throttle_ms)


@cache
def begins_with_throttle_time(api_key: int, version: int) -> bool:
    """Return True if the first field of the response is the throttle time."""
    api = APIS[ApiKey(api_key)]
    plain = layout(api.response, version, version >= api.flexible_since).plain
    return bool(plain) and plain[0].name == "throttle_time_ms"
