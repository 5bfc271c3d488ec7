"""The throttles of a reassignment: the replicas that are listed, and the configs that are set.

The rules are those of Kafka's tool. `reassignments.py` removes the throttles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from quorate.cli.client.admin import Admin
from quorate.cli.client.config_changes import alter_configs
from quorate.cli.reassign.partition_files import TopicPartition
from quorate.cli.reassign.plan import Assignment
from quorate.cli.reassign.reassignments import (
    BROKER,
    BROKER_THROTTLES,
    TOPIC,
    TOPIC_THROTTLES,
    Ongoing,
)
from quorate.quorum.protocol.schemas import configs

SET = 0
"""The operation of IncrementalAlterConfigs that sets a config."""


@dataclass(frozen=True, slots=True)
class Move:
    """A move of one partition: the brokers that hold it, and those that copy it from its leader,
    which is one of the sources."""

    sources: frozenset[int]
    destinations: frozenset[int]


Moves = dict[TopicPartition, Move]


def proposed_moves(
    ongoing: Mapping[TopicPartition, Ongoing], plan: Assignment, current: Assignment
) -> Moves:
    """Return the moves in progress and those of the plan.

    If a partition of the plan is being moved already, it keeps its first sources. The replicas that
    it has now may still lack records (KAFKA-10779)."""
    moves = {
        key: Move(frozenset(each.replicas) - frozenset(each.adding), frozenset(each.adding))
        for key, each in ongoing.items()
    }
    for key, replicas in plan.items():
        sources = moves[key].sources if key in moves else frozenset(current[key])
        moves[key] = Move(sources, frozenset(replicas) - sources)
    return moves


def throttled_lists(moves: Moves) -> dict[str, tuple[str, str]]:
    """Return the throttled replicas of each topic, of the leader's and of the follower's side."""
    return {
        topic: (
            _list(moves, topic, lambda move: move.sources),
            _list(moves, topic, lambda move: move.destinations),
        )
        for topic in sorted({topic for topic, _ in moves})
    }


def _list(moves: Moves, topic: str, ids: Callable[[Move], Iterable[int]]) -> str:
    found = {
        f"{partition}:{broker_id}"
        for (name, partition), move in moves.items()
        if name == topic
        for broker_id in ids(move)
    }
    return ",".join(sorted(found))


def brokers_of(moves: Moves) -> list[int]:
    """Return the brokers that hold or copy a partition, in ascending order."""
    return sorted(frozenset().union(*(each.sources | each.destinations for each in moves.values())))


def throttle(admin: Admin, moves: Moves, rate: int) -> None:
    """Limit the moves to `rate` bytes per second on each broker. Other throttled replicas of the
    topics are replaced.

    Raise Refused on the first error. The resources before it are changed then."""
    for topic, lists in throttled_lists(moves).items():
        _set(admin, TOPIC, topic, dict(zip(TOPIC_THROTTLES, lists, strict=True)))
    for broker_id in brokers_of(moves):
        rates = dict.fromkeys(BROKER_THROTTLES[:2], str(rate))
        _set(admin, BROKER, str(broker_id), rates)


def throttle_log_dirs(admin: Admin, broker_ids: Iterable[int], rate: int) -> None:
    """Limit the moves between the log directories of each broker to `rate` bytes per second. Raise
    Refused on the first error."""
    for broker_id in sorted(set(broker_ids)):
        _set(admin, BROKER, str(broker_id), {BROKER_THROTTLES[2]: str(rate)})


def _set(admin: Admin, kind: int, name: str, values: Mapping[str, str]) -> None:
    resource = configs.IncrementalAlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            configs.IncrementalAlterableConfig(name=key, config_operation=SET, value=value)
            for key, value in values.items()
        ),
    )
    alter_configs(admin, resource, name)
