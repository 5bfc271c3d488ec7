"""BrokerLifecycle: registration, catching up, unfencing, controlled shutdown (KIP-631)."""

from __future__ import annotations

import random

from quorate.broker.controller.lifecycle import (
    BrokerLifecycle,
    BrokerUnregistered,
    LifecycleSettings,
    RegistrationRefused,
    State,
)
from quorate.quorum.controller.state.messages import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from quorate.quorum.ids import Uuid
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.broker.controller_double import ControllerDouble
from tests.unit.rpc.kafka.fakes import FakeClock

EPOCH = 42
REGISTRATION = BrokerRegistrationRequest(
    broker_id=4,
    cluster_id="c",
    incarnation_id=Uuid(bytes(16)),
    endpoints=(),
    features=(),
    rack=None,
    log_dirs=(),
    previous_broker_epoch=-1,
    replication_address=("h", 1),
)


class Broker:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.controller = ControllerDouble()
        self.states: list[State] = []
        self.failures: list[Exception] = []
        self.lifecycle = BrokerLifecycle(
            self.clock,
            random.Random(0),
            self.controller,
            LifecycleSettings(),
            REGISTRATION,
            on_state=self.states.append,
            on_failed=self.failures.append,
        )
        self.lifecycle.start()
        self.clock.advance(0)

    def last_heartbeat(self) -> BrokerHeartbeatRequest:
        heartbeat = self.controller.sent[-1]
        assert isinstance(heartbeat, BrokerHeartbeatRequest)
        return heartbeat

    def registered(self) -> None:
        self.controller.answer(BrokerRegistrationResponse(error=0, broker_epoch=EPOCH))
        self.clock.advance(0)

    def run(self) -> None:
        self.registered()
        self.lifecycle.metadata_replayed(EPOCH)
        self.controller.answer(BrokerHeartbeatResponse(error=0, caught_up=True))
        self.lifecycle.logs_loaded()
        self.clock.advance(0)
        self.controller.answer(BrokerHeartbeatResponse(error=0, caught_up=True, fenced=False))
        assert self.lifecycle.state is State.RUNNING


def test_the_way_to_running() -> None:
    broker = Broker()
    assert broker.controller.sent == [REGISTRATION]
    broker.registered()
    assert broker.last_heartbeat().broker_epoch == EPOCH
    assert broker.last_heartbeat().want_fence
    broker.lifecycle.metadata_replayed(EPOCH)
    broker.controller.answer(BrokerHeartbeatResponse(error=0, caught_up=True))
    assert broker.lifecycle.state is State.RECOVERY
    broker.lifecycle.logs_loaded()
    broker.clock.advance(0)
    assert not broker.last_heartbeat().want_fence
    broker.controller.answer(BrokerHeartbeatResponse(error=0, caught_up=True, fenced=False))
    assert broker.states == [State.STARTING, State.RECOVERY, State.RUNNING]


def test_it_stays_fenced_until_its_registration_is_replayed_and_its_logs_are_loaded() -> None:
    """An unfenced broker with an old image would serve partitions that it no longer leads
    (KAFKA-13959)."""
    broker = Broker()
    broker.registered()
    broker.lifecycle.logs_loaded()
    broker.lifecycle.metadata_replayed(EPOCH - 1)
    broker.controller.answer(BrokerHeartbeatResponse(error=0))
    broker.clock.advance(2000)
    assert broker.last_heartbeat().want_fence
    assert broker.last_heartbeat().metadata_offset == EPOCH - 1


def test_a_lost_registration_is_sent_again_and_a_refused_one_ends_the_broker() -> None:
    broker = Broker()
    broker.controller.answer(None)
    broker.clock.advance(150)
    assert broker.controller.sent == [REGISTRATION, REGISTRATION]
    broker.controller.answer(
        BrokerRegistrationResponse(error=ErrorCode.INCONSISTENT_CLUSTER_ID, message="another")
    )
    assert [type(each) for each in broker.failures] == [RegistrationRefused]
    assert "another" in str(broker.failures[0])


def test_a_broker_that_is_unregistered_while_it_runs_stops_with_a_sentence() -> None:
    broker = Broker()
    broker.run()
    broker.clock.advance(2000)
    sent = len(broker.controller.sent)
    broker.controller.answer(
        BrokerHeartbeatResponse(error=ErrorCode.BROKER_ID_NOT_REGISTERED, fenced=True)
    )
    assert [type(each) for each in broker.failures] == [BrokerUnregistered]
    assert "was removed from the cluster: its registration of epoch" in str(broker.failures[0])
    broker.clock.advance(60_000)
    assert len(broker.controller.sent) == sent, "it does not repeat its heartbeats"


