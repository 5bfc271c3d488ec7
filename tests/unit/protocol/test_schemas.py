"""Every declared request, response and metadata record in every version.

They are compared with a slow writer of this project and with kio, which is generated from Kafka's
schemas. Damaged bytes must be refused.
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import random
import uuid
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from quorate.quorum.metadata.framing import REPLAYABLE_TYPES
from quorate.quorum.metadata.records import MetadataRecord
from quorate.quorum.protocol.apis import APIS, Api
from quorate.quorum.protocol.codec import DecodeError, decode, encode
from quorate.quorum.protocol.wire import Message
from tests.unit.protocol.generated import every_message, plain, value_of
from tests.unit.protocol.reference_writer import reference_bytes

SEEDS = range(4)
ALL: list[tuple[type, int, bool]] = [
    *(
        (message, version, version >= api.flexible_since)
        for api, message, version in every_message()
    ),
    *((record, record.VERSION, True) for record in REPLAYABLE_TYPES.values()),
]
MESSAGES = [
    pytest.param(api, message, id=message.__name__)
    for api in APIS.values()
    for message in (api.request, api.response)
]
CLASSES = [
    *(
        (message, api.flexible_since)
        for api in APIS.values()
        for message in (api.request, api.response)
    ),
    *((record, 0) for record in REPLAYABLE_TYPES.values()),
]


def kio_schema(api: Api, message: type[Message], version: int) -> Any:
    load = load_request_schema if message is api.request else load_response_schema
    return load(api.key, version)


def versions_of(cls: type) -> list[tuple[int, bool]]:
    return [(version, flexible) for each, version, flexible in ALL if each is cls]


@pytest.mark.parametrize("cls", [pytest.param(cls, id=cls.__name__) for cls, _ in CLASSES])
def test_writes_what_the_reference_writes_and_reads_it_back(cls: type) -> None:
    for version, flexible in versions_of(cls):
        for seed in SEEDS:
            value = value_of(cls, version, flexible, random.Random(seed))
            data = reference_bytes(value, version, flexible, unknown_tags=False)
            assert encode(value, version) == data
            assert plain(decode(cls, version, memoryview(data))) == plain(value)


@pytest.mark.parametrize("cls", [pytest.param(cls, id=cls.__name__) for cls, _ in CLASSES])
def test_skips_unknown_tagged_fields_at_every_level(cls: type) -> None:
    """KIP-482 requires it. The readers of kio fail on such fields."""
    for version, flexible in versions_of(cls):
        if not flexible:
            continue
        for seed in SEEDS:
            value = value_of(cls, version, flexible, random.Random(seed))
            data = reference_bytes(value, version, flexible, unknown_tags=True)
            assert len(data) > len(encode(value, version))
            assert plain(decode(cls, version, data)) == plain(value)


@pytest.mark.parametrize("cls", [pytest.param(cls, id=cls.__name__) for cls, _ in CLASSES])
def test_cut_off_anywhere_is_a_decode_error(cls: type) -> None:
    for version, flexible in versions_of(cls):
        data = encode(value_of(cls, version, flexible, random.Random(7)), version)
        for end in range(0, len(data), max(1, len(data) // 40)):
            with pytest.raises(DecodeError):
                decode(cls, version, data[:end])


@pytest.mark.parametrize("cls", [pytest.param(cls, id=cls.__name__) for cls, _ in CLASSES])
def test_damaged_bytes_give_a_value_or_a_decode_error(cls: type) -> None:
    """There is no other outcome, and no allocation for lengths that the bytes only claim."""
    chance = random.Random(11)
    for version, flexible in versions_of(cls):
        data = encode(value_of(cls, version, flexible, random.Random(5)), version)
        for _ in range(30):
            damaged = bytearray(data)
            for _ in range(chance.choice((1, 1, 4))):
                if damaged:
                    at = chance.randrange(len(damaged))
                    damaged[at] = chance.choice((0xFF, 0x7F, 0x80, 0, chance.randrange(256)))
            try:
                decode(cls, version, bytes(damaged))
            except DecodeError as error:
                assert str(error)


@pytest.mark.parametrize(("api", "message"), MESSAGES)
def test_kio_reads_what_we_write_and_writes_the_same(api: Api, message: type[Message]) -> None:
    for version in range(api.min_version, api.max_version + 1):
        schema = kio_schema(api, message, version)
        read, write = entity_reader(schema), entity_writer(schema)
        for seed in SEEDS:
            value = value_of(message, version, version >= api.flexible_since, random.Random(seed))
            data = encode(value, version)
            entity, size = read(data, 0)
            assert size == len(data)
            assert_same(entity, value, f"{message.__name__} v{version}")
            written = io.BytesIO()
            write(written, entity)
            assert written.getvalue() == data


@pytest.mark.parametrize(("api", "message"), MESSAGES)
def test_versions_and_headers_are_kafkas(api: Api, message: type[Message]) -> None:
    for version in range(api.min_version, api.max_version + 1):
        schema = kio_schema(api, message, version)
        assert schema.__api_key__ == message.API_KEY == api.key
        assert schema.__flexible__ == (version >= api.flexible_since)
        header_version = (
            api.request_header_version(version)
            if message is api.request
            else api.response_header_version(version)
        )
        assert schema.__header_schema__.__version__ == header_version


def assert_same(theirs: Any, ours: Any, path: str) -> None:
    """Compare field by field and by name. kio drops `_ms` from the names of times."""
    for field in dataclasses.fields(theirs):
        name = field.name if hasattr(ours, field.name) else f"{field.name}_ms"
        assert_same_value(getattr(theirs, field.name), getattr(ours, name), f"{path}.{name}")


def assert_same_value(theirs: Any, ours: Any, path: str) -> None:
    if isinstance(theirs, tuple):
        assert len(theirs) == len(ours), path
        for index, pair in enumerate(zip(theirs, ours, strict=True)):
            assert_same_value(*pair, f"{path}[{index}]")
    elif dataclasses.is_dataclass(theirs):
        assert_same(theirs, ours, path)
    else:
        assert as_ours(theirs, ours) == plain(ours), path


def as_ours(theirs: Any, ours: Any) -> Any:
    if isinstance(theirs, uuid.UUID):
        return theirs.bytes
    if isinstance(theirs, datetime.timedelta):
        return theirs // datetime.timedelta(milliseconds=1)
    if isinstance(theirs, datetime.datetime):
        return round(theirs.timestamp() * 1000)
    if theirs is None and isinstance(ours, bytes):
        return bytes(16)  # the zero uuid
    return theirs


def test_every_record_class_names_its_key() -> None:
    assert all(issubclass(record, MetadataRecord) for record in REPLAYABLE_TYPES.values())
    assert all(key == record.API_KEY for key, record in REPLAYABLE_TYPES.items())
