"""The quota `connection_creation_rate`: connections per second of one IP address (KIP-612).

A connection that exceeds it is refused, and does not count.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, ip_address

from quorate.quorum.quotas.matching import IP, Quotas, has_key, is_usable
from quorate.quorum.quotas.sampled_rate import SampledRate, Windows, throttle_ms
from quorate.quorum.quotas.tracked import Tracked

CONNECTION_CREATION_RATE = "connection_creation_rate"
KEYS = frozenset({CONNECTION_CREATION_RATE})
Addresses = Tracked[str, SampledRate]


class ConnectionRates:
    """The new connections of each address. The event loop owns it.

    `throttled` and `throttled_ms` count the refused connections and the sum of their delays."""

    def __init__(self, windows: Windows) -> None:
        """Create rates without any quota."""
        self.enabled = False
        self.throttled = self.throttled_ms = 0
        self._windows = windows
        self._bounds: dict[str | None, float] = {}  # None is the default of all addresses
        self._rates: Addresses = Tracked()

    def configure(self, quotas: Quotas) -> None:
        """Apply the client quotas of an image. The histories stay."""
        self.enabled = has_key(quotas, KEYS)
        self._bounds = {}
        for entity, each in quotas.items():
            ((kind, name), *_) = entity
            bound = each.get(CONNECTION_CREATION_RATE)
            if kind == IP and bound is not None and is_usable(bound):
                self._bounds[None if name is None else same_address(name)] = bound

    def record(self, host: str, now_ms: int) -> int:
        """Count a new connection from `host`. Return 0 if it is accepted, or the time in ms after
        which it must be closed."""
        address = same_address(host)
        bound = self._bounds.get(address, self._bounds.get(None))
        if bound is None:
            return 0
        rates = self._rates.use(address, now_ms)
        if rates is None:
            rates = self._rates.add(address, SampledRate(self._windows), now_ms)
        rates.record(1, now_ms)
        rate, window_ms = rates.measure(now_ms)
        delay_ms = min(throttle_ms(rate, bound, window_ms), self._windows.size_ms)
        if rate > bound:
            rates.record(-1, now_ms)
            self.throttled += 1
            self.throttled_ms += delay_ms
            return max(1, delay_ms)
        return 0


@lru_cache(maxsize=1024)
def same_address(host: str) -> str:
    """Return the canonical form of an address. An IPv4 address that is mapped into IPv6 is the IPv4
    address. Any other text is returned as it is."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
