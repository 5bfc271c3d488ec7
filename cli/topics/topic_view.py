"""Topics as --describe shows them: values from the cluster's responses, and Kafka's lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from quorate.cli.client.admin import PASSING, UNKNOWN_OUTCOME, Admin, check
from quorate.cli.client.errors import Refused
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.ids import ZERO_UUID, uuid_from_text, uuid_to_text
from quorate.quorum.metadata.internal_topics import INTERNAL_TOPICS
from quorate.quorum.protocol.apis import ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.cluster import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from quorate.quorum.protocol.schemas.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from quorate.quorum.protocol.schemas.reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

TOPIC_RESOURCE = 2
DEFAULT_CONFIG = 5
MIN_ISR = "min.insync.replicas"
MOVES_WAIT_S = 5.0
NO_MOVES = (
    "WARNING: no active controller answered, so that reassignments are not shown. `quorate status` "
    "says which controllers run."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """The state of one partition.

    `elr` and `last_known_elr` are None if the cluster does not report them (KIP-966)."""

    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def replication_factor(self) -> int:
        """Return the number of replicas without those that a reassignment adds."""
        return len(self.replicas) - len(self.adding)

    def line(self, topic: str) -> str:
        """Return the partition's line of --describe."""
        fields = [
            ("Topic", topic),
            ("Partition", str(self.partition)),
            ("Leader", "none" if self.leader is None else str(self.leader)),
            ("Replicas", ids(self.replicas)),
            ("Isr", ids(self.isr)),
        ]
        if self.adding or self.removing:
            fields += [
                ("Adding Replicas", ids(self.adding)),
                ("Removing Replicas", ids(self.removing)),
            ]
        fields += [
            ("Elr", "N/A" if self.elr is None else ids(self.elr)),
            ("LastKnownElr", "N/A" if self.last_known_elr is None else ids(self.last_known_elr)),
        ]
        return "".join(f"\t{name}: {value}" for name, value in fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """The state of one topic.

    `configs` are those set for the topic or a broker, without defaults. `min_isr` is the
    min.insync.replicas in effect."""

    name: str
    topic_id: str
    partitions: tuple[PartitionView, ...]
    configs: dict[str, str]
    min_isr: int = 1

    def line(self) -> str:
        """Return the topic's line of --describe."""
        fields = [f"Topic: {self.name}"]
        if self.topic_id != uuid_to_text(ZERO_UUID):
            fields.append(f"TopicId: {self.topic_id}")
        factor = self.partitions[0].replication_factor if self.partitions else 0
        return "\t".join(
            [
                *fields,
                f"PartitionCount: {len(self.partitions)}",
                f"ReplicationFactor: {factor}",
                "Configs: " + ",".join(f"{name}={value}" for name, value in self.configs.items()),
            ]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The filters of --describe."""

    under_replicated: bool = False
    unavailable: bool = False
    under_min_isr: bool = False
    at_min_isr: bool = False
    overrides: bool = False

    @property
    def of_partitions(self) -> bool:
        """Return True if a filter selects partitions, so that no topic lines are printed."""
        return self.under_replicated or self.unavailable or self.under_min_isr or self.at_min_isr

    def shows(self, partition: PartitionView, min_isr: int, live: frozenset[int]) -> bool:
        """Return True if the partition passes the filters.

        `live` are the ids of the live brokers."""
        in_sync = len(partition.isr)
        led = partition.leader is not None
        return not self.of_partitions or any(
            (
                self.under_replicated and partition.replication_factor > in_sync,
                self.unavailable and (not led or partition.leader not in live),
                self.under_min_isr and (not led or in_sync < min_isr),
                self.at_min_isr and in_sync == min_isr,
            )
        )


def lines(topics: Sequence[TopicView], report: Report, live: frozenset[int]) -> Iterator[str]:
    """Yield the lines of --describe that pass the filters."""
    for topic in topics:
        if not report.of_partitions and (topic.configs or not report.overrides):
            yield topic.line()
        if report.overrides:
            continue
        for partition in topic.partitions:
            if report.shows(partition, topic.min_isr, live):
                yield partition.line(topic.name)


def as_json(topics: Sequence[TopicView], report: Report, live: frozenset[int]) -> list[object]:
    """Return the topics and partitions that pass the filters as JSON values."""
    found: list[object] = []
    for topic in topics:
        shown = [each for each in topic.partitions if report.shows(each, topic.min_isr, live)]
        if shown and (topic.configs or not report.overrides):
            found.append({**asdict(topic), "partitions": [asdict(each) for each in shown]})
    return found


def ids(values: Sequence[int]) -> str:
    """Return ids separated by commas."""
    return ",".join(map(str, values))


def matching(names: Sequence[str], pattern: str | None, *, exclude_internal: bool) -> list[str]:
    """Return the sorted names that match the pattern. Raise Refused if it is invalid.

    The pattern is a regular expression for the whole name, or several of them separated by
    commas."""
    try:
        regex = re.compile((pattern or ".*").strip().replace(",", "|").strip("'\""))
    except (re.error, OverflowError, RecursionError) as error:
        raise Refused(f"--topic: value {pattern!r} must be a regular expression: {error}") from None
    return sorted(
        name
        for name in names
        if regex.fullmatch(name) and not (exclude_internal and name in INTERNAL_TOPICS)
    )


def topic_names(admin: Admin) -> list[str]:
    """Return the names of all topics."""
    return [topic.name for topic in admin.metadata(None).topics if topic.name is not None]


def names_of(
    admin: Admin, pattern: str | None, topic_id: str | None, *, exclude_internal: bool = False
) -> list[str]:
    """Return the names that match the pattern, or the name of the topic with `topic_id`.

    The result is empty if there is no such topic. Raise Refused for an invalid id or pattern."""
    if topic_id is None:
        return matching(topic_names(admin), pattern, exclude_internal=exclude_internal)
    try:
        wanted = uuid_from_text(topic_id)
    except ValueError as error:
        raise Refused(f"--topic-id: {error}") from None
    topics = admin.metadata(None).topics
    return [topic.name for topic in topics if topic.topic_id == wanted and topic.name is not None]


def describe(
    admin: Admin,
    names: Sequence[str],
    *,
    page: int = 2000,
    configs: tuple[str, ...] | None = None,
    moving: bool = True,
) -> list[TopicView]:
    """Return the topics with their configs and reassignments. Raise Refused if one does not exist.

    If `configs` names keys, only these are read, which is faster. `page` is the most partitions in
    one response of the cluster. If `names` is empty, the result is empty, too. Brokers forward the
    question about reassignments to the active controller. With `moving` False it is not asked,
    because without a quorum it would wait for the whole timeout. Raise NotReachable if no node
    answers."""
    if not names:
        return []
    found_configs = topic_configs(admin, names, configs)
    moves = reassignments(admin) if moving else {}
    found = []
    for name, topic_id, partitions in described_partitions(admin, names, page):
        entries = found_configs.get(name, ())
        by_name = {each.name: each.value or "" for each in entries}
        found.append(
            TopicView(
                name=name,
                topic_id=topic_id,
                partitions=tuple(
                    with_reassignment(each, moves.get((name, each.partition)))
                    for each in partitions
                ),
                configs={
                    each.name: each.value or ""
                    for each in entries
                    if each.config_source != DEFAULT_CONFIG
                },
                min_isr=int(by_name.get(MIN_ISR) or 1),
            )
        )
    return found


def described_partitions(
    admin: Admin, names: Sequence[str], page: int
) -> Iterator[tuple[str, str, list[PartitionView]]]:
    """Yield (name, topic id, partitions) of each topic.

    DescribeTopicPartitions is used if the node serves it (KIP-966), otherwise Metadata, which has
    no ELR."""
    if admin.serves(ApiKey.DESCRIBE_TOPIC_PARTITIONS):
        yield from paged_partitions(admin, names, page)
        return
    for topic in admin.metadata(names).topics:
        check(topic.error_code, None, f"topic {topic.name}")
        partitions = [
            PartitionView(
                partition=each.partition_index,
                leader=each.leader_id if each.leader_id >= 0 else None,
                replicas=each.replica_nodes,
                isr=each.isr_nodes,
            )
            for each in sorted(topic.partitions, key=lambda each: each.partition_index)
        ]
        yield topic.name or "", uuid_to_text(topic.topic_id), partitions


def paged_partitions(
    admin: Admin, names: Sequence[str], page: int
) -> Iterator[tuple[str, str, list[PartitionView]]]:
    """Yield (name, topic id, partitions) of each topic, from all response pages."""
    found: dict[str, tuple[str, list[PartitionView]]] = {}
    cursor: Cursor | None = None
    while True:
        first = cursor.topic_name if cursor else ""
        request = DescribeTopicPartitionsRequest(
            topics=tuple(TopicRequest(name=name) for name in sorted(names) if name >= first),
            response_partition_limit=page,
            cursor=cursor,
        )
        answer = admin.ask(request, DescribeTopicPartitionsResponse)
        for topic in answer.topics:
            check(topic.error_code, None, f"topic {topic.name}")
            _, partitions = found.setdefault(topic.name or "", (uuid_to_text(topic.topic_id), []))
            partitions += [
                PartitionView(
                    partition=each.partition_index,
                    leader=each.leader_id if each.leader_id >= 0 else None,
                    replicas=each.replica_nodes,
                    isr=each.isr_nodes,
                    elr=each.eligible_leader_replicas,
                    last_known_elr=each.last_known_elr,
                )
                for each in topic.partitions
            ]
        if answer.next_cursor is None or answer.next_cursor == cursor:
            break
        cursor = answer.next_cursor
    for name, (topic_id, partitions) in sorted(found.items()):
        yield name, topic_id, sorted(partitions, key=lambda each: each.partition)


def topic_configs(
    admin: Admin, names: Sequence[str], keys: tuple[str, ...] | None = None
) -> dict[str, tuple[DescribeConfigsResourceResult, ...]]:
    """Return the configs of each topic, only `keys` if they are given. Raise Refused on an error
    of a topic."""
    request = DescribeConfigsRequest(
        resources=tuple(
            DescribeConfigsResource(
                resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=keys
            )
            for name in names
        )
    )
    answer = admin.ask(request, DescribeConfigsResponse)
    for result in answer.results:
        check(result.error_code, result.error_message, f"configs of topic {result.resource_name}")
    return {result.resource_name: result.configs for result in answer.results}


def reassignments(admin: Admin) -> dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the (adding, removing) replicas of every partition that is being reassigned.

    The result is empty if the node does not support the request, and, with a warning, if no active
    controller answers for MOVES_WAIT_S. What is known without it must not wait longer."""
    if not admin.serves(ApiKey.LIST_PARTITION_REASSIGNMENTS):
        return {}
    wait_ms = min(admin.timeout_ms, int(MOVES_WAIT_S * 1000))
    request = ListPartitionReassignmentsRequest(timeout_ms=wait_ms, topics=None)
    answer = admin.ask(
        request,
        ListPartitionReassignmentsResponse,
        lambda answer: [answer.error_code],
        wait_ms / 1000,
    )
    if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
        return {}
    if ErrorCode.of(answer.error_code) in PASSING | UNKNOWN_OUTCOME:
        echo(NO_MOVES, err=True)
        return {}
    check(answer.error_code, answer.error_message)
    return {
        (topic.name, each.partition_index): (each.adding_replicas, each.removing_replicas)
        for topic in answer.topics
        for each in topic.partitions
    }


def with_reassignment(
    partition: PartitionView, moving: tuple[tuple[int, ...], tuple[int, ...]] | None
) -> PartitionView:
    """Return the partition with the adding and removing replicas of its reassignment."""
    if moving is None:
        return partition
    return replace(partition, adding=moving[0], removing=moving[1])
