"""Fetches partitions that this broker follows from one leader's broker, one request at a time.

Each link has one incremental session (KIP-227). A request names only the partitions whose fetch
offset moved or whose last answer was an error. The leader answers with the partitions that changed.

Rules:

- A fetch at an offset acknowledges everything below it. A partition is therefore named again only
  after its append, and nothing is fetched ahead.
- A partition outside of the ISR is not named while the follower's throttle holds it back
  (`replication_throttle.py`). It is tried again with each request, thus at the latest when the
  present one has waited for replica.fetch.wait.max.ms.
- An answer counts only for the leader epoch in which it was requested.
- An error delays one partition by replica.fetch.backoff.ms at most. A lost link delays all of them,
  by a wait that doubles from RECONNECT_FIRST_MS to replica.fetch.backoff.ms. New metadata ends
  every wait.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

from quorate.broker.replication.fetches.fetch_session_cache import FIRST_EPOCH, epoch_after
from quorate.broker.replication.follower.partition_fetch_state import (
    FetchAction,
    FetcherContext,
    PartitionFetchState,
)
from quorate.broker.replication.partitions.fetcher_numbers import client_id_of
from quorate.broker.replication.partitions.hosted_partition import HostedPartition, Key
from quorate.broker.replication.partitions.settings import ReplicationSettings
from quorate.quorum.log_limit import LogLimit
from quorate.quorum.protocol.apis import APIS, ApiKey
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.hot.fetch_request import (
    REPLICA_FETCH_VERSION,
    FetchRequest,
    build_fetch_request,
)
from quorate.quorum.protocol.hot.fetch_response import FetchPartitionResult, parse_fetch_response
from quorate.quorum.protocol.varint import DecodeError
from quorate.quorum.rpc.delivery import raise_failure
from quorate.quorum.rpc.kafka.client import ClientError, ClientSettings, KafkaClient
from quorate.quorum.seams import Address, Seams, Timer, TransportError

RECONNECT_FIRST_MS = 20
"""The first wait after a lost link or a refused session."""
LATE_MS = 1000
"""The time, in ms, after replica.fetch.wait.max.ms from which an answer is logged as late."""
CONNECT_TIMEOUT_MS = 1000  # short, because a follower without a leader leaves the ISR

logger = logging.getLogger("quorate.broker.replication")


class ReplicaFetcher:
    """One fetcher from one leader's broker (Kafka's ReplicaFetcherThread). The event loop owns it.

    Invariant: at most one request is in flight."""

    def __init__(
        self,
        seams: Seams,
        settings: ReplicationSettings,
        context: FetcherContext,
        leader_id: int,
        number: int,
        address: Address,
    ) -> None:
        """Begin without partitions and without a link; the first `follow` opens it. `number`
        distinguishes the fetchers from this leader. `address` is the leader's node port."""
        self.address = address
        self._seams = seams
        self._clock = seams.clock
        self._settings = settings
        self._context = context
        self._leader_id = leader_id
        self._number = number
        self._partitions: dict[Key, PartitionFetchState] = {}
        self._to_request: dict[Key, PartitionFetchState] = {}  # named in the next request
        self._reported: dict[Key, None] = {}  # named in the next request, too
        self._forgotten: dict[Key, None] = {}
        self._backing_off: dict[Key, PartitionFetchState] = {}
        self._flushing: dict[Key, PartitionFetchState] = {}  # no fetch is sent before their flushes
        self._client: KafkaClient | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._in_flight = False
        self._sent_ms = 0
        self._late = LogLimit(self._clock)
        self._scheduled = False
        self._session_id = 0
        self._session_epoch = FIRST_EPOCH
        self._failures = 0
        self._retry: Timer | None = None
        self._backoff: Timer | None = None
        self._closed = False

    def __len__(self) -> int:
        """Return the number of followed partitions."""
        return len(self._partitions)

    def followed(self) -> list[HostedPartition]:
        """Return the followed partitions, also those that wait or have stopped."""
        return [each.hosted for each in self._partitions.values()]

    def hosted(self, key: Key) -> HostedPartition | None:
        """Return the followed partition, or None."""
        followed = self._partitions.get(key)
        return None if followed is None else followed.hosted

    def lags(self) -> Iterator[tuple[HostedPartition, int]]:
        """Yield each followed partition with its lag in records."""
        return ((each.hosted, each.lag) for each in self._partitions.values())

    # --- what to fetch

    def follow(self, hosted: HostedPartition) -> None:
        """Fetch a partition from its log end, in its present leader epoch. Call it again for each
        new epoch."""
        followed = PartitionFetchState(hosted, hosted.partition.leader_epoch)
        self._partitions[hosted.key] = followed
        self._backing_off.pop(hosted.key, None)
        self._forgotten.pop(hosted.key, None)
        if hosted.log.must_flush:
            self._to_request.pop(hosted.key, None)
            self._flush(hosted.key, followed)
        else:
            self._flushing.pop(hosted.key, None)
            self._to_request[hosted.key] = followed
            self._send_soon()

    def unfollow(self, key: Key) -> None:
        """Stop fetching a partition. Ignore one that is not followed."""
        if self._partitions.pop(key, None) is not None:
            for waiting in (self._to_request, self._reported, self._backing_off, self._flushing):
                waiting.pop(key, None)
            self._forgotten[key] = None

    def report(self, key: Key) -> None:
        """Name a partition in the next request, because its log start has moved. Ignore one that is
        not followed, or that waits for its flush or after a failure and is named then."""
        if key in self._partitions and not (key in self._flushing or key in self._backing_off):
            # Not in `_to_request`: the answer that is on its way still counts. It may hold a high
            # watermark, which the leader sends once.
            self._reported[key] = None
            self._send_soon()

    def end_backoffs(self) -> None:
        """Retry everything that failed, because new metadata may have removed the cause."""
        self._to_request.update(self._backing_off)
        self._backing_off.clear()
        self._failures = 0
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        self._send_soon()

    def close(self) -> None:
        """Close the link and cancel all timers. Nothing is appended any more."""
        self._closed = True
        for timer in (self._retry, self._backoff):
            if timer is not None:
                timer.cancel()
        if self._connecting is not None:
            self._connecting.cancel()
        if self._client is not None:
            self._client.close()

    # --- one request at a time

    def _send_soon(self) -> None:
        if not self._scheduled and not self._in_flight and not self._closed:
            self._scheduled = True
            self._clock.call_soon(self._send)

    def _send(self) -> None:
        self._scheduled = False
        if self._closed or self._in_flight or self._retry is not None or not self._partitions:
            return
        if self._flushing:
            return
        if self._client is None:
            if self._connecting is None:
                self._connecting = asyncio.get_running_loop().create_task(self._connect())
                self._connecting.add_done_callback(raise_failure)
            return
        self._in_flight = True
        self._sent_ms = self._clock.now_ms()
        self._client.send_raw(
            APIS[ApiKey.FETCH],
            REPLICA_FETCH_VERSION,
            build_fetch_request(self._next_request()),
            done=self._answered,
            timeout_ms=self._settings.replica_socket_timeout_ms,
        )

    def _next_request(self) -> FetchRequest:
        settings = self._settings
        if self._session_epoch == FIRST_EPOCH:
            self._to_request = {
                key: each for key, each in self._partitions.items() if key not in self._backing_off
            }
            self._forgotten.clear()
        for key in self._reported:
            if key not in self._backing_off:
                self._to_request[key] = self._partitions[key]
        self._reported.clear()
        named = self._to_request
        held_back: dict[Key, PartitionFetchState] = {}
        if self._context.throttle.exceeded:
            held_back = {key: each for key, each in named.items() if each.may_be_held_back}
            named = {key: each for key, each in named.items() if key not in held_back}
        max_bytes = settings.replica_fetch_max_bytes
        request = FetchRequest(
            self._context.broker_id,
            self._context.broker_epoch(),
            settings.replica_fetch_wait_max_ms,
            settings.replica_fetch_min_bytes,
            settings.replica_fetch_response_max_bytes,
            0,
            self._session_id,
            self._session_epoch,
            [each.request(key, max_bytes) for key, each in named.items()],
            [("", topic_id, partition_id) for topic_id, partition_id in self._forgotten],
            "",
        )
        self._to_request = held_back
        self._forgotten.clear()
        return request

    def _answered(self, body: memoryview | None, error: ClientError | None) -> None:
        self._in_flight = False
        if self._closed:
            return
        if body is None:
            self._lost(str(error))
            return
        self._note_late(self._clock.now_ms() - self._sent_ms)
        try:
            response = parse_fetch_response(body, REPLICA_FETCH_VERSION)
        except DecodeError as malformed:
            self._lost(str(malformed))
            return
        if response.error:
            self._restart_session(response.error)
            return
        self._failures = 0
        self._session_id = response.session_id
        self._session_epoch = epoch_after(self._session_epoch)
        for result in response.partitions:
            self._take(result)
        self._send()

    def _note_late(self, took_ms: int) -> None:
        """Log an answer that came long after the leader should have sent it."""
        wait_ms = self._settings.replica_fetch_wait_max_ms
        if took_ms < wait_ms + LATE_MS:
            return
        left_out = self._late.passes("late answer")
        if left_out is not None:
            logger.warning(
                "broker %d answered a fetch after %d ms, although it waits for records for %d ms "
                "at most (replica.fetch.wait.max.ms): the link or one of the brokers is slow%s",
                self._leader_id,
                took_ms,
                wait_ms,
                left_out,
                extra={"event": "late-fetch"},
            )

    def _take(self, result: FetchPartitionResult) -> None:
        key = (result.topic_id, result.partition)
        followed = self._partitions.get(key)
        if followed is None or key in self._to_request:  # requested again, in another epoch
            return
        try:
            action = followed.apply(result, self._context, self._clock.wall_ms())
        except OSError as error:
            self._context.on_disk_failure(error)
            return
        if action is FetchAction.FETCH:
            self._to_request[key] = followed
        elif action is FetchAction.FLUSH:
            self._flush(key, followed)
        elif action is FetchAction.BACK_OFF:
            self._backing_off[key] = followed
            self._watch_backoff()

    def _flush(self, key: Key, followed: PartitionFetchState) -> None:
        """Flush the log before the next fetch, whose offset acknowledges everything below it.

        The other partitions wait, too, as in Kafka. A fetch that is already waiting at the leader
        would delay this partition longer than the flush delays them."""
        self._flushing[key] = followed

        def flushed() -> None:
            if self._flushing.get(key) is followed:
                del self._flushing[key]
                self._to_request[key] = followed
            self._send_soon()

        self._context.flush(followed.hosted, flushed)

    def _restart_session(self, error: int) -> None:
        logger.info(
            "broker %d answered the fetch session with %s; it begins a new session",
            self._leader_id,
            ErrorCode.of(error).name,
        )
        self._session_id, self._session_epoch = 0, FIRST_EPOCH
        self._retry_later()

    # --- backoffs and the link

    def _watch_backoff(self) -> None:
        if self._backoff is None:
            delay_ms = self._settings.replica_fetch_backoff_ms
            self._backoff = self._clock.call_later(delay_ms, self._backoff_over)

    def _backoff_over(self) -> None:
        self._backoff = None
        self._to_request.update(self._backing_off)
        self._backing_off.clear()
        self._send_soon()

    async def _connect(self) -> None:
        client_settings = ClientSettings(
            client_id=client_id_of(self._context.broker_id, self._number),
            request_timeout_ms=self._settings.replica_socket_timeout_ms,
            connect_timeout_ms=CONNECT_TIMEOUT_MS,
            max_frame_bytes=self._settings.max_frame_bytes,
        )
        try:
            client = await KafkaClient.connect(
                self._seams.transport, self._clock, self.address, client_settings
            )
        except TransportError as error:
            self._connecting = None
            self._lost(str(error))
            return
        self._connecting = None
        if self._closed:
            client.close()
            return
        if reason := self._settings.proof.refusal(client.link.identity, self._leader_id):
            client.close()
            self._lost(reason)
            return
        self._client = client
        self._session_id, self._session_epoch = 0, FIRST_EPOCH
        self._send()

    def _lost(self, reason: str) -> None:
        if self._failures == 0:
            self._context.link_lost(self._leader_id)
            logger.info(
                "cannot fetch from broker %d at %s: %s; retrying",
                self._leader_id,
                self.address,
                reason,
            )
        if self._client is not None:
            self._client.close()
            self._client = None
        self._retry_later()

    def _retry_later(self) -> None:
        delay_ms = min(
            RECONNECT_FIRST_MS << min(self._failures, 10), self._settings.replica_fetch_backoff_ms
        )
        self._failures += 1
        if self._retry is None and not self._closed:
            self._retry = self._clock.call_later(delay_ms, self._retry_now)

    def _retry_now(self) -> None:
        self._retry = None
        self._send()
