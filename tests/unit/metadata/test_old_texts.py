"""Metadata of an older version: config values longer than any request may have today."""

from __future__ import annotations

from quorate.quorum.ids import EpochOffset
from quorate.quorum.metadata.framing import decode_record, encode_record
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.metadata.records import ConfigRecord
from quorate.quorum.metadata.replay import replay
from quorate.quorum.metadata.snapshot import image_of_snapshot, snapshot_records

LONG = ConfigRecord(resource_type=2, resource_name="t", name="k", value="v" * 40_000)


def test_a_long_config_value_is_read_kept_in_snapshots_and_removed() -> None:
    """A node that cannot read the value does not start. A node that cannot write it stops at its
    next snapshot."""
    assert decode_record(encode_record(LONG)) == LONG
    image, _ = replay(MetadataImage(), [LONG], EpochOffset(1, 0), 0)
    records = list(snapshot_records(image))
    assert LONG in records
    assert all(decode_record(encode_record(each)) == each for each in records)
    loaded = image_of_snapshot(records, image.last, 0)
    assert loaded.config(2, "t") == {"k": LONG.value}
    removed = ConfigRecord(resource_type=2, resource_name="t", name="k", value=None)
    image, _ = replay(loaded, [removed], EpochOffset(1, 1), 0)
    assert image.config(2, "t") == {}
