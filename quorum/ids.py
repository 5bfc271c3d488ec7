"""Identities: Kafka's uuids, the keys of replicas, and positions in a log (epoch, offset)."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import NewType

from quorate.quorum.node_message_bounds import Epoch, NodeId, Offset
from quorate.quorum.seams import Random

Uuid = NewType("Uuid", bytes)
"""A uuid as its 16 bytes. Its text is Kafka's: url-safe base64 without padding."""

ZERO_UUID = Uuid(bytes(16))
METADATA_TOPIC_ID = Uuid(bytes(15) + b"\x01")
METADATA_TOPIC = "__cluster_metadata"
NO_NODE = -1
"""The value of a node id that is unknown or that does not exist."""


def uuid_to_text(uuid: Uuid) -> str:
    """Return Kafka's text of a uuid: 22 characters."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode("ascii")


def uuid_from_text(text: str) -> Uuid:
    """Return the uuid. Raise ValueError if `text` is not 22 characters of url-safe base64."""
    try:
        raw = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"{text!r} is not a uuid: {error}") from None
    if len(raw) != 16 or len(text) != 22:
        raise ValueError(f"{text!r} is not a uuid: it must be 22 characters of url-safe base64")
    return Uuid(raw)


def random_uuid(random: Random) -> Uuid:
    """Return a random uuid of version 4.

    As in Kafka, its text never starts with '-', because a command line would read an option."""
    while True:
        raw = bytearray(random.getrandbits(128).to_bytes(16, "big"))
        raw[6] = raw[6] & 0x0F | 0x40
        raw[8] = raw[8] & 0x3F | 0x80
        uuid = Uuid(bytes(raw))
        if not uuid_to_text(uuid).startswith("-"):
            return uuid


@dataclass(frozen=True, slots=True, order=True)
class ReplicaKey:
    """The key of a voter or observer (KIP-853). A replaced disk has a new directory id, and so the
    node is another replica. The directory id is ZERO_UUID if it is not known."""

    id: NodeId
    directory_id: Uuid

    def __str__(self) -> str:
        return f"{self.id}:{uuid_to_text(self.directory_id)}"


@dataclass(frozen=True, slots=True, order=True)
class EpochOffset:
    """An epoch and an offset in a log, ordered by the epoch first. `offset` is mostly the end
    offset of the records up to and including this epoch.

    In an election, a voter refuses a candidate whose (last epoch, end offset) is below its own."""

    epoch: Epoch
    offset: Offset
