"""Removes committed offsets that have expired or whose topics were deleted (KIP-211).

A shard may hold a hundred thousand offsets. Both removals therefore run in steps, between which
other requests change the shard. Two rules keep the removals correct:

- Each step appends its tombstones before it pauses. No change comes between the check of an offset
  and its tombstone.
- A topic may be deleted and created again under the same name before the removal reaches a group.
  The removal keeps every offset that was committed after the deletion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from quorate.broker.groups.group import Group
from quorate.broker.groups.group_record import group_tombstone
from quorate.broker.groups.offsets import Offsets, offset_tombstone
from quorate.broker.groups.records import NO_TIMESTAMP, GroupRecord, OffsetKey, OffsetValue
from quorate.broker.groups.settings import GroupSettings
from quorate.broker.groups.state import State
from quorate.broker.groups.subscription import CONSUMER_PROTOCOL
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.metadata.pace import Pace
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.seams import Clock

TOMBSTONE_ENTRIES, CHARS_PER_ENTRY = 12, 16
"""The weight of a tombstone, in entries of a step (`Pace`), and the number of characters of its
group id that weigh one more. A check of an offset weighs 1. A batch with the tombstones of one step
is therefore far below any sensible max.message.bytes."""

DeletedTopics = dict[str, set[tuple[str, int]]]
"""Maps the name of each deleted topic to the offsets (group and partition) that were committed
after the deletion, for a new topic with this name."""


class Expiration:
    """Removes offsets of one shard. It runs on the broker's event loop.

    `topics_deleted` and `expire` request a removal, and `steps` carries it out. A removal that
    cannot append stops: expired offsets are removed after the next `expire`, and offsets of deleted
    topics when they expire."""

    def __init__(
        self,
        settings: GroupSettings,
        clock: Clock,
        groups: Mapping[str, Group],
        offsets: Offsets,
        append: Callable[[Sequence[GroupRecord]], ErrorCode],
    ) -> None:
        """`groups` and `offsets` belong to the shard. `append` appends records, applies them, and
        returns the error of the append."""
        self._settings = settings
        self._clock = clock
        self._groups = groups
        self._offsets = offsets
        self._append = append
        self._expiry_due = False
        self._deleted: DeletedTopics = {}  # those that no removal has begun with
        self._removing: DeletedTopics = {}  # those of the present removal

    def expire(self) -> None:
        """Request the removal of expired offsets, and of all groups that have neither members, nor
        pending member ids, nor offsets."""
        self._expiry_due = True

    def topics_deleted(self, names: Iterable[str]) -> None:
        """Request the removal of all present offsets of these topics."""
        for name in names:
            self._deleted[name] = set()

    def committed(self, key: OffsetKey) -> None:
        """Keep this offset, which was just committed, if its topic is being removed."""
        for deleted in (self._deleted, self._removing):
            kept = deleted.get(key.topic)
            if kept is not None:
                kept.add((key.group, key.partition))

    def steps(self) -> IncrementalWork[None]:
        """Carry out all requested removals, including those requested between the steps."""
        while self._deleted or self._expiry_due:
            if self._deleted:
                self._removing, self._deleted = self._deleted, {}
                yield from self._remove(self._is_of_deleted_topic, lambda group_id, removed: False)
                self._removing = {}
            else:
                self._expiry_due = False
                is_expired = partial(self._is_expired, self._clock.wall_ms())
                yield from self._remove(is_expired, self._is_unused)

    def _remove(
        self,
        doomed: Callable[[str, tuple[str, int], OffsetValue], bool],
        is_unused: Callable[[str, int], bool],
    ) -> IncrementalWork[None]:
        """Append tombstones for the doomed offsets and the unused groups, in steps.

        `is_unused` receives the id of a group and the number of its tombstones that are not applied
        yet. Return early if an append fails.
        """
        pace = Pace()
        batch: list[GroupRecord] = []
        groups = list(self._groups)
        while groups:  # `pop` frees the copy in steps, too
            group_id = groups.pop()
            tombstone_entries = TOMBSTONE_ENTRIES + len(group_id) // CHARS_PER_ENTRY
            removed = 0
            places = list(self._offsets.of(group_id))
            while places:
                place = places.pop()
                value = self._offsets.of(group_id).get(place)
                entries = 1
                if value is not None and doomed(group_id, place, value):
                    batch.append(offset_tombstone(group_id, *place))
                    removed, entries = removed + 1, tombstone_entries
                if pace.is_time(entries):
                    if self._append(batch):
                        return
                    batch, removed = [], 0
                    yield
            entries = 1
            if is_unused(group_id, removed):
                batch.append(group_tombstone(group_id))
                entries = tombstone_entries
            if pace.is_time(entries):
                if self._append(batch):
                    return
                batch = []
                yield
        self._append(batch)

    def _is_of_deleted_topic(
        self, group_id: str, place: tuple[str, int], value: OffsetValue
    ) -> bool:
        """Return True if the offset was committed before its topic was deleted."""
        topic, partition = place
        kept = self._removing.get(topic)
        return kept is not None and (group_id, partition) not in kept

    def _is_expired(
        self, wall_ms: int, group_id: str, place: tuple[str, int], value: OffsetValue
    ) -> bool:
        """Return True if the retention of the offset has ended at `wall_ms`.

        Offsets of topics that the group consumes do not expire.
        """
        group = self._groups.get(group_id)
        if group is None:
            return False
        since_ms = retention_start(group, value)
        if since_ms is None or group.subscribes_to(place[0]):
            return False
        if value.expire_timestamp != NO_TIMESTAMP:
            return wall_ms >= value.expire_timestamp
        return wall_ms - since_ms >= self._settings.offsets_retention_ms

    def _is_unused(self, group_id: str, removed: int) -> bool:
        """Return True if the group is empty and has no offsets besides the `removed` ones."""
        group = self._groups.get(group_id)
        if group is None or group.state is not State.EMPTY or group.pending:
            return False
        return len(self._offsets.of(group_id)) == removed


def retention_start(group: Group, value: OffsetValue) -> int | None:
    """Return the start of the offset's retention, in wall-clock ms, or None if no offset of the
    group can expire now (KIP-211).

    - The group never had members, and only commits offsets: the time of the commit.
    - The group is empty: the time at which it became empty, or of the commit if that is unknown.
    - The group is Stable and its subscribed topics are known: the time of the commit. The caller
      must check that the group does not subscribe to the topic.
    - Otherwise: None."""
    if group.protocol_type is None:
        return value.commit_timestamp
    if group.state is State.EMPTY:
        ended_ms = group.state_timestamp_ms
        return value.commit_timestamp if ended_ms == NO_TIMESTAMP else ended_ms
    consumers = group.protocol_type == CONSUMER_PROTOCOL and group.topics is not None
    if consumers and group.state is State.STABLE:
        return value.commit_timestamp
    return None
