"""Maps a group to its partition of __consumer_offsets, as Kafka does."""

from __future__ import annotations


def partition_of(group_id: str, partition_count: int) -> int:
    """Return the partition that stores the group, as Kafka does.

    It is the absolute value of Java's hash of the group id, modulo the number of partitions. The
    hash -2**31 has no absolute value in Java and counts as 0."""
    value = java_hash(group_id)
    return (0 if value == -(1 << 31) else abs(value)) % partition_count


def java_hash(text: str) -> int:
    """Return Java's `String.hashCode()`: computed over UTF-16 code units, as a signed 32-bit
    integer."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value
