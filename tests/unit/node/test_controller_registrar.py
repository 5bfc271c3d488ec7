"""The registration of a controller: when it is sent, retried and complete."""

from __future__ import annotations

import random

import pytest

from quorate.quorum.controller.state.messages import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata.image import METADATA_VERSION, ControllerRegistration, MetadataImage
from quorate.quorum.metadata.persistent_map import PersistentMap
from quorate.quorum.node.controller.controller_registrar import (
    FIRST_BACKOFF_MS,
    MAX_BACKOFF_MS,
    ControllerRegistrar,
    Done,
)
from quorate.quorum.node.feature_support import UnsupportedFeature, check_supported_features
from quorate.quorum.protocol.errors import ErrorCode
from tests.unit.rpc.kafka.fakes import FakeClock

ME = 3000
MINE, OTHER = Uuid(b"m" * 16), Uuid(b"o" * 16)
OK = ControllerRegistrationResponse(error=ErrorCode.NONE)
REFUSED = ControllerRegistrationResponse(error=ErrorCode.UNSUPPORTED_VERSION, message="too old")
BACKOFF_MS = round(FIRST_BACKOFF_MS * 1.02) + 1


class Bench:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.sent: list[Done] = []
        self.registrar = ControllerRegistrar(self.clock, random.Random(1), self.request, self.send)

    def request(self) -> ControllerRegistrationRequest:
        return ControllerRegistrationRequest(
            controller_id=ME, incarnation_id=MINE, endpoints=(), features=()
        )

    def send(self, request: ControllerRegistrationRequest, done: Done) -> None:
        assert request.incarnation_id == MINE
        self.sent.append(done)

    def follow(self, incarnation: Uuid | None, level: int = 27) -> None:
        self.registrar.follow(image(incarnation, level), ME, MINE)


def image(incarnation: Uuid | None, level: int) -> MetadataImage:
    controllers: PersistentMap[int, ControllerRegistration] = PersistentMap()
    if incarnation is not None:
        known = ControllerRegistration(id=ME, incarnation_id=incarnation, endpoints=())
        controllers = controllers.insert(ME, known)
    features: PersistentMap[str, int] = PersistentMap()
    return MetadataImage(controllers=controllers, features=features.insert(METADATA_VERSION, level))


@pytest.mark.parametrize("incarnation", [None, OTHER])
def test_it_registers_once_if_the_log_lacks_this_incarnation(incarnation: Uuid | None) -> None:
    bench = Bench()
    bench.follow(incarnation)
    bench.follow(incarnation)
    assert len(bench.sent) == 1
    bench.sent[0](OK)
    bench.follow(MINE)
    bench.clock.advance(10 * MAX_BACKOFF_MS)
    assert len(bench.sent) == 1


def test_it_does_not_register_twice_nor_without_support() -> None:
    bench = Bench()
    bench.follow(MINE)
    bench.follow(None, level=14)
    assert not bench.sent
    bench.follow(None, level=15)
    assert len(bench.sent) == 1


def test_it_tries_again_after_a_backoff_that_doubles() -> None:
    bench = Bench()
    bench.follow(None)
    for number, answer in enumerate((None, REFUSED, None)):
        assert len(bench.sent) == number + 1
        bench.sent[-1](answer)
        bench.clock.advance(round(0.97 * FIRST_BACKOFF_MS * 2**number))
        assert len(bench.sent) == number + 1
        bench.clock.advance(round(0.06 * FIRST_BACKOFF_MS * 2**number))
    bench.sent[-1](OK)
    bench.clock.advance(BACKOFF_MS)
    assert len(bench.sent) == 5, "the response was good, but the log still lacks the registration"


def test_the_backoff_is_bounded() -> None:
    bench = Bench()
    bench.follow(None)
    for _ in range(30):
        bench.sent[-1](None)
        bench.clock.advance(round(MAX_BACKOFF_MS * 1.03))
    assert len(bench.sent) == 31


def test_a_new_leader_ends_the_backoff() -> None:
    """A leader of an older release refuses each attempt. Its successor may know the request."""
    bench = Bench()
    bench.follow(None)
    for _ in range(12):
        bench.sent[-1](None)
        bench.clock.advance(round(MAX_BACKOFF_MS * 1.03))
    count = len(bench.sent)
    bench.sent[-1](None)
    bench.registrar.leader_changed()
    bench.clock.advance(BACKOFF_MS)
    assert len(bench.sent) == count + 1


def test_a_registration_of_another_process_is_overwritten() -> None:
    bench = Bench()
    bench.follow(MINE)
    bench.follow(OTHER)
    assert len(bench.sent) == 1


def test_a_closed_registrar_sends_nothing() -> None:
    bench = Bench()
    bench.follow(None)
    bench.registrar.close()
    bench.sent[0](None)
    bench.clock.advance(10 * MAX_BACKOFF_MS)
    bench.follow(OTHER)
    assert len(bench.sent) == 1


SUPPORTED = {METADATA_VERSION: (7, 27), "some.version": (0, 1)}


@pytest.mark.parametrize(
    "finalized", [{}, {METADATA_VERSION: 7}, {METADATA_VERSION: 27, "some.version": 1}]
)
def test_supported_levels_are_accepted(finalized: dict[str, int]) -> None:
    check_supported_features(finalized, SUPPORTED)


@pytest.mark.parametrize(
    ("finalized", "name"),
    [
        ({METADATA_VERSION: 28}, METADATA_VERSION),
        ({METADATA_VERSION: 6}, METADATA_VERSION),
        ({METADATA_VERSION: 27, "some.version": 2}, "some.version"),
        ({METADATA_VERSION: 27, "unknown.version": 1}, "unknown.version"),
    ],
)
def test_a_level_that_this_release_does_not_support(finalized: dict[str, int], name: str) -> None:
    with pytest.raises(UnsupportedFeature, match=f"The cluster uses {name} "):
        check_supported_features(finalized, SUPPORTED)
