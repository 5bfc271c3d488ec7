"""Historic bugs of active controllers (README.md of this folder)."""

from __future__ import annotations

import pytest

from quorate.quorum.controller.state.context import Caller
from quorate.quorum.controller.state.result import Result
from quorate.quorum.metadata.framing import decode_record
from quorate.quorum.metadata.records import NoOpRecord
from quorate.quorum.node.controller.controller_batch import Refusal
from quorate.quorum.protocol.schemas.reassignments import ListPartitionReassignmentsRequest
from tests.sim.run import Simulation, play, simulation
from tests.sim.scripts.staging import cluster_leads, healed, isolate, settled
from tests.unit.node.test_controller_shell import Shell, config


def read(each: Shell, name: str) -> None:
    """An administrator's question that changes nothing, as the controller's port hands it on."""
    result = Result((), f"done {name}")
    each.shell.submit(
        result, lambda answer: each.answers.__setitem__(name, answer), linearizable=True
    )


def test_r33_a_deposed_controller_does_not_answer_from_memory() -> None:
    """d-engine #381, etcd #20418: cut off with a minority, or stopped for a while, it went on
    answering what it had in memory while another was active. A question that comes when everything
    is committed waits for one more commit of this epoch, and there is none."""
    each = Shell()
    each.submit("write", config(1))
    each.run()
    each.commit()
    read(each, "read")
    each.run()
    assert each.answers == {"write": "done write"}, "another may be active by now"
    each.shell.deactivate()
    assert each.answers["read"] is Refusal.NOT_CONTROLLER, "ask the other"


def test_r33_a_commit_from_before_the_question_proves_nothing() -> None:
    """etcd #20418: what was under way when it was asked may have been acknowledged long ago, before
    the pause; only what is appended after the question counts."""
    each = Shell()
    each.submit("write", config(1))
    each.run()
    read(each, "read")
    each.run()
    each.shell.committed(1)
    assert each.answers == {"write": "done write"}
    each.commit()
    assert each.answers["read"] == "done read"


def test_r33_questions_of_one_moment_share_one_commit() -> None:
    """etcd #20418 was fixed by asking a quorum, here by one small record for all requests."""
    each = Shell()
    for name in "abc":
        read(each, name)
    each.run()
    assert [[decode_record(value) for value in batch] for batch in each.log.batches] == [
        [NoOpRecord()]
    ]
    each.commit()
    assert each.answers == {name: f"done {name}" for name in "abc"}
    each.submit("write", config(1))
    read(each, "read")
    each.run()
    assert len(each.log.batches[-1]) == 1, "what is written anyway is proof enough"


@pytest.mark.parametrize("paused", [True, False], ids=["SIGSTOP", "minority"])
def test_r33_who_asks_a_controller_that_was_replaced_hears_nothing_old(paused: bool) -> None:
    """etcd #20418 and d-engine #381 on a whole cluster: stopped, or cut off with a minority, while
    another controller became active; then asked, before any of its timers has told it."""

    async def story(stage: Simulation) -> None:
        await settled(stage)
        old = stage.active()
        assert old.process is not None and old.process.controller is not None
        port, shell = old.process.controller.port, old.process.controller.shell
        answers: list[object] = []
        if paused:
            old.process.host.pause()
            others = [each for each in stage.cluster.controllers if each is not old]
            await stage.until(lambda: any(map(cluster_leads, others)), "replaced", 10)
        else:
            isolate(stage, old)
        assert shell.active, "it does not know"
        caller = Caller("", 0)
        port._ask(ListPartitionReassignmentsRequest(), caller, None, 0, answers.append)
        if paused:
            old.process.host.resume()
        await stage.until(lambda: bool(answers), "answered", 10)
        await healed(stage)
        assert answers == [Refusal.NOT_CONTROLLER]

    with simulation("R33") as stage:
        play(stage, story(stage))
