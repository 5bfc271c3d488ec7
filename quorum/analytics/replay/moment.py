"""The state of the whole cluster at one offset or time of its history.

The metadata log is replayed in this process, without Spark. The replay begins at the nearest
snapshot, and reads nothing before it or after the moment. A record takes effect unless it is part
of an aborted or unfinished metadata transaction (KIP-868). Nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from quorate.quorum.analytics.log.damage import CONTRADICTION, Damage, Found, refuse
from quorate.quorum.analytics.log.errors import DamagedLog, OutOfHistory
from quorate.quorum.analytics.log.forward import forward, log_from, pieces
from quorate.quorum.analytics.log.leaders import election_of
from quorate.quorum.analytics.log.seek import last_batch
from quorate.quorum.analytics.log.segments import log_start_offset, metadata_dir
from quorate.quorum.analytics.log.text import clock
from quorate.quorum.analytics.log.walk import Logged, logged, never, settled_around, walk
from quorate.quorum.analytics.replay.starts import last_timestamp_ms, starts
from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.files.errors import LogError
from quorate.quorum.metadata.errors import MetadataError, ReplayError
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.record_text import type_name
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.metadata.replay import REPLAY, replay
from quorate.quorum.protocol.varint import DecodeError
from quorate.quorum.raft.control_records import LeaderChangeMessage, VotersRecord

REPLAYED_AT_ONCE = 10_000
"""The maximum number of records that are held before they are replayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The topics, partitions of these topics, and brokers that are shown (`part.py`). () means no
    restriction."""

    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    brokers: tuple[int, ...] = ()

    def text(self) -> str:
        """Return the restrictions for people, or "" if there are none."""
        named = {"topics": self.topics, "partitions": self.partitions, "brokers": self.brokers}
        return ", ".join(f"{name} {', '.join(map(str, of))}" for name, of in named.items() if of)


WHOLE = Part()
"""The part without restrictions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """The state of the cluster after the record at `offset`."""

    offset: int
    """The offset that the caller of `moment` named. If it named none, the offset of the last record
    that took effect."""
    epoch: int
    """The epoch of the last record that took effect, even if `offset` is that of a later
    record."""
    timestamp_ms: int
    """The wall time of the last record that took effect, in ms since 1970. If the replay ended with
    a snapshot, it is the time of the last record that the snapshot covers."""
    leader: int | None
    """The leader of the quorum, or None if the history begins after its election."""
    voters: tuple[int, ...]
    """The sorted ids of the voters, or () if the history names none."""
    image: MetadataImage
    skipped: dict[str, int]
    """The number of records of each type that the image does not represent.

    These are ACLs, delegation tokens, and types of a newer Kafka."""
    part: Part = WHOLE
    """The part of the cluster that `image` contains."""


def moment(
    directory: Path | str,
    *,
    offset: int | None = None,
    time_ms: int | None = None,
    found: Found = refuse,
) -> Moment:
    """Return the cluster after the record at `offset`, or at the time `time_ms`. Without either,
    return the cluster at the end of the log.

    `time_ms` is in ms since 1970. The replay ends before the first record with a later timestamp
    behind the snapshot that it begins with (`starts.py`). A time after the end of the log means its
    end. If both arguments are given, `time_ms` is ignored. The call blocks while it reads. If a
    snapshot is damaged, the replay begins at an older one, or at the beginning of the log.

    Errors:

    - OutOfHistory: the log is empty, it ends before `offset`, or its first record is later than
      `offset` or `time_ms`.
    - OutOfHistory: older segments were deleted, their snapshot is missing, and a record changes an
      object of the snapshot. If no record does, the missing snapshot is not noticed, and the image
      lacks its objects.
    - NoMetadataLog: the directory holds no metadata log.
    - DamagedLog: bytes of the log that are not its torn end cannot be read.
    - MalformedRecord, DecodeError or CorruptBatch: a record cannot be decoded (`walk.py`).

    If `found` is given, it takes all damage in place of these errors, and the replay leaves out
    records that contradict the state before them. The result may then be wrong."""
    partition_dir = metadata_dir(str(directory))
    try:
        state = _from_a_snapshot(partition_dir, offset, time_ms, found)
        state = _up_to(partition_dir, state, _past(offset, time_ms), found)
        if state.last is None:
            raise OutOfHistory(f"{directory}: the history begins later: {_first(directory)}")
        if offset is not None and state.last.offset < offset:
            _refuse_beyond_the_end(partition_dir, offset)
        return state.at(state.last.offset if offset is None else offset)
    except ReplayError as error:
        raise OutOfHistory(
            f"{directory}: the log begins at offset {log_start_offset(partition_dir)} and the "
            f"snapshot that it stands on is missing ({error})"
        ) from None


