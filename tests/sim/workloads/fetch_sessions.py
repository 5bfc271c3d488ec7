"""A consumer with incremental fetch sessions (KIP-227). It must read what full fetches would
return.

It has one session with each broker. It removes partitions from a session and adds them again, goes
back to older offsets, and sends wrong epochs. Brokers have few slots, so they also end sessions on
their own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from quorate.quorum.log.batches.batch import batches, records_of
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.protocol.schemas.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from tests.sim.clients.clients import Unreachable
from tests.sim.workloads.workload import BACKOFF_S, Workload, require

NAME = "sessions"
PARTITIONS = (0, 1, 2, 3)
MAX_BYTES = 400
"""Less than all partitions hold, so that no response has records of all of them."""
POLLS_OF_A_FOLLOWER = 10
LOST = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)


@dataclass(slots=True)
class FetchSession:
    """The session with one broker. Epoch 0 begins a new session and ends the session `id`."""

    id: int = 0
    epoch: int = 0
    known: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The offset and the leader epoch of each partition that the broker knows."""

    def restart(self) -> None:
        self.epoch = 0
        self.known.clear()


class FetchSessions(Workload):
    name_of = "sessions"
    keys: ClassVar[Mapping[str, str]] = {"max.incremental.fetch.session.cache.slots": "3"}

    def __init__(self, stage: Any) -> None:
        super().__init__(stage)
        self.taken: dict[int, dict[int, bytes]] = {each: {} for each in PARTITIONS}
        """The records that were read, by partition and offset."""
        self._sessions: dict[int, FetchSession] = {}
        self._positions = dict.fromkeys(PARTITIONS, 0)
        self._paused: set[int] = set()
        self._followers: dict[int, tuple[int, int]] = {}
        """The follower to read from, and the polls for which it is read, by partition."""
        self._number = 0

    async def prepare(self) -> None:
        while NAME not in self.topics or len(self.topics[NAME].leaders) < len(PARTITIONS):
            await self.create(NAME, len(PARTITIONS))
            await self.refresh()

    async def step(self) -> None:
        for _ in range(2):
            self._number += 1
            partition = self.random.choice(PARTITIONS)
            await self.produce(NAME, partition, b"session:%d" % self._number)
        self._change_its_mind()
        for broker in sorted(self._addresses):
            await self._poll(broker)

    def _change_its_mind(self) -> None:
        chance, partition = self.random.randrange(0, 12), self.random.choice(PARTITIONS)
        if chance == 0:
            self._positions[partition] = self.random.randrange(0, self._positions[partition] + 1)
            self.count("reads again")
        elif chance <= 2:
            self._paused ^= {partition}

    async def check(self) -> None:
        """Read everything with sessions, and then without one."""
        self._paused.clear()
        for partition in PARTITIONS:
            expected = dict(await self.read(NAME, partition, 0))
            while self._positions[partition] <= max(expected, default=-1):
                await self.refresh()
                with contextlib.suppress(Unreachable):  # a broker that found damage restarts
                    for broker in sorted(self._addresses):
                        await self._poll(broker)
                await self.pause(BACKOFF_S)
            end = max(expected, default=-1)  # a late write may be appended behind it
            found = {at: value for at, value in self.taken[partition].items() if at <= end}
            problem = _differing(found, expected)
            require(not problem, f"{NAME}-{partition}: {problem}")

    # -- one fetch -------------------------------------------------------------------------------

    def _source(self, partition: int) -> int:
        follower, polls = self._followers.get(partition, (-1, 0))
        if polls > 0:
            return follower
        return self.topics[NAME].leaders.get(partition, -1)

    async def _poll(self, broker: int) -> None:
        session = self._sessions.setdefault(broker, FetchSession())
        wanted = [
            each for each in PARTITIONS if each not in self._paused and self._source(each) == broker
        ]
        if not wanted and not session.id:
            return
        wrong = session.epoch > 0 and self.random.randrange(0, 20) == 0
        epochs = self.topics[NAME].epochs
        asked = {each: (self._positions[each], epochs.get(each, -1)) for each in wanted}
        request = self._request(session, asked, epoch=session.epoch + 3 * wrong)
        try:
            answer = await self.ask(broker, request)
        except Unreachable:
            session.restart()
            self._followers.clear()
            raise
        if answer.error_code:
            await self._refused(session, answer.error_code, wrong=wrong)
            return
        require(not wrong, f"{NAME}: broker {broker} accepts a wrong epoch")
        session.known = asked
        if answer.session_id == 0:
            self.count("fetches without a session")
            session.restart()
        else:
            self.count("full fetches" if session.epoch == 0 else "incremental fetches")
            session.epoch += 1
        session.id = answer.session_id
        await self._take_all(broker, answer, wanted)

    def _request(
        self, session: FetchSession, asked: Mapping[int, tuple[int, int]], *, epoch: int
    ) -> FetchRequest:
        """Return a request with the partitions whose offset or epoch the broker does not know."""
        topic_id = self.topics[NAME].id
        forgotten = tuple(each for each in session.known if each not in asked)
        changed = tuple(
            FetchPartition(
                partition=each,
                current_leader_epoch=leader_epoch,
                fetch_offset=offset,
                partition_max_bytes=MAX_BYTES,
            )
            for each, (offset, leader_epoch) in asked.items()
            if session.known.get(each) != (offset, leader_epoch)
        )
        gone = ForgottenTopic(topic_id=topic_id, partitions=forgotten)
        return FetchRequest(
            max_wait_ms=20,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            session_id=session.id,
            session_epoch=epoch,
            topics=(FetchTopic(topic_id=topic_id, partitions=changed),) if changed else (),
            forgotten_topics_data=(gone,) if forgotten else (),
        )

    async def _refused(self, session: FetchSession, error: int, *, wrong: bool) -> None:
        code = ErrorCode.of(error)
        if code is ErrorCode.INVALID_FETCH_SESSION_EPOCH and wrong:
            self.count("wrong epochs")
            return  # the session continues
        require(code in LOST or code.retriable, f"{NAME}: fetch: {code.name}")
        require(
            code is not ErrorCode.INVALID_FETCH_SESSION_EPOCH,
            f"{NAME}: the right epoch {session.epoch} was refused",
        )
        if code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.count("sessions that ended")
            session.id = 0
        session.restart()
        await self.refresh()

    async def _take_all(self, broker: int, answer: Any, wanted: list[int]) -> None:
        stale = False
        for topic in answer.responses:
            for each in topic.partitions:
                partition = each.partition_index
                require(partition in wanted, f"{NAME}-{partition} was forgotten, and is answered")
                if each.error_code:
                    stale = True
                    self._failed(broker, partition, each.error_code)
                elif each.preferred_read_replica >= 0:
                    chosen = each.preferred_read_replica
                    self._followers[partition] = chosen, POLLS_OF_A_FOLLOWER
                else:
                    self._take(partition, each.records, each.high_watermark)
        for partition in wanted:
            follower, polls = self._followers.get(partition, (-1, 0))
            if follower == broker:
                self._followers[partition] = follower, polls - 1
        if stale:
            await self.refresh()

    def _failed(self, broker: int, partition: int, error: int) -> None:
        follower, polls = self._followers.pop(partition, (-1, 0))
        code = ErrorCode.of(error)
        from_follower = follower == broker and polls > 0
        require(
            code.retriable or (from_follower and code is ErrorCode.OFFSET_OUT_OF_RANGE),
            f"{NAME}-{partition}: fetch at {self._positions[partition]}: {code.name}",
        )

    def _take(self, partition: int, records: Any, high_watermark: int) -> None:
        if not records:
            return
        data = bytes(records)
        for at, header in batches(data):
            for record in records_of(data, at, header):
                if record.offset < self._positions[partition]:
                    continue
                require(
                    record.offset < high_watermark,
                    f"{NAME}-{partition}: {record.offset} was read, above the high watermark",
                )
                value = bytes(record.value or b"")
                before = self.taken[partition].setdefault(record.offset, value)
                require(
                    before == value,
                    f"{NAME}-{partition}: {value!r} at {record.offset}, before {before!r}",
                )
            self._positions[partition] = max(self._positions[partition], header.next_offset)


def _differing(found: Mapping[int, bytes], expected: Mapping[int, bytes]) -> str:
    """Return the first difference between the records that were read with sessions and without, or
    ""."""
    for offset in sorted({*found, *expected}):
        with_one, without = found.get(offset), expected.get(offset)
        if with_one != without:
            return f"{with_one!r} was read at {offset} with a session, and {without!r} without one"
    return ""
