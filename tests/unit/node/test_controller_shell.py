"""ControllerShell: group commit, answers after the commit, leadership lost in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import pytest

from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.state.context import Caller
from quorate.quorum.controller.state.decision_steps import DecisionSteps, Outcome, Step
from quorate.quorum.controller.state.result import NOTHING, Effect, Result
from quorate.quorum.controller.state.sessions import NEVER_MS
from quorate.quorum.ids import Uuid
from quorate.quorum.metadata import read_back
from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.framing import decode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    NoOpRecord,
    RemoveTopicRecord,
)
from quorate.quorum.node.controller import (
    controller_batch,
    controller_decision,
    controller_queue,
    controller_shell,
    uncommitted_decisions,
)
from quorate.quorum.node.controller.controller_batch import Refusal
from quorate.quorum.node.controller.controller_shell import ControllerShell
from quorate.quorum.protocol.codec import EncodeError
from quorate.quorum.raft.errors import NotLeader
from quorate.quorum.state_in_doubt import StateInDoubt
from tests.unit.rpc.kafka.fakes import FakeClock

EPOCH = 3


def config(number: int, size: int = 1) -> ConfigRecord:
    return ConfigRecord(resource_type=2, resource_name="t", name=f"k{number}", value="v" * size)


@dataclass
class FakeLog:
    """A log in memory. `on_append` runs inside of each append."""

    batches: list[list[bytes]] = field(default_factory=list)
    on_append: Callable[[], None] = lambda: None

    @property
    def end_offset(self) -> int:
        return sum(map(len, self.batches))

    def append(self, values: list[bytes]) -> int:
        self.on_append()
        self.batches.append(values)
        return self.end_offset - 1


@dataclass
class FakeRules:
    """Rules that return each request as its own Result, and store the offsets that they get."""

    offsets: list[int] = field(default_factory=list)
    deltas: list[ImageDelta] = field(default_factory=list)
    loaded_image: MetadataImage | None = None
    deactivated: int = 0

    def handle(
        self,
        request: Outcome | Exception,
        *,
        now_ms: int,
        next_offset: int,
        caller: Caller | None = None,
    ) -> Outcome:
        self.offsets.append(next_offset)
        if isinstance(request, Exception):
            raise request
        return request

    def resume(self, steps: DecisionSteps, *, now_ms: int, next_offset: int) -> Step | Result:
        self.offsets.append(next_offset)
        try:
            return next(steps)
        except StopIteration as end:
            return cast(Result, end.value)

    def activate(self, image: MetadataImage, **moment: Any) -> Result:
        return NOTHING

    def deactivate(self) -> None:
        self.deactivated += 1

    def replayed(self, image: MetadataImage, delta: ImageDelta) -> Result:
        self.deltas.append(delta)
        return NOTHING

    def loaded(self, image: MetadataImage) -> Result:
        self.loaded_image = image
        return NOTHING

    def deadline_ms(self) -> int:
        return NEVER_MS


class Shell:
    def __init__(self, linger_ms: int = 0) -> None:
        self.clock = FakeClock()
        self.log = FakeLog()
        self.rules = FakeRules()
        self.effects: list[Effect] = []
        self.committed_image = MetadataImage()
        self.shell = ControllerShell(
            self.clock,
            cast(Controller, self.rules),
            self.log,
            discard_uncommitted=self.discard_uncommitted,
            carry_out=self.effects.append,
            linger_ms=linger_ms,
        )
        self.shell.activate(MetadataImage(), EPOCH, in_transaction=False)
        self.answers: dict[str, object] = {}

    def discard_uncommitted(self) -> None:
        self.rules.loaded(self.committed_image)

    def submit(self, name: str, *records: MetadataRecord, atomic: bool = True) -> None:
        result = Result(records, f"done {name}", atomic=atomic)
        self.shell.submit(result, lambda answer: self.answers.__setitem__(name, answer))

    def fail(self, name: str, error: Exception) -> None:
        """Submit a request whose rule raises."""
        self.shell.submit(error, lambda answer: self.answers.__setitem__(name, answer))

    def run(self) -> None:
        self.clock.advance(0)

    def commit(self) -> None:
        image = self.shell.committed(self.log.end_offset)
        if image is not None:
            self.committed_image = image


def test_requests_linger_for_others_that_share_their_batch() -> None:
    each = Shell(linger_ms=25)
    each.submit("a", config(1))
    each.clock.advance(24)
    each.submit("b", config(2))
    assert each.log.batches == []
    each.clock.advance(1)
    assert [len(batch) for batch in each.log.batches] == [2]
    each.submit("c", config(3))
    each.clock.advance(24)
    assert len(each.log.batches) == 1, "the time begins again with the next request"
    each.clock.advance(1)
    assert [len(batch) for batch in each.log.batches] == [2, 1]


def test_many_requests_do_not_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_shell, "MAX_LINGERING", 3)
    each = Shell(linger_ms=25)
    for number in range(3):
        each.submit(str(number), config(number))
    each.run()
    assert [len(batch) for batch in each.log.batches] == [3]
    each.clock.advance(25)
    assert len(each.log.batches) == 1


def test_requests_that_linger_when_leadership_is_lost_are_refused() -> None:
    each = Shell(linger_ms=25)
    each.submit("a", config(1))
    each.shell.deactivate()
    assert each.answers == {"a": Refusal.NOT_CONTROLLER}
    each.clock.advance(25)
    assert each.log.batches == []


def test_what_waits_in_one_iteration_is_one_batch_and_is_answered_when_committed() -> None:
    each = Shell()
    each.submit("a", config(1))
    each.submit("b", config(2), config(3))
    each.run()
    assert [len(batch) for batch in each.log.batches] == [3]
    assert each.rules.offsets == [0, 1], "the second rules on what the first will have written"
    assert each.answers == {}
    each.shell.committed(1)
    assert each.answers == {"a": "done a"}
    each.commit()
    assert each.answers == {"a": "done a", "b": "done b"}
    assert each.committed_image.config(2, "t") == {"k1": "v", "k2": "v", "k3": "v"}
    assert decode_record(each.log.batches[0][0]) == config(1)


def test_an_answer_without_records_waits_for_what_it_rests_on() -> None:
    each = Shell()
    each.submit("read at once")
    each.run()
    assert each.answers == {"read at once": "done read at once"}
    each.submit("write", config(1))
    each.submit("read")
    each.run()
    assert "read" not in each.answers, "it may have seen what is not committed yet"
    each.commit()
    assert each.answers["read"] == "done read"


def test_leadership_lost_before_the_commit_leaves_the_outcome_unknown() -> None:
    each = Shell()
    each.submit("appended", config(1))
    each.run()
    each.submit("waiting", config(2))
    each.shell.deactivate()
    assert each.answers == {"appended": Refusal.UNKNOWN, "waiting": Refusal.NOT_CONTROLLER}
    assert each.rules.loaded_image is each.committed_image, "the latest image is gone"
    each.submit("late")
    assert each.answers["late"] is Refusal.NOT_CONTROLLER
    each.shell.committed(10)
    assert len(each.answers) == 3


@pytest.mark.parametrize("raises", [True, False])
def test_leadership_lost_inside_the_append_orphans_nobody(raises: bool) -> None:
    """A1 (tests/scenarios), redpanda PR #6546: code used the state of a role that had changed."""
    each = Shell()

    def lose() -> None:
        if raises:
            raise NotLeader(EPOCH, -1)
        each.shell.deactivate()

    each.log.on_append = lose
    each.submit("a", config(1))
    each.submit("b")
    each.run()
    refusal = Refusal.NOT_CONTROLLER if raises else Refusal.UNKNOWN
    assert each.answers == {"a": refusal, "b": Refusal.NOT_CONTROLLER}, "b changes nothing"
    assert not each.shell.active


