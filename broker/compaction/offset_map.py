"""The latest offset of each key in the dirty part of a log, within a bound of memory.

A long key is known by its 16-byte digest, so the memory does not depend on the size of the keys.
Kafka uses MD5. Here the digest is BLAKE2b, because a producer can construct two keys with equal MD5
and so remove another producer's records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from quorate.quorum.seams import Buffer

ENTRY_BYTES = 200
"""The memory of one entry: digest, offset, and the table at its least density, measured with
CPython. Kafka needs 24 bytes, so the same buffer holds fewer keys here."""
KEYS_PER_STEP = 256
"""Keys of a batch that one step of a commit takes, in a twentieth of a millisecond."""
NO_OFFSET = -1
DIGEST_BYTES = 16


def digest_of(key: Buffer) -> bytes:
    """Return the bytes by which the map knows `key`: a digest of DIGEST_BYTES, or a shorter key
    itself. No two keys of these lengths are equal, so a short key is never taken for another."""
    if len(key) < DIGEST_BYTES:
        return bytes(key)
    return blake2b(key, digest_size=DIGEST_BYTES).digest()


class OffsetMap:
    """The latest offset of each key, up to `capacity` keys.

    Invariant: the map has the latest offset of every key of the dirty records up to
    `latest_offset`. The keys of a batch are not among them until `commit`, because the batch may
    turn out to be unreadable behind its first records. One cleaning owns the map.
    """

    def __init__(self, memory_bytes: int, load_factor: float) -> None:
        """Begin empty. The map may use `memory_bytes` times `load_factor`."""
        self.capacity = max(1, int(memory_bytes / ENTRY_BYTES * load_factor))
        self.latest_offset = NO_OFFSET
        """The offset of the last record that was looked at, or NO_OFFSET."""
        self._offsets: dict[bytes, int] = {}
        self._batch: dict[bytes, int] = {}
        """The latest offset of each key of the current batch."""
        self._room = self.capacity
        """The number of new keys that the map can still take."""

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: Buffer, offset: int) -> bool:
        """Note, for `commit`, that the record at `offset` has `key`. Offsets must rise.

        Return False, and note nothing, if the key is new and the map is full."""
        return self.put_all(((key, offset),)) == 1

    def put_all(self, keys: Iterable[tuple[Buffer | None, int]]) -> int:
        """Note, for `commit`, the (key, offset) of consecutive records. A record without a key
        needs no place. Return the number of records that were noted: all of them, or those before
        the first one for which the map has no room."""
        offsets, batch = self._offsets, self._batch
        taken = 0
        for key, offset in keys:
            if key is not None:
                digest = bytes(key) if len(key) < DIGEST_BYTES else digest_of(key)
                if digest not in batch and digest not in offsets:
                    if not self._room:
                        break
                    self._room -= 1
                batch[digest] = offset
            taken += 1
        return taken

    def commit_some(self) -> bool:
        """Take up to KEYS_PER_STEP keys of the current batch, of which no record is unreadable.
        Return True if there are more. `commit` must follow, because `latest_offset` stays."""
        offsets, batch = self._offsets, self._batch
        for _ in range(min(KEYS_PER_STEP, len(batch))):
            digest, offset = batch.popitem()
            offsets[digest] = offset
        return bool(batch)

    def commit(self, offset: int) -> None:
        """Take the keys of the current batch, which was looked at up to `offset`, inclusive."""
        while self.commit_some():
            pass
        self.pass_over(offset)

    def discard(self) -> None:
        """Remove the keys of the current batch."""
        self._batch.clear()
        self._room = self.capacity - len(self._offsets)

    def pass_over(self, offset: int) -> None:
        """Note that everything up to `offset`, inclusive, was looked at."""
        self.latest_offset = max(self.latest_offset, offset)

    @property
    def known(self) -> Mapping[bytes, int]:
        """The latest offset of each committed key, by `digest_of` the key."""
        return self._offsets

    def offset_of(self, key: Buffer) -> int:
        """Return the latest offset of `key`, or NO_OFFSET if the map does not have it."""
        return self._offsets.get(digest_of(key), NO_OFFSET)