def _from_a_snapshot(
    directory: Path, offset: int | None, time_ms: int | None, found: Found
) -> _Replay | None:
    """Return the state of the nearest sound snapshot, or None if the log must be replayed whole."""
    for piece in starts(directory, offset, time_ms):
        assert piece.snapshot is not None
        state = _Replay()
        try:
            if election := election_of(directory, piece.snapshot.epoch):
                state.leader, state.voters = election.message.leader_id, _ids(election.message)
            state.take_all(logged(pieces(piece)))
            state.replay()
            state.found = found
        except (DamagedLog, LogError, MetadataError, DecodeError):
            continue
        if state.last is not None:
            # The records of a snapshot have the time at which it was written.
            state.last = replace(state.last, timestamp_ms=last_timestamp_ms(piece))
            return state
    return None


def _up_to(
    directory: Path, state: _Replay | None, past: Callable[[Logged], bool], found: Found
) -> _Replay:
    """Return the state after the log's records behind `state`, or after the whole history."""
    if state is None:
        state = _Replay(found)
        slices = forward(directory)
    else:
        slices = log_from(directory, state.next_offset)
    for _, effective in settled_around(slices, found, past=past):
        state.take_all(effective)
    return state


class _Replay:
    """The state of the cluster while records are replayed."""

    def __init__(self, found: Found = refuse) -> None:
        self.found = found
        self.leader: int | None = None
        self.voters: tuple[int, ...] = ()
        self.last: Logged | None = None
        self.image = MetadataImage()
        self._records: list[MetadataRecord] = []
        self._skipped: Counter[str] = Counter()

    @property
    def next_offset(self) -> int:
        """The offset after the last record."""
        return 0 if self.last is None else self.last.offset + 1

    def take_all(self, effective: Iterable[Logged]) -> None:
        """Take records that took effect. Raise ReplayError if one contradicts the image."""
        for each in effective:
            self.last, message = each, each.message
            if isinstance(message, LeaderChangeMessage):
                self.leader, self.voters = message.leader_id, _ids(message)
            elif isinstance(message, VotersRecord):
                self.voters = _ids(message)
            elif isinstance(message, MetadataRecord) and type(message) in REPLAY:
                self._records.append(message)
                if len(self._records) >= REPLAYED_AT_ONCE:
                    self.replay()
            elif not each.of_raft:
                self._skipped[type_name(message)] += 1

    def replay(self, end: EpochOffset | None = None) -> None:
        """Replay the records that are held, which end at `end` or at the last record."""
        if self.last is None:
            return
        # The records of a transaction follow control records with higher offsets.
        reached = end or max(self.image.last, EpochOffset(self.last.epoch, self.last.offset))
        records, self._records = self._records, []
        try:
            self.image, _ = replay(self.image, records, reached, self.last.timestamp_ms)
        except ReplayError as error:
            if self.found is refuse:
                raise
            self._replay_one_by_one(records, reached, str(error))

    def _replay_one_by_one(
        self, records: list[MetadataRecord], reached: EpochOffset, text: str
    ) -> None:
        """Replay the records that do not contradict the image, and report the others."""
        assert self.last is not None
        first, left_out = self.image.last.offset + 1, 0
        for record in records:
            try:
                self.image, _ = replay(self.image, [record], reached, self.last.timestamp_ms)
            except ReplayError:
                left_out += 1
        text = f"{left_out} records contradict the state before them and are left out: {text}"
        self.found(Damage(CONTRADICTION, first, reached.offset + 1, text.partition(". ")[0]))

    def at(self, offset: int) -> Moment:
        """Return the state, which is that after the record at `offset`."""
        assert self.last is not None
        self.replay(max(self.image.last, EpochOffset(self.last.epoch, offset)))
        return Moment(
            offset=offset,
            epoch=self.last.epoch,
            timestamp_ms=self.last.timestamp_ms,
            leader=self.leader,
            voters=self.voters,
            image=self.image,
            skipped=dict(self._skipped),
        )


def _past(offset: int | None, time_ms: int | None) -> Callable[[Logged], bool]:
    if offset is not None:
        return lambda logged: logged.offset > offset
    if time_ms is not None:
        return lambda logged: logged.timestamp_ms > time_ms
    return never


def _first(directory: Path | str) -> str:
    for first in walk(directory):
        return f"at offset {first.offset}, {clock(first.timestamp_ms)} UTC"
    return "it is empty"


def _refuse_beyond_the_end(directory: Path, offset: int) -> None:
    """Raise OutOfHistory if the log ends before `offset`.

    A smaller last offset is not enough: the record at `offset` may be part of a metadata
    transaction without effect."""
    last = last_batch(directory)
    end = -1 if last is None else last.last_offset
    if end < offset:
        raise OutOfHistory(f"{directory}: the log ends at offset {end}, before {offset}")


def _ids(message: LeaderChangeMessage | VotersRecord) -> tuple[int, ...]:
    return tuple(sorted(voter.voter_id for voter in message.voters))