def test_an_atomic_result_that_fits_no_batch_is_refused_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(controller_decision, "MAX_RESULT_BYTES", 1000)
    each = Shell()
    each.submit("large", config(1, 600), config(2, 600))
    each.submit("small", config(3))
    each.run()
    each.commit()
    assert each.answers == {"large": Refusal.TOO_LARGE, "small": "done small"}
    assert each.committed_image.config(2, "t") == {"k3": "v"}


def test_batches_are_bounded_and_offsets_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_batch, "MAX_BATCH_RECORDS", 4)
    monkeypatch.setattr(controller_decision, "MAX_BATCH_RECORDS", 4)
    each = Shell()
    each.submit("a", config(1), config(2), config(3))
    each.submit("b", config(4), config(5))
    each.submit("c", *[config(number) for number in range(6, 16)], atomic=False)
    each.run()
    assert [len(batch) for batch in each.log.batches] == [3, 2, 4, 4, 2]
    assert each.rules.offsets == [0, 3, 5]
    each.commit()
    assert each.answers == {name: f"done {name}" for name in "abc"}
    assert len(each.committed_image.config(2, "t")) == 15


def test_the_parts_of_a_result_are_bounded_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fenced broker with many partitions of hundreds of replicas each must not fill a batch
    beyond the bound of the metadata log: that would stop the active controller."""
    monkeypatch.setattr(controller_batch, "MAX_BATCH_BYTES", 1000)
    monkeypatch.setattr(controller_decision, "MAX_BATCH_BYTES", 1000)
    each = Shell()
    records = [config(number, 400) for number in range(5)] + [config(5, 2000)]
    each.submit("a", *records, atomic=False)
    each.run()
    assert [len(batch) for batch in each.log.batches] == [2, 2, 1, 1]
    each.commit()
    assert each.answers == {"a": "done a"}
    assert len(each.committed_image.config(2, "t")) == 6


def test_only_control_over_the_offset_moves_with_records_that_change_nothing() -> None:
    each = Shell()
    each.submit("noop", NoOpRecord())
    each.run()
    each.commit()
    assert each.committed_image.last.offset == 0


def test_requests_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_queue, "MAX_QUEUED", 2)
    each = Shell()
    for name in "abc":
        each.submit(name)
    assert each.answers == {"c": Refusal.NOT_CONTROLLER}


def test_a_rule_that_raises_fails_its_request_only(caplog: pytest.LogCaptureFixture) -> None:
    each = Shell()
    each.fail("bad", RecursionError("deep"))
    each.fail("worse", MemoryError())
    each.submit("good", config(1))
    each.run()
    each.commit()
    assert each.answers == {"bad": Refusal.FAILED, "worse": Refusal.FAILED, "good": "done good"}
    assert each.shell.failed_requests == 2
    assert "refused a RecursionError: it failed with RecursionError('deep') before" in caplog.text


def test_a_state_in_doubt_leaves_the_shell() -> None:
    each = Shell()
    each.fail("fatal", StateInDoubt("the log was left half changed"))
    with pytest.raises(StateInDoubt):
        each.run()


@pytest.mark.parametrize(
    "record",
    [
        ConfigRecord(resource_type=2, resource_name="t", name="k", value="v" * (1 << 20)),
        ConfigRecord(resource_type=2, resource_name="t", name="k", value="v\ud800"),
        ConfigRecord(resource_type=200, resource_name="t", name="k", value="v"),
        ConfigRecord(resource_type=2, resource_name="t", name=None, value="v"),  # type: ignore[arg-type]
        RemoveTopicRecord(topic_id=Uuid(bytes(16))),
    ],
    ids=["too long", "no UTF-8", "out of range", "null", "contradicts the image"],
)
def test_a_record_that_no_node_could_replay_is_refused_and_changes_nothing(
    record: MetadataRecord,
) -> None:
    each = Shell()
    each.submit("bad", config(1), record)
    each.submit("good", config(2))
    each.run()
    each.commit()
    assert each.answers == {"bad": Refusal.FAILED, "good": "done good"}
    assert each.committed_image.config(2, "t") == {"k2": "v"}
    assert [len(batch) for batch in each.log.batches] == [1]


def test_a_record_that_reads_back_as_another_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_back, "decode_record", lambda value: config(7))
    each = Shell()
    each.submit("bad", config(1))
    each.run()
    assert each.answers == {"bad": Refusal.FAILED}
    assert each.log.batches == []


def test_an_answer_that_cannot_be_encoded_is_refused_before_anything_is_appended() -> None:
    each = Shell()
    result = Result((config(1),), "x" * 40_000)

    def encode(response: object) -> bytes:
        raise EncodeError("too long")

    each.shell.submit(result, lambda answer: each.answers.__setitem__("a", answer), encode=encode)
    each.run()
    assert each.answers == {"a": Refusal.FAILED}
    assert each.log.batches == []


def test_long_work_is_appended_in_slices_between_which_the_loop_runs() -> None:
    each = Shell()
    handle = each.rules.handle

    def slow(request: Result, **facts: Any) -> Outcome:
        each.clock.time_ms += controller_shell.SLICE_MS // 2
        return handle(request, **facts)

    each.rules.handle = slow  # type: ignore[method-assign,assignment]
    for number in range(6):
        each.submit(str(number), config(number))
    for slices in (1, 2, 3):
        each.run()
        assert [len(batch) for batch in each.log.batches] == [2] * slices
    each.run()
    assert each.rules.offsets == [0, 1, 2, 3, 4, 5]


def test_what_waits_for_a_commit_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_shell, "MAX_UNCOMMITTED", 5)
    monkeypatch.setattr(uncommitted_decisions, "MAX_IMAGES", 3)
    each = Shell()
    for number in range(8):
        each.submit(str(number), config(number))
        each.run()
    assert each.answers == dict.fromkeys("567", Refusal.NOT_CONTROLLER)
    assert len(each.shell._decisions._images) == 3
    each.commit()
    assert each.answers == {
        **dict.fromkeys("567", Refusal.NOT_CONTROLLER),
        **{name: f"done {name}" for name in "01234"},
    }
    assert each.committed_image.last.offset == 4, "the newest image is kept"


def test_the_bytes_of_what_waits_for_a_commit_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_shell, "MAX_UNCOMMITTED_BYTES", 100)
    each = Shell()

    def submit(name: str, encode: Callable[[object], object], size_bytes: int) -> None:
        each.shell.submit(
            Result([config(len(name))]),
            partial(each.answers.__setitem__, name),
            encode=encode,
            size_bytes=size_bytes,
        )
        each.run()

    submit("bytes", lambda response: bytes(60), 0)
    submit("object", lambda response: response, 60)
    submit("late", lambda response: response, 0)
    assert each.answers == {"late": Refusal.NOT_CONTROLLER}
    each.commit()
    submit("again", lambda response: response, 0)
    each.commit()
    assert each.answers["again"] is not Refusal.NOT_CONTROLLER
    assert each.shell._decisions.waiting_bytes == 0


def test_a_request_that_waits_longer_than_its_timeout_is_not_decided() -> None:
    """The queue was not served for a while. Requests without a timeout wait (KIP-500)."""
    shell = Shell()
    for name, timeout_ms in (("patient", 500), ("late", 499), ("endless", 0), ("negative", -1)):
        shell.shell.submit(
            Result([config(len(name))]),
            partial(shell.answers.__setitem__, name),
            timeout_ms=timeout_ms,
        )
    shell.clock.time_ms += 500
    shell.clock.advance(0)
    assert shell.answers == {"late": Refusal.EXPIRED}
    assert (shell.shell.expired_requests, len(shell.rules.offsets)) == (1, 3)
    shell.shell.committed(shell.log.end_offset)
    assert set(shell.answers) == {"patient", "late", "endless", "negative"}
