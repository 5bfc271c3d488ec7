"""Decisions in steps: one batch in each iteration of the loop, and no other decision in between."""

from __future__ import annotations

import pytest

from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.state.decision_steps import STEP_RECORDS, DecisionSteps, Outcome
from quorate.quorum.controller.state.messages import BrokerRegistrationResponse
from quorate.quorum.controller.state.result import Result
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import ConfigRecord
from quorate.quorum.node.controller import controller_decision
from quorate.quorum.node.controller.controller_batch import Refusal
from quorate.quorum.node.controller.controller_shell import ControllerShell
from quorate.quorum.raft.errors import NotLeader
from quorate.quorum.state_in_doubt import StateInDoubt
from tests.unit.controller.harness import Driver, registration
from tests.unit.node.test_controller_shell import EPOCH, FakeLog, Shell, config
from tests.unit.rpc.kafka.fakes import FakeClock


def three_steps() -> DecisionSteps:
    """Two records, a pause, two records, and one with the response."""
    yield [config(1), config(2)]
    yield None
    yield [config(3), config(4)]
    return Result([config(5)], "done")


def failing(error: Exception, *, after: int) -> DecisionSteps:
    """Yield `after` records, one in each step, and raise."""
    for number in range(after):
        yield [config(number)]
    yield None
    raise error


def ask(shell: Shell, name: str, outcome: Outcome) -> None:
    shell.shell.submit(outcome, lambda answer: shell.answers.__setitem__(name, answer))


def lengths(shell: Shell) -> list[int]:
    return [len(batch) for batch in shell.log.batches]


def test_each_step_is_one_batch_in_an_iteration_of_its_own() -> None:
    each = Shell()
    ask(each, "long", three_steps())
    seen = []
    for _ in range(4):
        each.run()
        seen.append(lengths(each))
    assert seen == [[2], [2], [2, 2], [2, 2, 1]]
    assert each.rules.offsets == [0, 0, 2, 2, 4], "each step decides at the end of the log"
    each.shell.committed(4)
    assert each.answers == {}
    each.commit()
    assert each.answers == {"long": "done"}


def test_other_requests_and_events_wait_for_the_last_step() -> None:
    each = Shell()
    ask(each, "long", three_steps())
    each.run()
    each.submit("other", config(6))
    each.shell.handle_event(lambda *_: Result([config(7)]))
    for _ in range(2):
        each.run()
    assert lengths(each) == [2, 2], "no other record is between those of the decision"
    each.run()
    assert lengths(each) == [2, 2, 3]
    each.commit()
    assert list(each.answers) == ["long", "other"]
    assert set(each.committed_image.config(2, "t")) == {f"k{number}" for number in range(1, 8)}


def test_an_event_may_take_several_steps() -> None:
    each = Shell()
    each.shell.handle_event(lambda *_: three_steps())
    assert lengths(each) == [2], "the first step is done before the return"
    for _ in range(3):
        each.run()
    assert lengths(each) == [2, 2, 1]


@pytest.mark.parametrize(("iterations", "refusal"), [(1, Refusal.UNKNOWN), (0, None)])
def test_leadership_lost_between_two_steps(iterations: int, refusal: Refusal | None) -> None:
    each = Shell()
    ask(each, "long", three_steps())
    for _ in range(iterations):
        each.run()
    each.shell.deactivate()
    assert each.answers == {"long": refusal or Refusal.NOT_CONTROLLER}
    each.run()
    assert lengths(each) == [2] * iterations, "no step runs after the loss"
    each.shell.activate(MetadataImage(), EPOCH + 1, in_transaction=False)
    each.submit("next", config(8))
    each.run()
    assert lengths(each) == [2] * iterations + [1]


def test_leadership_lost_inside_of_a_step() -> None:
    each = Shell()

    def lose() -> None:
        raise NotLeader(EPOCH, -1)

    ask(each, "long", three_steps())
    each.run()
    each.log.on_append = lose
    each.run()
    each.run()
    assert each.answers == {"long": Refusal.UNKNOWN}
    assert not each.shell.active
    each.run()
    assert lengths(each) == [2]


def test_a_step_that_fails_refuses_the_request_and_not_the_node() -> None:
    each = Shell()
    ask(each, "first", failing(ValueError("a bug"), after=0))
    ask(each, "later", failing(ValueError("a bug"), after=2))
    for _ in range(6):
        each.run()
    each.commit()
    assert each.answers == {"first": Refusal.FAILED, "later": Refusal.UNKNOWN}
    assert set(each.committed_image.config(2, "t")) == {"k0", "k1"}
    each.submit("next", config(8))
    each.run()
    assert lengths(each) == [1, 1, 1]


@pytest.mark.parametrize("error", [StateInDoubt("broken"), ValueError("a bug")])
def test_a_step_of_an_event_that_fails_stops_the_node(error: Exception) -> None:
    each = Shell()
    each.shell.handle_event(lambda *_: failing(error, after=1))
    each.run()
    with pytest.raises(type(error)):
        each.run()


def test_an_atomic_result_with_many_records_is_prepared_in_steps_and_is_one_batch() -> None:
    each = Shell()
    count = 3 * STEP_RECORDS
    each.submit("large", *map(config, range(count)))
    for _ in range(4):
        each.run()
    assert lengths(each) == []
    each.log.batches.append([b"appended by Raft itself"])
    each.run()
    assert lengths(each) == [1, count]
    each.commit()
    assert each.answers == {"large": "done large"}
    assert each.committed_image.last.offset == count, "the image knows the moved offset"


def test_a_large_atomic_result_that_fits_no_batch_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(controller_decision, "MAX_RESULT_BYTES", 1000)
    each = Shell()
    each.submit("large", *map(config, range(3 * STEP_RECORDS)))
    for _ in range(6):
        each.run()
    assert each.answers == {"large": Refusal.TOO_LARGE}
    assert lengths(each) == []


def test_other_results_with_many_records_are_appended_in_steps() -> None:
    each = Shell()
    records: list[ConfigRecord] = [*map(config, range(2 * STEP_RECORDS + 1))]
    each.submit("large", *records, atomic=False)
    seen = []
    for _ in range(4):
        each.run()
        seen.append(sum(lengths(each)))
    assert seen == [STEP_RECORDS, 2 * STEP_RECORDS, 2 * STEP_RECORDS + 1, 2 * STEP_RECORDS + 1]


def test_a_replacement_larger_than_a_batch_may_be_succeeds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before, the removals and the registration were one batch, and the answer was TOO_LARGE."""
    driver = Driver()
    driver.start(1, 2)
    driver.create("t", *[(1, 2)] * (4 * STEP_RECORDS))
    monkeypatch.setattr(controller_decision, "MAX_RESULT_BYTES", 100 * STEP_RECORDS)
    controller: Controller = driver.controller
    controller.deactivate()
    clock, log, answers = FakeClock(), FakeLog([[b""] * len(driver.log)]), list[object]()
    shell = ControllerShell(
        clock, controller, log, discard_uncommitted=lambda: None, carry_out=lambda _: None
    )
    shell.activate(driver.image, EPOCH, in_transaction=False)
    controller.connected(1, driver.broker(1).epoch, "b1")
    controller.connection_lost(1, driver.broker(1).epoch)
    shell.submit(registration(1, 2), answers.append)
    for _ in range(40):
        clock.advance(0)
    shell.committed(log.end_offset)
    (answer,) = answers
    assert isinstance(answer, BrokerRegistrationResponse), answer
    assert controller.image.brokers[1].epoch == answer.broker_epoch == log.end_offset - 1
    assert not controller.index.partitions_in_isr(1)
