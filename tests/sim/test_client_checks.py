"""Checks of clients and workloads that only a wrong answer can make fail: a test gives the answer.

The other checks of the workloads fail in tests/sim/test_workloads.py.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from quorate.quorum.ids import Uuid
from quorate.quorum.log.batches.batch import HEADER_BYTES, build_batch
from quorate.quorum.log.batches.record import Record
from quorate.quorum.protocol.errors import ErrorCode
from tests.sim.adversary.batches import sealed
from tests.sim.checks.committed_log import Violation
from tests.sim.checks.compacted_log import Keyed
from tests.sim.clients.clients import Consumer, Position, Topic, begins_with_a_record
from tests.sim.run import Simulation, play, simulation
from tests.sim.workloads.compacted import Compacted, Reader
from tests.sim.workloads.fetch_sessions import FetchSession, FetchSessions
from tests.sim.workloads.min_isr import MinIsr
from tests.sim.workloads.permissions import Permissions
from tests.sim.workloads.trimmed import Trimmed
from tests.sim.workloads.unregistered import Unregistered
from tests.sim.world.shape import Shape

TOPIC_ID = Uuid(bytes(16))
BROKER = 4
FATAL = ErrorCode.INVALID_REQUEST


@pytest.fixture
def stage() -> Iterator[Simulation]:
    """A cluster whose nodes have not started."""
    with simulation("client checks", Shape()) as stage:
        yield stage


def known(client: Any, name: str, partitions: int = 1) -> Any:
    """Return the client, which knows one leader for all partitions of a topic."""
    topic = Topic(TOPIC_ID)
    for each in range(partitions):
        topic.leaders[each], topic.epochs[each] = BROKER, 1
    client.topics[name] = topic
    return client


def answering(client: Any, answer: Any) -> Any:
    """Return the client, which gets this answer to each request."""

    async def ask(*request: Any, **named: Any) -> Any:
        return answer

    client.ask = client.ask_any = ask
    return client


def fails(stage: Simulation, work: Coroutine[Any, Any, Any], match: str) -> None:
    with pytest.raises(Violation, match=match):
        play(stage, work)


def one_partition(**fields: Any) -> Any:
    """Return a response to a Fetch with one partition."""
    values = {"error_code": 0, "records": None, "high_watermark": 1, "preferred_read_replica": -1}
    partition = SimpleNamespace(partition_index=0, **{**values, **fields})
    responses = (SimpleNamespace(partitions=(partition,)),)
    return SimpleNamespace(error_code=0, session_id=1, responses=responses)


def one_record(offset: int, value: bytes) -> bytes:
    return bytes(build_batch([Record(offset, 0, b"key", value)], leader_epoch=0))


# -- a consumer ----------------------------------------------------------------------------------


def consumer(stage: Simulation, answer: Any) -> Consumer:
    found: Consumer = answering(known(stage.consumer("reader"), "data"), answer)
    return found


def test_a_leader_refuses_a_fetch_for_good(stage: Simulation) -> None:
    reader = consumer(stage, one_partition(error_code=FATAL))
    fails(stage, reader.poll(("data", 0)), "fetch at 0 got INVALID_REQUEST")


def test_a_leader_sends_the_consumer_to_itself(stage: Simulation) -> None:
    reader = consumer(stage, one_partition(preferred_read_replica=BROKER))
    fails(stage, reader.poll(("data", 0)), "sent to the same broker, or with records")


def test_a_consumer_reads_above_the_high_watermark(stage: Simulation) -> None:
    reader = consumer(stage, one_partition(records=one_record(3, b"v"), high_watermark=3))
    fails(stage, reader.poll(("data", 0)), "read 3 to 4, the high watermark is 3")
    assert reader.positions["data", 0] == Position()


@pytest.mark.parametrize("payload", [b"\x01" * 40, b"\x80" * 40, b"\x7e" * 8, b""])
def test_a_broker_stores_a_batch_without_records(stage: Simulation, payload: bytes) -> None:
    stage.history.hostile_batches = True
    batch = one_record(0, b"v")
    assert begins_with_a_record(batch[HEADER_BYTES:])
    found = sealed(batch[:HEADER_BYTES] + payload)
    reader = consumer(stage, one_partition(records=found, high_watermark=1))
    fails(stage, reader.poll(("data", 0)), "the batch at 0 holds no records")


# -- fetch sessions ------------------------------------------------------------------------------


@pytest.fixture
def sessions(stage: Simulation) -> FetchSessions:
    work: FetchSessions = known(FetchSessions(stage), "sessions", 4)
    work._sessions[BROKER] = FetchSession(id=1, epoch=5)
    return work


def test_a_broker_accepts_a_wrong_epoch(stage: Simulation, sessions: FetchSessions) -> None:
    sessions.random = SimpleNamespace(randrange=lambda *bounds: 0)  # type: ignore[assignment]
    answering(sessions, one_partition())
    fails(stage, sessions._poll(BROKER), "broker 4 accepts a wrong epoch")


def test_a_broker_refuses_a_right_epoch(stage: Simulation, sessions: FetchSessions) -> None:
    session = sessions._sessions[BROKER]
    refused = sessions._refused(session, ErrorCode.INVALID_FETCH_SESSION_EPOCH, wrong=False)
    fails(stage, refused, "the right epoch 5 was refused")
    fails(stage, sessions._refused(session, FATAL, wrong=False), ": fetch: INVALID_REQUEST")


def test_a_forgotten_partition_is_answered(stage: Simulation, sessions: FetchSessions) -> None:
    taken = sessions._take_all(BROKER, one_partition(), [1, 2])
    fails(stage, taken, "sessions-0 was forgotten, and is answered")


def test_a_partition_of_a_session_fails(sessions: FetchSessions) -> None:
    with pytest.raises(Violation, match="fetch at 0: OFFSET_OUT_OF_RANGE"):
        sessions._failed(BROKER, 0, ErrorCode.OFFSET_OUT_OF_RANGE)


def test_records_of_a_session(sessions: FetchSessions) -> None:
    with pytest.raises(Violation, match="0 was read, above the high watermark"):
        sessions._take(0, one_record(0, b"v"), 0)
    sessions._take(0, one_record(0, b"v"), 1)
    sessions._positions[0] = 0
    with pytest.raises(Violation, match="b'w' at 0, before b'v'"):
        sessions._take(0, one_record(0, b"w"), 1)


# -- other workloads -----------------------------------------------------------------------------


def trimmed(stage: Simulation, low_watermark: int, error: int = 0) -> Trimmed:
    result = SimpleNamespace(error_code=error, low_watermark=low_watermark)
    answer = SimpleNamespace(topics=(SimpleNamespace(partitions=(result,)),))
    work: Trimmed = answering(known(Trimmed(stage), "trimmed"), answer)
    work._latest = 8
    work.random = SimpleNamespace(randrange=lambda *bounds: 5)  # type: ignore[assignment]
    return work


def test_delete_records_answers_a_low_watermark_below_the_offset(stage: Simulation) -> None:
    work = trimmed(stage, 4)
    fails(stage, work._delete_records(), "records below 5 are deleted, and 4 is lower")


def test_delete_records_fails_for_good(stage: Simulation) -> None:
    work = trimmed(stage, -1, FATAL)
    fails(stage, work._delete_records(), "DeleteRecords at 5: INVALID_REQUEST")


def reading(work: Any, name: str, found: Any) -> Any:
    async def read(*arguments: Any, **named: Any) -> Any:
        return found

    setattr(work, name, read)
    return work


def test_a_record_of_a_topic_with_a_changing_min_isr_is_lost(stage: Simulation) -> None:
    work = reading(MinIsr(stage), "read", [(0, b"guarded:1")])
    work.acknowledged[0] = b"guarded:1"
    play(stage, work.check())
    work.acknowledged[1] = b"guarded:2"
    fails(stage, work.check(), "guarded: b'guarded:2' is not at 1")


def test_records_of_a_compacted_topic_out_of_order(stage: Simulation) -> None:
    work = reading(Compacted(stage), "offset_of", 0)
    reading(work, "records", [Record(at, 0, b"key", b"v") for at in (2, 1)])
    work.acknowledged[2] = Keyed(b"key", b"v")
    fails(stage, work.check(), "compacted: offsets are out of order")


def test_a_reader_of_a_compacted_topic_is_refused(stage: Simulation) -> None:
    answer = one_partition(error_code=FATAL)
    work: Compacted = answering(known(Compacted(stage), "compacted"), answer)
    reader = Reader(0.0, BROKER, 1, 9, position=3)
    fails(stage, work._read_on(reader), "compacted: fetch at 3: INVALID_REQUEST")


def test_the_log_start_overtakes_a_reader(stage: Simulation) -> None:
    """Without this, the reader would ask for the removed offset again and again."""
    out_of_range = one_partition(error_code=ErrorCode.OFFSET_OUT_OF_RANGE, high_watermark=-1)
    rest = one_partition(records=one_record(7, b"v"), high_watermark=8)
    work: Compacted = known(reading(Compacted(stage), "offset_of", 7), "compacted")

    async def ask(broker: int, request: Any) -> Any:
        return rest if request.topics[0].partitions[0].fetch_offset == 7 else out_of_range

    reading(work, "refresh", None)
    work.ask = ask  # type: ignore[assignment]
    (record,) = play(stage, work.records("compacted", 0, 3, moves=True))
    assert record.offset == 7


def test_a_user_is_refused_what_was_permitted(stage: Simulation) -> None:
    work = reading(Permissions(stage), "_acknowledged", True)
    reading(work, "_change", (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "1"))
    fails(stage, work.step(), "user-1 was refused what an acknowledged ACL permits")


def test_unregister_broker_fails_for_good(stage: Simulation) -> None:
    work: Unregistered = answering(Unregistered(stage), SimpleNamespace(error_code=FATAL))
    machine = stage.cluster.brokers[0]
    fails(stage, work._unregister(machine), f"UnregisterBroker {machine.id}: INVALID_REQUEST")


# -- the end of a run ----------------------------------------------------------------------------


def test_a_node_tells_of_another_kraft_version() -> None:
    async def script(stage: Simulation) -> None:
        await stage.ready({})
        await stage.caught_up()
        found = stage.electorate.voting()
        stage.electorate.voting = lambda: found._replace(kraft_version=7)  # type: ignore[method-assign]
        await stage.caught_up()

    with simulation("kraft.version", Shape(brokers=0)) as stage:
        fails(stage, script(stage), "tells of kraft.version 0, it is")
