"""Produce and Fetch on a broker with an authorizer: WRITE and READ are checked for each partition.

Both APIs have their own codecs, so the check is on their decoded partitions. A fetch that waits for
records is checked again whenever it is read again, by the newest image.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from quorate.broker.kafka.records.fetch import FetchHandler
from quorate.broker.kafka.records.produce import ProduceHandler
from quorate.broker.kafka.shared.replicas import Replicas
from quorate.broker.partition.key_check import CheckedKeys
from quorate.quorum.authorization.permits import DENIED, Permits
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.acl_codes import Operation, ResourceType
from quorate.quorum.protocol.hot import ProducePartition, ProducePartitionResult
from quorate.quorum.protocol.hot.fetch_request import FetchPartition
from quorate.quorum.rpc.kafka.context import RequestContext
from quorate.quorum.rpc.kafka.server_state import RawHandler

PermitsOf = Callable[[RequestContext], Permits]
H = TypeVar("H", ProduceHandler, FetchHandler)


class CheckedReplicas:
    """The replicas of a broker, as far as one client may write and read them."""

    __slots__ = ("_permits", "_replicas")

    def __init__(self, replicas: Replicas, permits: Callable[[], Permits]) -> None:
        self._replicas = replicas
        self._permits = permits

    def __getattr__(self, name: str) -> Any:
        """Return everything that needs no check from the replicas."""
        return getattr(self._replicas, name)

    def append(
        self,
        appends: Sequence[ProducePartition],
        acks: int,
        timeout_ms: int,
        done: Callable[[Sequence[ProducePartitionResult]], None],
        *,
        keys: CheckedKeys | None = None,
    ) -> None:
        """Append to the partitions that the client may write, and refuse the others."""
        permits = self._permits()
        allowed = [may_use(permits, Operation.WRITE, each) for each in appends]
        if all(allowed):
            self._replicas.append(appends, acks, timeout_ms, done, keys=keys)
            return

        def join(results: Sequence[ProducePartitionResult]) -> None:
            given = iter(results)
            done(
                [
                    next(given) if ok else refused(each)
                    for each, ok in zip(appends, allowed, strict=True)
                ]
            )

        some = [each for each, ok in zip(appends, allowed, strict=True) if ok]
        if some:
            self._replicas.append(some, acks, timeout_ms, join, keys=keys)
        else:
            join(())

    def fetch_as_consumer(self, *args: Any, **how: Any) -> None:
        """Read the partitions that the client may read, and refuse the others."""
        how["may_read"] = lambda each: may_use(self._permits(), Operation.READ, each)
        self._replicas.fetch_as_consumer(*args, **how)


def may_use(
    permits: Permits, operation: Operation, partition: ProducePartition | FetchPartition
) -> bool:
    """Return True if the client may perform the operation on the partition's topic. An unknown
    topic id is no secret, so the handler answers it."""
    name = partition.topic or permits.name_of(partition.topic_id)
    return name is None or permits.topic(operation, name)


def refused(partition: ProducePartition) -> ProducePartitionResult:
    """Return the result of a partition that the client may not write."""
    error = DENIED[ResourceType.TOPIC]
    return ProducePartitionResult(partition.topic, partition.topic_id, partition.partition, error)


def checked(handler: H, permits: PermitsOf) -> RawHandler:
    """Return the handler of Produce or Fetch behind its check."""

    def handle(context: RequestContext, body: memoryview) -> IncrementalWork[None] | None:
        replicas: Any = CheckedReplicas(handler.replicas, lambda: permits(context))
        return replace(handler, replicas=replicas).handle(context, body)

    return handle
