"""Every message of the table of RPCs is fuzzed: the requests one by one, the responses altered."""

from __future__ import annotations

from quorate.quorum.ids import ReplicaKey, Uuid
from quorate.quorum.rpc.messages import BY_CLASS, BY_NUMBER, RPCS
from tests.attacks.node_frames import node_frame, row
from tests.fuzz.controller_answers import ControllerAnswers, controller_answers
from tests.fuzz.engine import silent
from tests.fuzz.messages import Sender, every_row, originals

SENDER = Sender(cluster_id="c", peer=ReplicaKey(1, Uuid(b"p" * 16)))
REQUESTS = {rpc.request for rpc in RPCS if rpc.request is not None}


def test_every_request_of_the_table_has_an_original() -> None:
    assert {type(each) for each in originals(SENDER)} == REQUESTS


def test_every_original_can_be_read_by_a_node() -> None:
    for each in originals(SENDER):
        made = row(each)
        assert BY_NUMBER[made[0]].read(made) is not None


def test_every_field_of_every_request_is_altered() -> None:
    """An original without an element in an array would leave the fields of the element out."""
    rows = list(every_row(SENDER))
    for cls in REQUESTS:
        number = BY_CLASS[cls].number
        (original,) = (row(each) for each in originals(SENDER) if type(each) is cls)
        changed = {
            index
            for each in rows
            if each[0] == number and len(each) == len(original)
            for index in range(2, len(each))
            if node_frame(each[index : index + 1]) != node_frame(original[index : index + 1])
        }
        assert changed == set(range(2, len(original))), cls


def test_every_answer_to_a_controller_is_altered() -> None:
    """Each kind of input finds its answer. Voters get no other answers from voters."""
    with silent(), controller_answers() as target:
        for data in target.systematic():
            target.feed(data)
        target.check()
        assert isinstance(target, ControllerAnswers)
        assert all(target.altered.values()), target.altered
