"""The metadata log of a real Apache Kafka 4.1.1: our reading, compared with Kafka's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from quorate.quorum.ids import EpochOffset
from quorate.quorum.log.batches.batch import batches, records_of
from quorate.quorum.metadata.batches import MetadataBatch, metadata_batches
from quorate.quorum.metadata.framing import TYPE_NAMES, decode_record, encode_record, read_head
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.json_form import json_form
from quorate.quorum.metadata.loader import Loader
from quorate.quorum.metadata.records import (
    MetadataRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
)
from quorate.quorum.metadata.snapshot import image_of_snapshot, snapshot_records
from tests.unit.metadata.kafka_dump import (
    BEFORE_SHUTDOWN,
    CHECKPOINTS,
    HISTORY,
    LOG,
    dumped,
)


def whole_log() -> list[MetadataBatch]:
    return list(metadata_batches(LOG.read_bytes()))


def replayed(upto: int, image: MetadataImage | None = None) -> MetadataImage:
    image = image or MetadataImage()
    loader = Loader(image)
    loader.feed(batch for batch in whole_log() if image.last.offset < batch.last.offset <= upto)
    assert not loader.in_transaction
    return loader.image


def described(image: MetadataImage) -> dict[str, list[dict[str, object]]]:
    return {
        name: [
            {"partition": partition_id, **leader_and_isr(image, name, partition_id)}
            for partition_id in topic.partition_ids()
        ]
        for name in image.topic_names()
        if (topic := image.topic(name)) is not None
    }


def leader_and_isr(image: MetadataImage, name: str, partition_id: int) -> dict[str, object]:
    partition = image.partition(image.topic_id(name), partition_id)
    assert partition is not None
    return {
        "leader": partition.leader,
        "isr": list(partition.isr),
        "replicas": list(partition.replicas),
    }


@pytest.mark.parametrize("path", [LOG, *CHECKPOINTS], ids=lambda path: str(path.name))
def test_every_record_reads_as_kafka_reads_it_and_is_written_as_kafka_wrote_it(path: Path) -> None:
    data = path.read_bytes()
    ours = []
    for position, header in batches(data):
        if header.is_control:
            continue
        for logged in records_of(data, position, header):
            assert logged.value is not None
            record = decode_record(logged.value)
            _, _, version, _ = read_head(logged.value)
            shown = {
                "type": TYPE_NAMES[type(record)],
                "version": version,
                "data": json_form(record, version),
            }
            ours.append((logged.offset, logged.timestamp_ms, shown))
            assert encode_record(record, version) == logged.value
    assert ours == list(dumped(path))
    assert len(ours) > 40


def test_replay_gives_what_describe_topics_answered() -> None:
    assert described(replayed(BEFORE_SHUTDOWN)) == HISTORY["final"]


def test_after_the_shutdown_no_broker_is_active() -> None:
    image = replayed(1_000_000)
    assert image.last == EpochOffset(1, 478)
    assert image.broker_ids() == [4, 5, 6]
    assert not any(image.brokers[broker_id].active for broker_id in image.broker_ids())
    assert {partition.leader for _, _, partition in image.all_partitions()} == {-1}


def of_checkpoint(path: Path) -> MetadataImage:
    end_offset, epoch = (int(part) for part in path.stem.split("-"))
    records = [record for batch in metadata_batches(path.read_bytes()) for record in batch.records]
    last = EpochOffset(epoch, end_offset - 1)
    return image_of_snapshot(records, last, replayed(end_offset - 1).last_timestamp_ms)


@pytest.mark.parametrize("path", CHECKPOINTS, ids=lambda path: str(path.name))
def test_a_snapshot_is_the_log_before_it_and_goes_on_as_the_log(path: Path) -> None:
    image = of_checkpoint(path)
    assert image == replayed(image.last.offset)
    assert replayed(1_000_000, image) == replayed(1_000_000)
    assert described(replayed(BEFORE_SHUTDOWN, image)) == HISTORY["final"]


@pytest.mark.parametrize("path", CHECKPOINTS, ids=lambda path: str(path.name))
def test_our_snapshot_holds_the_records_of_kafkas(path: Path) -> None:
    theirs = [record for batch in metadata_batches(path.read_bytes()) for record in batch.records]
    ours = list(snapshot_records(of_checkpoint(path)))
    assert sorted(map(canonical, ours)) == sorted(map(canonical, theirs))


def canonical(record: MetadataRecord) -> str:
    """Sort the features of a registration, which Kafka writes in the order of a hash map."""
    if isinstance(record, RegisterBrokerRecord | RegisterControllerRecord):
        features = sorted(record.features, key=lambda feature: feature.name)
        record = replace(record, features=tuple(features))
    return repr(record)


def test_one_by_one_or_all_at_once_is_the_same() -> None:
    loader = Loader(MetadataImage())
    for batch in whole_log():
        loader.feed([batch])
    assert loader.image == replayed(1_000_000)
