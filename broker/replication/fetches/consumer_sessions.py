"""Incremental fetch sessions of consumers (KIP-227): a response has only the partitions that
changed.

A session keeps its partitions in the order of reading, and each fetch reads all of them as
`consumer_fetches.py` does. A response contains a partition if it has records, an error, a diverging
epoch, a preferred read replica, or another high watermark or log start than the last response. A
partition with records then moves to the end of the order, so that a full response starves no
partition.

`fetch_session_cache.py` holds the ids, epochs and slots. Without a free slot the session id is 0,
and the consumer continues with full fetches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeGuard

from quorate.broker.replication.fetches.consumer_fetches import (
    SLICED_ABOVE,
    Client,
    ConsumerFetches,
    Done,
    Fetch,
    MayRead,
)
from quorate.broker.replication.fetches.fetch_session_cache import (
    FINAL_EPOCH,
    FIRST_EPOCH,
    NO_SESSION,
    SessionCache,
    epoch_after,
)
from quorate.broker.replication.fetches.read_replicas import LEADER, Reader
from quorate.broker.replication.fetches.replica_session import Respond
from quorate.broker.replication.partitions.partition_registry import PartitionRegistry
from quorate.quorum.ids import ZERO_UUID, Uuid
from quorate.quorum.incremental_work import IncrementalWork
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot.fetch_request import FetchPartition, FetchRequest, Forgotten
from quorate.quorum.protocol.hot.fetch_response import FetchPartitionResult
from quorate.quorum.protocol.hot.primitives import chunks

MAX_PARTITIONS = 200_000
"""Maximum number of partitions of one session. Kafka has no bound."""
NEVER_SENT = (-1, -1)
"""The (high watermark, log start) of a partition that must be sent again."""

Key = tuple[str, Uuid, int]
"""A partition as the requests of its session name it: (topic name, topic id, partition number). One
of the first two is empty: since version 13 requests name topics by id."""


class ConsumerSession:
    """The fetch session of one consumer (a `Session` of the cache).

    `partitions` holds the partitions in the order of reading, with the consumer's latest
    offsets."""

    of_follower = False

    def __init__(self, *, uses_topic_ids: bool) -> None:
        """Begin empty, without an id. `uses_topic_ids` is True since version 13 of Fetch."""
        self.id = NO_SESSION
        self.next_epoch = epoch_after(FIRST_EPOCH)
        self.uses_topic_ids = uses_topic_ids
        self.partitions: dict[Key, FetchPartition] = {}
        self._sent: dict[Key, tuple[int, int]] = {}  # (high watermark, log start)

    def __len__(self) -> int:
        return len(self.partitions)

    def end(self) -> None:
        """Do nothing: requests in progress are answered nevertheless."""

    def add(self, partitions: Sequence[FetchPartition]) -> None:
        """Add partitions at the end of the order. A known partition keeps its place and gets the
        new offset."""
        for partition in partitions:
            name = key_of(partition)
            known = self.partitions.get(name)
            if known is not None and known.topic:
                partition = partition._replace(topic=known.topic)
            self.partitions[name] = partition

    def remove(self, topic: str, topic_id: Uuid, partition: int) -> None:
        """Remove a partition that the consumer has forgotten. Ignore an unknown one."""
        name = ("" if self.uses_topic_ids else topic, topic_id, partition)
        self.partitions.pop(name, None)
        self._sent.pop(name, None)

    def unsent(self, results: Sequence[FetchPartitionResult]) -> list[FetchPartitionResult]:
        """Return the results that the consumer does not know yet, and note them as sent. Move the
        partitions with records to the end of the order."""
        sent = self._sent
        changed = []
        for result in results:
            name = key_of(result)
            if name not in self.partitions:  # the consumer has forgotten it meanwhile
                continue
            now = (result.high_watermark, result.log_start_offset)
            if result.error:
                sent[name] = NEVER_SENT  # after the error everything is sent again
            elif now == sent.get(name, NEVER_SENT):
                if (
                    not len(result.records)
                    and result.diverging is None
                    and result.preferred_read_replica == LEADER
                ):
                    continue
            else:
                sent[name] = now
            changed.append(result)
            if len(result.records):
                self.partitions[name] = self.partitions.pop(name)
        return changed

    def resend(self, results: Sequence[FetchPartitionResult]) -> None:
        """Note that results that `unsent` returned were not sent."""
        if len(results) > SLICED_ABOVE:  # one step; the next response has all partitions
            self._sent = {}
            return
        for result in results:
            if (name := key_of(result)) in self.partitions:
                self._sent[name] = NEVER_SENT


def key_of(partition: FetchPartition | FetchPartitionResult) -> Key:
    """Return the key of a partition: by topic id, or by name if the request has no topic ids."""
    by_id = partition.topic_id != ZERO_UUID
    return "" if by_id else partition.topic, partition.topic_id, partition.partition


class ConsumerSessions:
    """The fetches of a client port, with and without sessions. The event loop owns it."""

    def __init__(
        self, fetches: ConsumerFetches, registry: PartitionRegistry, cache: SessionCache
    ) -> None:
        """Read through `fetches`. `cache` is shared with the sessions of followers."""
        self._fetches = fetches
        self._registry = registry
        self._cache = cache

    def fetch(
        self,
        request: FetchRequest,
        max_bytes: int,
        respond: Respond,
        *,
        uses_topic_ids: bool,
        client: Client | None = None,
        reader: Reader | None = None,
        may_read: MayRead | None = None,
    ) -> None:
        """Answer a Fetch of a client: call `respond` once, or never if the client's connection
        closes or this broker stops. The session id of the answer is 0 if there is no session.

        `max_bytes` bounds the response. `reader` is not None if followers may serve the client.
        `may_read` is None on a broker without an authorizer.
        `client` runs the work of large requests in slices. Errors of the session:
        FETCH_SESSION_ID_NOT_FOUND (also if the session became too large or had to make room),
        INVALID_FETCH_SESSION_EPOCH and FETCH_SESSION_TOPIC_ID_ERROR."""
        partitions = request.partitions
        if not _is_large(client, partitions):
            if request.session_epoch != FINAL_EPOCH:
                partitions = [self._with_name(each) for each in partitions]
            self._with_names(
                request, max_bytes, respond, uses_topic_ids, client, reader, may_read, partitions
            )
        else:
            go_on = partial(
                self._with_names,
                request,
                max_bytes,
                respond,
                uses_topic_ids,
                client,
                reader,
                may_read,
            )
            client.run(self._name_steps(partitions, go_on))

    def withdraw(
        self, session_id: int, results: Sequence[FetchPartitionResult], *, ends: bool
    ) -> None:
        """Take back results that `fetch` reported, because they are not sent (KAFKA-6946).

        The session sends them again, or it ends if `ends`. Ignore an unknown session."""
        session = self._cache.get(session_id)
        if isinstance(session, ConsumerSession):
            if ends:
                self._cache.remove(session_id)
            else:
                session.resend(results)

    def _name_steps(
        self, partitions: list[FetchPartition], go_on: Callable[[list[FetchPartition]], None]
    ) -> IncrementalWork[None]:
        named: list[FetchPartition] = []
        for some in chunks(partitions):
            named += [self._with_name(each) for each in some]
            yield
        go_on(named)

    def _with_names(
        self,
        request: FetchRequest,
        max_bytes: int,
        respond: Respond,
        uses_topic_ids: bool,
        client: Client | None,
        reader: Reader | None,
        may_read: MayRead | None,
        partitions: list[FetchPartition],
    ) -> None:
        """Find the session of a request and continue it. `partitions` are those of the request,
        with the names of their topics."""
        read = partial(self._read, request, max_bytes, client, reader, may_read)
        if request.session_epoch in (FIRST_EPOCH, FINAL_EPOCH):
            if request.session_id != NO_SESSION:
                self._end(request.session_id)
            if request.session_epoch == FINAL_EPOCH:
                read(request.partitions, partial(respond, ErrorCode.NONE, NO_SESSION))
            else:
                read(partitions, partial(self._begin, partitions, uses_topic_ids, respond, client))
            return
        session, error = self._cache.find(
            request.session_id,
            request.session_epoch,
            of_follower=False,
            uses_topic_ids=uses_topic_ids,
        )
        if session is None:
            respond(error, NO_SESSION, ())
            return
        assert isinstance(session, ConsumerSession)
        if not _is_large(client, partitions) and not _is_large(client, request.forgotten):
            session.add(partitions)
            for each in request.forgotten:
                session.remove(*each)
            self._go_on(session, read, respond, client)
        else:
            go_on = partial(self._go_on, session, read, respond, client)
            assert client is not None
            client.run(_add_steps(session, partitions, request.forgotten, go_on))

    def _go_on(
        self,
        session: ConsumerSession,
        read: Callable[[Sequence[FetchPartition], Done], None],
        respond: Respond,
        client: Client | None,
    ) -> None:
        """Read the partitions of a session that has taken those of the request."""
        if self._cache.get(session.id) is not session:  # the session has ended meanwhile
            respond(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, NO_SESSION, ())
        elif not len(session):
            self._cache.remove(session.id)
            read((), partial(respond, ErrorCode.NONE, NO_SESSION))
        elif len(session) > MAX_PARTITIONS or not self._cache.resized(session):
            self._cache.remove(session.id)
            respond(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, NO_SESSION, ())
        else:
            respond_changed = partial(
                _respond_changed, session, session.next_epoch, respond, client
            )
            read(list(session.partitions.values()), respond_changed)

    def _read(
        self,
        request: FetchRequest,
        max_bytes: int,
        client: Client | None,
        reader: Reader | None,
        may_read: MayRead | None,
        wanted: Sequence[FetchPartition],
        done: Callable[[Sequence[FetchPartitionResult]], None],
    ) -> None:
        max_bytes = min(request.max_bytes, max_bytes)
        fetch = Fetch(
            partitions=wanted,
            replica_id=request.replica_id,
            max_wait_ms=request.max_wait_ms,
            min_bytes=min(request.min_bytes, max(1, max_bytes)),  # as in Kafka
            max_bytes=max_bytes,
            client=client,
            reader=reader,
            may_read=may_read,
        )
        self._fetches.fetch(fetch, done)

    def _begin(
        self,
        wanted: Sequence[FetchPartition],
        uses_topic_ids: bool,
        respond: Respond,
        client: Client | None,
        results: Sequence[FetchPartitionResult],
    ) -> None:
        """Begin a session with a full response."""
        session = ConsumerSession(uses_topic_ids=uses_topic_ids)
        if _is_large(client, wanted):
            client.run(self._begin_steps(session, wanted, respond, results))
            return
        session.add(wanted)
        if len(session) <= MAX_PARTITIONS and self._cache.add(session):
            session.unsent(results)
        respond(ErrorCode.NONE, session.id, results)

    def _begin_steps(
        self,
        session: ConsumerSession,
        wanted: Sequence[FetchPartition],
        respond: Respond,
        results: Sequence[FetchPartitionResult],
    ) -> IncrementalWork[None]:
        for some in chunks(wanted):
            session.add(some)
            yield
        if len(session) <= MAX_PARTITIONS and self._cache.add(session):
            for sent in chunks(results):
                session.unsent(sent)
                yield
        respond(ErrorCode.NONE, session.id, results)

    def _end(self, session_id: int) -> None:
        session = self._cache.get(session_id)
        if session is not None and not session.of_follower:
            self._cache.remove(session_id)

    def _with_name(self, wanted: FetchPartition) -> FetchPartition:
        """Return the partition with the present name of its topic. If the topic is created again
        later, its id will be inconsistent with the name."""
        if wanted.topic_id == ZERO_UUID:
            return wanted
        topic = self._registry.image.topics.get(wanted.topic_id)
        return wanted if topic is None else wanted._replace(topic=topic.name)


def _is_large(client: Client | None, items: Sequence[object]) -> TypeGuard[Client]:
    """Return True if `client` runs the work on `items` in steps."""
    return client is not None and len(items) > SLICED_ABOVE


def _add_steps(
    session: ConsumerSession,
    partitions: Sequence[FetchPartition],
    forgotten: Sequence[Forgotten],
    go_on: Callable[[], None],
) -> IncrementalWork[None]:
    for some in chunks(partitions):
        session.add(some)
        yield
    for gone in chunks(forgotten):
        for each in gone:
            session.remove(*each)
        yield
    go_on()


def _respond_changed(
    session: ConsumerSession,
    epoch: int,
    respond: Respond,
    client: Client | None,
    results: Sequence[FetchPartitionResult],
) -> None:
    if session.next_epoch != epoch:  # the consumer did not wait for this answer
        respond(ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id, ())
    elif _is_large(client, results):
        client.run(_respond_changed_steps(session, respond, results))
    else:
        respond(ErrorCode.NONE, session.id, session.unsent(results))


def _respond_changed_steps(
    session: ConsumerSession, respond: Respond, results: Sequence[FetchPartitionResult]
) -> IncrementalWork[None]:
    changed: list[FetchPartitionResult] = []
    for some in chunks(results):
        changed += session.unsent(some)
        yield
    respond(ErrorCode.NONE, session.id, changed)
