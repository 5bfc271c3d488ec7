"""Handles OffsetCommit, OffsetFetch and OffsetDelete in one shard."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from quorate.broker.groups.group import Group
from quorate.broker.groups.offsets import Offsets, check_commit, offset_record, offset_tombstone
from quorate.broker.groups.rebalance import Rebalance
from quorate.broker.groups.records import GroupRecord, OffsetValue
from quorate.broker.groups.settings import GroupSettings
from quorate.broker.groups.state import State
from quorate.broker.groups.subscription import CONSUMER_PROTOCOL
from quorate.quorum.ids import Uuid
from quorate.quorum.protocol.errors import ErrorCode, KafkaError
from quorate.quorum.protocol.schemas import group_offsets as schemas
from quorate.quorum.seams import Clock

GROUP_ID_NOT_FOUND_SINCE = 9
"""The first OffsetCommit version that may answer GROUP_ID_NOT_FOUND. Before: ILLEGAL_GENERATION."""


class OffsetRequests:
    """Reads and changes the committed offsets of one shard.

    It owns no state. `groups` and `offsets` belong to the shard, and `append` appends records and
    applies them."""

    def __init__(
        self,
        settings: GroupSettings,
        clock: Clock,
        groups: Mapping[str, Group],
        offsets: Offsets,
        rebalance: Rebalance,
        append: Callable[[Sequence[GroupRecord]], None],
    ) -> None:
        """`append` raises KafkaError if the records could not be appended."""
        self._settings = settings
        self._clock = clock
        self._groups = groups
        self._offsets = offsets
        self._rebalance = rebalance
        self._append = append

    def commit(
        self,
        request: schemas.OffsetCommitRequest,
        version: int,
        refuse: Callable[[schemas.OffsetCommitRequestTopic, int], ErrorCode],
    ) -> schemas.OffsetCommitResponse:
        """Append the offsets that may be committed as one batch, and return the result of each
        partition. The commit also restarts the session of the member that sends it.

        `refuse` returns the error of a partition that does not exist, or NONE. Too long metadata
        gets OFFSET_METADATA_TOO_LARGE. Raise KafkaError if the whole request fails. The errors are
        those of `check_commit` and of the append (`client_errors.py`). A request that names a
        generation of an unknown group gets GROUP_ID_NOT_FOUND, or ILLEGAL_GENERATION before
        version GROUP_ID_NOT_FOUND_SINCE.
        """
        group = self._group_to_commit(request, version)
        check_commit(group, request)
        member = group.members.get(request.member_id)
        if member is not None and group.state in (State.STABLE, State.PREPARING_REBALANCE):
            self._rebalance.start_session(group, member)
        wall_ms = self._clock.wall_ms()
        records: list[GroupRecord] = []
        topics = []
        for topic in request.topics:
            answers = []
            for each in topic.partitions:
                error = refuse(topic, each.partition_index)
                metadata = each.committed_metadata or ""
                if not error and len(metadata) > self._settings.offset_metadata_max_bytes:
                    error = ErrorCode.OFFSET_METADATA_TOO_LARGE
                if not error:
                    records.append(offset_record(request, topic.name, each, wall_ms))
                answers.append(
                    schemas.OffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=error
                    )
                )
            topics.append(
                schemas.OffsetCommitResponseTopic(
                    name=topic.name, topic_id=topic.topic_id, partitions=tuple(answers)
                )
            )
        self._append(records)
        return schemas.OffsetCommitResponse(topics=tuple(topics))

    def _group_to_commit(self, request: schemas.OffsetCommitRequest, version: int) -> Group:
        group = self._groups.get(request.group_id)
        if group is not None:
            return group
        if request.generation_id_or_member_epoch >= 0:
            since = version >= GROUP_ID_NOT_FOUND_SINCE
            raise KafkaError(
                ErrorCode.GROUP_ID_NOT_FOUND if since else ErrorCode.ILLEGAL_GENERATION
            )
        return Group(request.group_id)  # `Shard.replay` creates the group if a record is appended.

    def fetch(self, wanted: schemas.OffsetFetchRequestGroup) -> schemas.OffsetFetchResponseGroup:
        """Return the offsets of the partitions that `wanted` names, or -1 where there is none.

        An unknown group has no offsets, which is no error. If `wanted.topics` is None, the result
        is empty: the caller must handle requests for all topics itself.
        """
        held = self._offsets.of(wanted.group_id)
        places: dict[tuple[str, Uuid], list[int]] = {}
        for topic in wanted.topics or ():
            places.setdefault((topic.name, topic.topic_id), []).extend(topic.partition_indexes)
        return schemas.OffsetFetchResponseGroup(
            group_id=wanted.group_id,
            topics=tuple(
                schemas.OffsetFetchResponseTopics(
                    name=name,
                    topic_id=topic_id,
                    partitions=tuple(fetched(each, held.get((name, each))) for each in partitions),
                )
                for (name, topic_id), partitions in places.items()
            ),
        )

    def delete(
        self,
        request: schemas.OffsetDeleteRequest,
        refuse: Callable[[str, int], ErrorCode],
    ) -> schemas.OffsetDeleteResponse:
        """Append tombstones for the named partitions, and return the result of each (KIP-496).

        `refuse` returns the error of a partition that does not exist, or NONE. A partition without
        a committed offset gets NONE. A topic that the group consumes, or may consume, gets
        GROUP_SUBSCRIBED_TO_TOPIC. Raise KafkaError for the whole request: GROUP_ID_NOT_FOUND,
        NON_EMPTY_GROUP for an active group that uses another protocol than the consumer protocol,
        or the error of the append (`client_errors.py`).
        """
        group = self._groups.get(request.group_id)
        if group is None:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND)
        if group.state is not State.EMPTY and group.protocol_type != CONSUMER_PROTOCOL:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)
        held = self._offsets.of(group.id)
        records = []
        topics = []
        for topic in request.topics:
            subscribed = group.subscribes_to(topic.name)
            errors = {
                each.partition_index: refuse(topic.name, each.partition_index)
                or (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE)
                for each in topic.partitions
            }
            records += [
                offset_tombstone(group.id, topic.name, each)
                for each, error in errors.items()
                if not error and (topic.name, each) in held
            ]
            topics.append(
                schemas.OffsetDeleteResponseTopic(
                    name=topic.name,
                    partitions=tuple(
                        schemas.OffsetDeleteResponsePartition(
                            partition_index=each, error_code=error
                        )
                        for each, error in errors.items()
                    ),
                )
            )
        self._append(records)
        return schemas.OffsetDeleteResponse(
            error_code=ErrorCode.NONE, throttle_time_ms=0, topics=tuple(topics)
        )


def fetched(partition: int, value: OffsetValue | None) -> schemas.OffsetFetchResponsePartitions:
    """Return the OffsetFetch result of one partition, with offset -1 if no offset is committed."""
    if value is None:
        return schemas.OffsetFetchResponsePartitions(
            partition_index=partition, committed_offset=-1, metadata=""
        )
    return schemas.OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )
