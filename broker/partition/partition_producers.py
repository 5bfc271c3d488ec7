"""The producer states of one replica, which may have to be rebuilt from the log.

The states follow from the log alone. They are unknown after a start without a usable snapshot, and
after a truncation that removed every known batch of a producer. The log is then read again, which
takes seconds for each gigabyte. The disk's thread reads it in steps, and the event loop goes on
(`broker/replication/partitions/producer_loader.py`).

| while the states are unknown    | the replica                                                  |
|---------------------------------|--------------------------------------------------------------|
| a client's idempotent batch     | raises ProducersNotLoaded: the batch waits for the load      |
| a batch from the leader         | is appended, and sets `wanted`, so that a load begins        |
|   during a load                 | is appended; its header is noted for the end of the load     |
| a truncation                    | makes the load start again                                   |

Invariant: loaded states take into account every idempotent batch of the log.
"""

from __future__ import annotations

from quorate.broker.partition.producer_state import ProducerStates
from quorate.quorum.log.batches.batch import BatchHeader

MAX_NOTED = 10_000
"""Maximum number of batches that are noted during a load. If there are more, the load reads them
from the log."""


class ProducersNotLoaded(Exception):
    """The producer states must be loaded before a client's idempotent batch can be checked."""


class PartitionProducers:
    """The producer states of one replica, or the progress of their load. The event loop owns
    them."""

    __slots__ = ("_noted", "_overflowed", "loaded", "wanted")

    def __init__(self, states: ProducerStates | None) -> None:
        """Begin with `states`, or without them if `states` is None."""
        self.loaded = states
        self.wanted = False
        """True if an idempotent batch was appended while the states were unknown and no load has
        begun since. The caller then starts a load."""
        self._noted: list[BatchHeader] | None = None  # since the load in progress began
        self._overflowed = False

    def required(self) -> ProducerStates:
        """Return the states. Raise ProducersNotLoaded if they are unknown."""
        if self.loaded is None:
            raise ProducersNotLoaded
        return self.loaded

    def append(self, header: BatchHeader) -> None:
        """Note an idempotent batch that is in the log now, with its final offsets."""
        if self.loaded is not None:
            self.loaded.append(header)
        elif self._noted is None:
            self.wanted = True
        elif len(self._noted) < MAX_NOTED:
            self._noted.append(header)
        else:
            self._overflowed = True

    def truncate_to(self, offset: int) -> None:
        """Remove the batches that end at or above `offset`. The states become unknown if this
        removes all known batches of a producer. A load in progress is void."""
        self._stop_load()
        if self.loaded is not None and not self.loaded.truncate_to(offset):
            self.loaded = None

    def reset(self) -> None:
        """Begin without producers, because the log is empty. A load in progress is void."""
        self._stop_load()
        self.loaded = ProducerStates()

    def begin_load(self) -> None:
        """Note every batch from now on. The load reads what is in the log at this moment."""
        assert self.loaded is None, "the states are known"
        self.wanted, self._overflowed, self._noted = False, False, []

    def finish_load(self, states: ProducerStates) -> bool:
        """Take `states`, which were read from the log, and the batches noted since `begin_load`.
        Return True if the states are known now.

        Return False if too many batches were appended meanwhile. The load must then read on from
        the log end of the last `begin_load`, into the same `states`. Do not call it for a load that
        a truncation has made void."""
        assert self._noted is not None, "no load is in progress"
        noted, overflowed = self._noted, self._overflowed
        self._stop_load()
        if overflowed:
            return False
        states.rebuild(noted)
        self.loaded = states
        return True

    def _stop_load(self) -> None:
        self.wanted, self._overflowed, self._noted = False, False, None
