"""What active controllers got wrong elsewhere; see README.md beside this file."""

from __future__ import annotations

from quorate.quorum.controller.result import Result
from quorate.quorum.controller_shell import Refusal
from quorate.quorum.metadata.framing import decode_record
from quorate.quorum.metadata.records import NoOpRecord
from tests.unit.nodes.test_controller_shell import Shell, config


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
    assert each.answers["read"] is Refusal.UNKNOWN


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
    """etcd #20418 was closed by asking a quorum; here by one small record for all who ask."""
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
