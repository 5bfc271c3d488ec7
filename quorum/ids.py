"""Identities: Kafka's 16-byte uuids, a replica's (id, directory id), and (offset, epoch) pairs."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import NewType

from quorate.quorum.bounds import Epoch, NodeId, Offset
from quorate.quorum.seams import Random

Uuid = NewType("Uuid", bytes)
"""16 bytes, as on the wire and as dictionary key; text is Kafka's url-safe base64 without
padding."""

ZERO_UUID = Uuid(bytes(16))
METADATA_TOPIC_ID = Uuid(bytes(15) + b"\x01")
METADATA_TOPIC = "__cluster_metadata"
NO_NODE = -1


def uuid_to_text(uuid: Uuid) -> str:
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode("ascii")


def uuid_from_text(text: str) -> Uuid:
    """ValueError when `text` is not 22 characters of url-safe base64."""
    try:
        raw = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{text!r} is not a uuid: {error}") from None
    if len(raw) != 16 or len(text) != 22:
        raise ValueError(f"{text!r} is not a uuid: it must be 22 characters of url-safe base64")
    return Uuid(raw)


def random_uuid(random: Random) -> Uuid:
    """Version 4; never one whose text starts with '-' (it would read as an option) as in Kafka."""
    while True:
        raw = bytearray(random.getrandbits(128).to_bytes(16, "big"))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        uuid = Uuid(bytes(raw))
        if not uuid_to_text(uuid).startswith("-"):
            return uuid


@dataclass(frozen=True, slots=True, order=True)
class ReplicaKey:
    """A voter or observer: a wiped disk has a new directory id and so is another replica
    (KIP-853)."""

    id: NodeId
    directory_id: Uuid

    def __str__(self) -> str:
        return f"{self.id}:{uuid_to_text(self.directory_id)}"


@dataclass(frozen=True, slots=True, order=True)
class EpochOffset:
    """Ordered by epoch first: the longest log is the greatest (last epoch, end offset)."""

    epoch: Epoch
    offset: Offset
