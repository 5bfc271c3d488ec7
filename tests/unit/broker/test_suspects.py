"""Suspects: an answer that would name a dying broker waits for the controller's decision, for a
bounded time.
"""

from __future__ import annotations

from quorate.broker.kafka.cluster.suspects import GRACE_MS, HOLD_MS, LISTED_MS, Suspects
from quorate.quorum.ids import ZERO_UUID, EpochOffset
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    RegisterBrokerRecord,
)
from quorate.quorum.metadata.replay import replay
from tests.unit.rpc.kafka.fakes import FakeClock

REGISTERED = RegisterBrokerRecord(
    broker_id=5, incarnation_id=ZERO_UUID, broker_epoch=3, end_points=(), fenced=False
)
FENCED = BrokerRegistrationChangeRecord(broker_id=5, broker_epoch=3, fenced=1)


class World:
    def __init__(self, *, enabled: bool = True) -> None:
        self.clock = FakeClock()
        self.image = MetadataImage()
        self.offset = -1
        self.apply(REGISTERED)
        self.suspects = Suspects(self.clock, lambda: self.image, enabled=enabled)
        self.answered = 0

    def apply(self, *records: MetadataRecord) -> ImageDelta:
        self.offset += len(records)
        self.image, delta = replay(self.image, records, EpochOffset(1, self.offset), 0)
        return delta

    def ask(self) -> bool:
        """Return True if the answer is held back."""

        def answer() -> None:
            self.answered += 1

        return self.suspects.hold(answer)


def test_answers_wait_for_the_fence() -> None:
    world = World()
    assert not world.ask()
    world.suspects.link_lost(5)
    assert world.ask()
    assert world.answered == 0
    world.suspects.image_changed(world.apply(FENCED))
    assert world.answered == 1
    assert not world.ask()


def test_a_suspect_that_lives_costs_a_bounded_delay() -> None:
    world = World()
    world.suspects.link_lost(5)
    assert world.ask()
    world.clock.advance(HOLD_MS)
    assert world.answered == 1
    assert not world.ask()


def test_a_client_that_asks_again_may_have_seen_a_death_first() -> None:
    world = World()

    def answer() -> None:
        world.answered += 1

    assert world.suspects.hold(answer, returning=True)
    world.clock.advance(GRACE_MS - 1)
    world.suspects.link_lost(5)
    world.clock.advance(1)
    assert world.answered == 0, "the death has shown here meanwhile"
    world.suspects.image_changed(world.apply(FENCED))
    assert world.answered == 1
    assert world.suspects.hold(answer, returning=True)
    world.clock.advance(GRACE_MS)
    assert world.answered == 2


def test_a_fenced_or_unknown_broker_is_no_suspect() -> None:
    world = World()
    world.suspects.link_lost(99)
    assert not world.ask()
    world.apply(FENCED)
    world.suspects.link_lost(5)
    assert not world.ask()


def test_hints_can_be_switched_off() -> None:
    world = World(enabled=False)
    world.suspects.link_lost(5)
    assert not world.ask()


def test_one_just_fenced_stays_listed_for_a_moment() -> None:
    """librdkafka loses half a second if a broker disappears from the list immediately."""
    world = World()
    assert world.suspects.listed(world.image.brokers[5])
    world.suspects.image_changed(world.apply(FENCED))
    assert world.suspects.listed(world.image.brokers[5])
    world.clock.advance(LISTED_MS)
    assert not world.suspects.listed(world.image.brokers[5])


def test_one_found_fenced_is_not_listed() -> None:
    world = World()
    world.apply(FENCED)
    assert not world.suspects.listed(world.image.brokers[5])


def test_brokers_that_were_fenced_long_ago_are_not_remembered() -> None:
    world = World()
    for broker_id in range(10, 40):
        fields = {"broker_id": broker_id, "incarnation_id": ZERO_UUID, "broker_epoch": 3}
        world.apply(RegisterBrokerRecord(**fields, end_points=(), fenced=False))  # type: ignore[arg-type]
        fence = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=3, fenced=1)
        world.suspects.image_changed(world.apply(fence))
        world.clock.advance(LISTED_MS)
    assert len(world.suspects._fenced_ms) == 1
