"""The numbers of a follower's fetchers from one source broker (num.replica.fetchers).

A partition belongs to the fetcher that the hash of its name gives, as in Kafka. Each fetcher has
its own connection and its own fetch session at the source. The client id names the fetcher.
"""

from __future__ import annotations

from functools import lru_cache

MAX_FETCHERS = 1024
"""Maximum number of fetchers of one follower at one source broker. Kafka has no bound."""


def java_hash(text: str) -> int:
    """Return the String.hashCode of Java for a text without characters above U+FFFF."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def fetcher_of(topic: str, partition_id: int, fetchers: int) -> int:
    """Return the number of the fetcher of a partition, from 0 to `fetchers` - 1
    (AbstractFetcherManager.getFetcherId)."""
    if fetchers == 1:
        return 0
    value = (31 * java_hash(topic) + partition_id) & 0xFFFFFFFF
    if value >= 1 << 31:
        # Java's absolute value of the smallest int is negative; Kafka replaces it by 0.
        value = (1 << 32) - value if value > 1 << 31 else 0
    return value % fetchers


def client_id_of(broker_id: int, fetcher: int) -> str:
    """Return the client id of a follower's fetcher, as Kafka names it."""
    return f"broker-{broker_id}-fetcher-{fetcher}"


@lru_cache(MAX_FETCHERS)  # it is needed for each fetch
def fetcher_in(client_id: str | None) -> int | None:
    """Return the number of the fetcher that a client id names, or None if it is MAX_FETCHERS or
    more. A client id without a number names fetcher 0."""
    digits = (client_id or "").rpartition("-")[2]
    if not (digits.isascii() and digits.isdigit()):
        return 0
    return int(digits) if len(digits) <= 4 and int(digits) < MAX_FETCHERS else None
