"""Stories of brokers, topics and the quorum: the sentences, and their agreement with the image."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.quorum.analytics.log.errors import OutOfHistory
from quorate.quorum.analytics.replay.broker_story import explain_broker
from quorate.quorum.analytics.replay.chronicle import Chronicle
from quorate.quorum.analytics.replay.moment import moment
from quorate.quorum.analytics.replay.moment_json import standing
from quorate.quorum.analytics.replay.quorum_story import explain_quorum
from quorate.quorum.analytics.replay.topic_story import explain_topic
from quorate.quorum.metadata.records import NO_LEADER
from tests.unit.analytics.logs import batches, snapshot_of, write_segment
from tests.unit.analytics.ruled import Ruled
from tests.unit.metadata.kafka_dump import C1


def told(chronicle: Chronicle) -> list[tuple[int, str, str]]:
    return [(each.offset, each.what, each.why) for each in chronicle.happenings]


def test_the_story_of_a_broker(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, b"".join(batches()))
    story = explain_broker(tmp_path, 2)
    fenced = next(each for each in story.happenings if "It was fenced" in each.what)
    assert (fenced.offset, fenced.cause, fenced.inferred) == (18, "session-expired", False)
    assert fenced.what == (
        "It was fenced. It lost the leadership of 1 partition (a-1). "
        "It left the ISR of 2 partitions (a-0, a-1)."
    )
    assert fenced.why == "No heartbeat came for broker.session.timeout.ms."
    assert told(story)[-1][2] == "An administrator deleted the topic."
    with pytest.raises(OutOfHistory, match="this history knows no broker 99"):
        explain_broker(tmp_path, 99)


def test_the_story_of_a_broker_of_a_real_kafka() -> None:
    lines = told(explain_broker(C1, 5))
    assert lines[:2] == [
        (15, "It registered with broker epoch 15.", "A process of the broker started."),
        (18, "It was unfenced, so that it may lead and join ISRs.",
         "It had caught up with the metadata log."),
    ]  # fmt: skip
    assert (236, "In the same step broker 6 was fenced.") in [(at, why) for at, _, why in lines]
    assert lines[-2][1].startswith("It began a controlled shutdown. It lost the leadership of ")
    assert lines[-1][1:] == ("It was fenced.", "Its controlled shutdown was complete.")


def test_the_stories_of_topics(tmp_path: Path) -> None:
    (story,) = explain_topic(C1, "topic-1")
    lines = told(story)
    assert lines[0] == (
        77,
        "It was created with 2 partitions. cleanup.policy was set to compact.",
        "The partition was created with its topic.",
    )
    unclean = "Broker 6, the last leader, was elected uncleanly: data may be lost."
    assert [why for at, _, why in lines if at == 286] == [unclean]
    assert story.ending == "it has 2 partitions, 2 without a leader"
    write_segment(tmp_path, 0, b"".join(batches()))
    (first,) = explain_topic(tmp_path, "a")
    assert first.ending == "it is deleted"
    assert first.happenings[-1].what == "The topic was deleted."
    with pytest.raises(OutOfHistory, match="this history knows no never"):
        explain_topic(tmp_path, "never")


def test_the_story_of_the_quorum(tmp_path: Path) -> None:
    write_segment(tmp_path, 0, b"".join(batches()))
    story = explain_quorum(tmp_path)
    first, *_, last = [each for each in told(story) if "active controller" in each[1]]
    assert first[2] == "The log does not reach back to an earlier election."
    assert last[2] == "The voters elected it. The log does not say why the last one ended."
    assert "The log has no record of the 250 ms before." in last[1]
    kafka = explain_quorum(C1)
    assert kafka.ending == "the active controller is node 1, epoch 1, voters 1, 2 and 3"


def test_a_snapshot_is_the_beginning(tmp_path: Path) -> None:
    write_segment(tmp_path / "whole", 0, b"".join(batches()[:8]))
    image = moment(tmp_path / "whole").image
    end = image.last.offset + 1
    later = write_segment(tmp_path / "rest", end, b"".join(batches()[8:]))
    name = f"{end:020d}-{image.last.epoch:010d}.checkpoint"
    later.with_name(name).write_bytes(snapshot_of(image))
    first = explain_broker(tmp_path / "rest", 1).happenings[0]
    assert first.why == "The log begins with a snapshot." or first.cause == "registered"
    (topic,) = explain_topic(tmp_path / "rest", "a")
    assert topic.happenings[0].why == "The log begins with a snapshot."
    assert topic.ending == explain_topic(tmp_path / "rest", "a")[0].ending


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), steps=st.integers(20, 200))
def test_the_endings_agree_with_the_image(seed: int, steps: int) -> None:
    with TemporaryDirectory() as name:
        directory = Path(name)
        write_segment(directory, 0, Ruled(seed).run(steps))
        at = moment(directory)
        partitions = [each for _, _, each in at.image.all_partitions()]
        for broker_id in at.image.broker_ids():
            leads = sum(each.leader == broker_id for each in partitions)
            in_sync = sum(broker_id in each.isr for each in partitions)
            state = standing(at.image.brokers[broker_id])
            assert explain_broker(directory, broker_id).ending == (
                f"it is {state}, leads {leads} partition{'' if leads == 1 else 's'}, "
                f"in {in_sync} ISR{'' if in_sync == 1 else 's'}"
            )
        for topic in at.image.topic_names():
            of_topic = list(at.image.topics[at.image.topic_ids[topic]].partitions.values())
            alone = sum(each.leader == NO_LEADER for each in of_topic)
            many = len(of_topic)
            assert explain_topic(directory, topic)[-1].ending == (
                f"it has {many} partition{'' if many == 1 else 's'}, {alone} without a leader"
            )
        ending = explain_quorum(directory).ending
        assert ending.startswith(f"the active controller is node {at.leader}, epoch {at.epoch}, ")
