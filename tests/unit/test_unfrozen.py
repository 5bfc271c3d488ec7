"""Messages that readers fill field by field (`quorum/unfrozen.py`)."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass

import pytest

from quorate.quorum.metadata.framing import decode_record, encode_record
from quorate.quorum.metadata.records import ConfigRecord
from quorate.quorum.rpc.messages import BY_CLASS, Unsupported
from quorate.quorum.unfrozen import unfrozen


@dataclass(frozen=True, slots=True)
class Base:
    first: int


@dataclass(frozen=True, slots=True)
class Derived(Base):
    second: int


def test_inherited_fields_of_a_frozen_class_can_be_assigned() -> None:
    made = unfrozen(Derived)()
    made.first, made.second = 1, 2
    made.__class__ = Derived
    assert made == Derived(1, 2)


def test_a_read_record_is_frozen_and_of_its_class() -> None:
    record = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1")
    read = decode_record(encode_record(record))
    assert type(read) is ConfigRecord and read == record and hash(read) == hash(record)
    with pytest.raises(FrozenInstanceError):
        setattr(read, "name", "other")  # noqa: B010


def test_a_read_node_message_is_frozen_and_of_its_class() -> None:
    message = Unsupported(reason="none")
    kind = BY_CLASS[Unsupported]
    read = kind.read(list(kind.write(kind.number, 1, message)))
    assert type(read) is Unsupported and read == message
    with pytest.raises(FrozenInstanceError):
        setattr(read, "reason", "other")  # noqa: B010