def test_a_broker_that_is_unregistered_during_its_shutdown_goes_on_with_it() -> None:
    broker = Broker()
    broker.run()
    broker.lifecycle.begin_shutdown()
    broker.clock.advance(0)
    broker.controller.answer(
        BrokerHeartbeatResponse(error=ErrorCode.BROKER_ID_NOT_REGISTERED, fenced=True)
    )
    assert broker.failures == []
    assert broker.lifecycle.state is State.SHUTTING_DOWN


def test_registration_gives_up_after_its_timeout() -> None:
    broker = Broker()
    for _ in range(100):
        if broker.failures:
            break
        broker.controller.answer(
            BrokerRegistrationResponse(
                error=ErrorCode.DUPLICATE_BROKER_REGISTRATION, message="4 is at b9"
            )
        )
        broker.clock.advance(3000)
    assert [type(each) for each in broker.failures] == [RegistrationRefused]
    assert broker.clock.now_ms() >= 60_000
    last = "The last refusal was DUPLICATE_BROKER_REGISTRATION: 4 is at b9. "
    assert last in str(broker.failures[0])


def test_a_broker_that_no_controller_answers_says_so() -> None:
    broker = Broker()
    while not broker.failures:
        broker.controller.answer(None)
        broker.clock.advance(3000)
    assert "None answered. Check that the quorum is up" in str(broker.failures[0])


def test_heartbeats_keep_their_interval_and_a_fence_is_answered_at_once() -> None:
    broker = Broker()
    broker.run()
    sent = len(broker.controller.sent)
    broker.clock.advance(1999)
    assert len(broker.controller.sent) == sent
    broker.clock.advance(1)
    assert len(broker.controller.sent) == sent + 1
    broker.controller.answer(BrokerHeartbeatResponse(error=0, caught_up=True, fenced=True))
    broker.lifecycle.fenced()
    broker.clock.advance(0)
    assert len(broker.controller.sent) == sent + 2
    assert not broker.last_heartbeat().want_fence


def test_one_heartbeat_is_in_flight_at_a_time() -> None:
    broker = Broker()
    broker.run()
    broker.clock.advance(2000)
    sent = len(broker.controller.sent)
    broker.lifecycle.fenced()
    broker.clock.advance(10_000)
    assert len(broker.controller.sent) == sent
    broker.controller.answer(BrokerHeartbeatResponse(error=0, fenced=False))
    broker.clock.advance(0)
    assert len(broker.controller.sent) == sent + 1


def test_controlled_shutdown_waits_for_the_controller() -> None:
    broker = Broker()
    broker.run()
    broker.lifecycle.begin_shutdown()
    broker.clock.advance(0)
    assert broker.last_heartbeat().want_shut_down
    broker.controller.answer(BrokerHeartbeatResponse(error=0))
    assert broker.lifecycle.state is State.PENDING_CONTROLLED_SHUTDOWN
    broker.clock.advance(50)
    broker.controller.answer(BrokerHeartbeatResponse(error=0, should_shut_down=True))
    assert broker.states[-1] is State.SHUTTING_DOWN
    sent = len(broker.controller.sent)
    broker.clock.advance(60_000)
    assert len(broker.controller.sent) == sent


def test_a_broker_that_never_ran_stops_without_asking() -> None:
    broker = Broker()
    broker.lifecycle.begin_shutdown()
    assert broker.states[-1] is State.SHUTTING_DOWN


def test_a_failed_directory_is_in_every_heartbeat() -> None:
    broker = Broker()
    broker.run()
    directory = Uuid(bytes(15) + b"\xc8")
    sent = len(broker.controller.sent)
    broker.lifecycle.directory_failed(directory)
    broker.clock.advance(0)
    assert len(broker.controller.sent) == sent + 1, "the report does not wait for the interval"
    for _ in range(3):
        assert broker.last_heartbeat().offline_log_dirs == (directory,)
        broker.controller.answer(BrokerHeartbeatResponse(error=0, caught_up=True, fenced=False))
        broker.clock.advance(2000)
    broker.clock.advance(60_000)
    assert broker.failures == []


def test_a_failed_directory_that_stays_unreported_stops_the_broker() -> None:
    """KAFKA-15649: the controller would take this broker for the leader of lost logs."""
    broker = Broker()
    broker.run()
    broker.clock.advance(2000)
    in_flight = len(broker.controller.waiting)
    broker.lifecycle.directory_failed(Uuid(bytes(15) + b"\xc8"))
    broker.clock.advance(29_000)
    assert in_flight == 1
    broker.controller.answer(BrokerHeartbeatResponse(error=0, caught_up=True, fenced=False))
    assert broker.failures == [], "that answer belongs to a heartbeat before the failure"
    broker.clock.advance(1000)
    (failure,) = broker.failures
    assert "log.dir.failure.timeout.ms" in str(failure)
