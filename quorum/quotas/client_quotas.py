"""The quotas that bound the clients of one port: bytes produced, bytes consumed, and CPU.

`request_percentage` is a share of the node's event loop, which is one thread: 50 means half of it.
"""

from __future__ import annotations

from quorate.quorum.quotas.client_rates import ClientRates
from quorate.quorum.quotas.matching import Quotas, has_key
from quorate.quorum.quotas.sampled_rate import Windows

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
KEYS = frozenset(
    {PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, CONTROLLER_MUTATION_RATE}
)
"""The quotas for which a port must meter its requests. The active controller measures mutations,
and the port that the client is connected to throttles it."""
MAX_BYTES = 2**31 - 1
"""The largest size that a Fetch can ask for."""
PERCENT_PER_CPU_MS = 0.1
"""One ms of CPU, in percent of a second."""


class ClientQuotas:
    """The rates of a node's clients. All its client ports share them. The event loop owns it.

    `enabled` is True while at least one entity has one of the quotas KEYS."""

    def __init__(self, windows: Windows) -> None:
        """Create rates without any quota."""
        self.produce = ClientRates(PRODUCER_BYTE_RATE, windows)
        self.fetch = ClientRates(CONSUMER_BYTE_RATE, windows)
        self.request = ClientRates(REQUEST_PERCENTAGE, windows, windows.size_ms)
        self.enabled = False
        self._windows = windows

    @property
    def rates(self) -> tuple[ClientRates, ...]:
        """Return the rates that this node measures."""
        return self.produce, self.fetch, self.request

    def configure(self, quotas: Quotas) -> None:
        """Apply the client quotas of an image. The cost grows with the number of entities."""
        self.enabled = has_key(quotas, KEYS)
        for rates in self.rates:
            rates.configure(quotas)

    def max_fetch_bytes(self, client_id: str, now_ms: int, user: str) -> int | None:
        """Return the largest size of a response to a Fetch of a client, or None without a quota.

        A larger response would exceed the quota for longer than all windows, and the client would
        never receive it (KAFKA-9677)."""
        bound = self.fetch.bound(client_id, now_ms, user)
        if bound is None:
            return None
        windows = self._windows
        return int(min(MAX_BYTES, bound * (windows.count - 1) * windows.size_ms / 1000))
