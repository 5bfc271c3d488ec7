"""Work over a whole image in steps: the result equals that of one step, and is invisible until the
end."""

from __future__ import annotations

import random
import sys

import pytest

from quorate.quorum.controller.controller import Controller
from quorate.quorum.controller.state.settings import ControllerSettings
from quorate.quorum.ids import EpochOffset, Uuid
from quorate.quorum.incremental_work import IncrementalWork, T, finished
from quorate.quorum.metadata import pace as steps
from quorate.quorum.metadata.difference import difference, differing
from quorate.quorum.metadata.image import MetadataImage, Partition
from quorate.quorum.metadata.pace import freed, in_order
from quorate.quorum.metadata.records import (
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from quorate.quorum.metadata.replay import replay

ME = 3


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "STEP_ENTRIES", 4)


def topic(number: int, partitions: int) -> list[MetadataRecord]:
    topic_id = Uuid((number + 1).to_bytes(16, "big"))
    records: list[MetadataRecord] = [TopicRecord(name=f"t{number}", topic_id=topic_id)]
    for index in range(partitions):
        replicas = lead, _ = 1 + (number + index) % 5, 1 + (number + index + 1) % 5
        records.append(
            PartitionRecord(
                partition_id=index, topic_id=topic_id, replicas=replicas, isr=replicas, leader=lead
            )
        )
    records.append(
        ConfigRecord(resource_type=2, resource_name=f"t{number}", name="retention.ms", value="1")
    )
    return records


def images() -> tuple[MetadataImage, MetadataImage]:
    """Return two images: between them topics are created, deleted, changed, extended or left
    alone."""
    before = [record for number in range(6) for record in topic(number, 9)]
    old, _ = replay(MetadataImage(), before, EpochOffset(1, len(before)), 1)
    ids = [Uuid((number + 1).to_bytes(16, "big")) for number in range(9)]
    after: list[MetadataRecord] = [RemoveTopicRecord(topic_id=ids[0]), *topic(7, 9)]
    after += [
        PartitionChangeRecord(topic_id=ids[1], partition_id=index, leader=-1) for index in range(9)
    ]
    added = topic(2, 12)[10:13]
    new, _ = replay(old, [*after, *added], EpochOffset(2, 99), 2)
    return old, new


def counted(work: IncrementalWork[T]) -> tuple[T, int]:
    count = 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value, count
        count += 1


@pytest.mark.parametrize("count", [0, 1, 4, 5, 8, 9, 100])
def test_keys_come_in_order_whatever_their_number(count: int) -> None:
    keys = list(range(count))
    random.Random(count).shuffle(keys)
    found, pauses = counted(in_order(keys))
    assert list(found) == sorted(keys)
    assert pauses == max(0, (count - 1) // 4), "no more than a run is sorted between two pauses"


def test_small_images_need_no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "STEP_ENTRIES", 2000)
    old, new = images()
    _, pauses = counted(differing(old, new))
    assert pauses == 0


def test_a_difference_in_steps_is_the_same() -> None:
    old, new = images()
    whole, pauses = counted(differing(old, new))
    assert pauses >= sum(len(each.partitions) for each in new.topics.values()) // 4
    steps.STEP_ENTRIES = 2000
    assert whole == difference(old, new)
    assert [each.topic.name for each in whole.topics.values()] == ["t1", "t2", "t7"]
    assert [each.name for each in whole.deleted.values()] == ["t0"]
    assert set(whole.configs) == {(2, "t0"), (2, "t7")}


def test_what_concerns_one_node_is_all_that_it_needs() -> None:
    old, new = images()

    def concerns(partition: Partition) -> bool:
        return ME in partition.replicas

    whole, mine = difference(old, new), finished(differing(old, new, concerns))
    expected = {
        (topic.id, index): change
        for topic, index, change in whole.partitions()
        if any(each is not None and concerns(each) for each in (change.old, change.new))
    }
    found = {(topic.id, index): change for topic, index, change in mine.partitions()}
    assert found == expected and 0 < len(found) < len(list(whole.partitions()))
    assert mine.deleted.keys() == whole.deleted.keys()
    (gone,) = mine.deleted.values()
    assert all(concerns(each) for each in gone.partitions.values()) and gone.partitions
    assert (mine.configs, mine.brokers) == (whole.configs, whole.brokers)


def test_a_standby_has_the_old_image_until_it_takes_the_new_one_over() -> None:
    old, new = images()
    controller = Controller(ControllerSettings(cluster_id="c", node_id=1), random.Random(0))
    controller.loaded(old)
    index = controller.index
    install, pauses = counted(controller.prepare_load(new))
    assert pauses > 5
    assert controller.image is old and controller.index is index
    install()
    assert controller.image is new
    other = Controller(ControllerSettings(cluster_id="c", node_id=1), random.Random(0))
    other.loaded(old)
    other.replayed(new, difference(old, new))
    assert sorted(controller.index.leaderless) == sorted(other.index.leaderless) != []
    for broker_id in range(1, 6):
        in_isr = controller.index.partitions_in_isr(broker_id)
        assert in_isr == other.index.partitions_in_isr(broker_id) != []


def test_what_is_the_same_object_is_skipped() -> None:
    _, image = images()
    found, pauses = counted(differing(image, image._replace()))
    assert not found
    assert pauses <= 3 * (2 * len(image.topics) // 4 + 1)


def test_what_nobody_has_any_more_is_let_go_of_in_steps() -> None:
    old, new = images()
    controller = Controller(ControllerSettings(cluster_id="c", node_id=1), random.Random(0))
    controller.loaded(old)
    index = controller.index
    controller.loaded(new)
    entries = sum(len(each) for each in (*index.in_isr.values(), *index.led_by.values()))
    _, pauses = counted(index.emptied())
    assert not any(index.in_isr.values()) and not any(index.led_by.values())
    assert pauses > entries // 8
    tables = [sys.getsizeof(part) for part in index.in_isr[ME]._parts]
    assert max(tables) == sys.getsizeof({}), "its tables are not left for the end"
    assert controller.index.partitions_in_isr(ME) != []
    _, pauses = counted(freed(old.topics))
    assert pauses == len(old.topics)
    assert len(old.topics) == 6, "who still has it keeps it"
