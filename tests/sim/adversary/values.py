"""Random values at the edges of their types, and the names that the adversaries use."""

from __future__ import annotations

from random import Random
from typing import TypeVar

from quorate.quorum.ids import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID, Uuid
from quorate.quorum.metadata.image import MetadataImage
from tests.sim.clients.admin import NAMES
from tests.sim.world.cluster import SimCluster

T = TypeVar("T")
OWN_ID = 90
"""The node id under which the faulty node registers. No machine has it."""
OWN_TOPICS = ("evil-1", "evil-2", "evil-3")
OWN_GROUPS = ("evil-group-1", "evil-group-2")
PROTECTED = ("data", "loose", *NAMES, "__consumer_offsets", METADATA_TOPIC)
"""Topics that an adversary may read and write, but neither change nor delete."""
MISSING = ("nowhere", "evil-none", "..", "a b", "\x00", "\ud7ff", "%s{}")
MAX_CLASSIC_BYTES = 32_767
WILD_LENGTHS = (0, 1, 249, 250, 32_766, 32_767, 32_768, 40_000)
MANY, LARGE = 50, 3_000
"""The number of elements of a large array."""
BITS = {
    "int8": 8,
    "int16": 16,
    "uint16": 17,
    "int32": 32,
    "uint32": 33,
    "int64": 64,
}
ARBITRARY_BITS = (7, 8, 15, 16, 31, 32, 40, 62, 63)


class Draw:
    """The random choices of one message. `wildness` is the probability that a value is absurd."""

    def __init__(self, random: Random, wildness: float) -> None:
        self.random = random
        self.wildness = wildness
        self.has_large = False

    def wild(self) -> bool:
        return self.random.random() < self.wildness

    def of(self, *choices: T) -> T:
        return choices[self.random.randrange(len(choices))]

    def count(self, *sane: int) -> int:
        """Return the length of an array. At most one array of a message is large, and its elements
        are small."""
        if not self.wild():
            return self.of(*sane)
        count = self.of(0, 0, MANY, LARGE)
        if self.has_large:
            return 0
        self.has_large = count > 0
        return count

    def text(self, max_bytes: int) -> str:
        length = min(self.of(*WILD_LENGTHS), max_bytes, 1 if self.has_large else max_bytes)
        letter = self.of("a", "\u00e9", "\u4e16", "\x00", "\n", "'")
        return letter * (length // len(letter.encode()))

    def integer(self, kind: str) -> int:
        """Return an integer at an edge of the wire type `kind`."""
        bits = BITS[kind]
        low, high = -(1 << bits - 1), (1 << bits - 1) - 1
        if kind.startswith("u"):
            low, high = 0, (1 << bits - 1) - 1
        edges = (low, low + 1, -2, -1, 0, 1, high - 1, high)
        return self.of(*(each for each in edges if low <= each <= high))

    def arbitrary(self) -> int:
        """Return an integer at an edge of some width, for formats without widths."""
        edge = 1 << self.of(*ARBITRARY_BITS)
        return self.of(edge, edge - 1, -edge, -1)

    def uuid(self) -> Uuid:
        return self.of(ZERO_UUID, Uuid(b"\xff" * 16), Uuid(self.random.randbytes(16)))


class Aims:
    """The names and ids that exist in the simulated cluster at the moment."""

    def __init__(self, cluster: SimCluster) -> None:
        self.cluster = cluster

    @property
    def image(self) -> MetadataImage:
        return self.cluster.newest_image()

    @property
    def raft_epoch(self) -> int:
        """Return the highest epoch of any running node."""
        machines = self.cluster.machines.values()
        epochs = [each.process.core.replica.raft.epoch for each in machines if each.process]
        return max(epochs, default=0)

    @property
    def node_ids(self) -> tuple[int, ...]:
        return tuple(each.id for each in self.cluster.machines.values())

    @property
    def controller_ids(self) -> tuple[int, ...]:
        return tuple(each.id for each in self.cluster.controllers)

    def topic(self, draw: Draw, *, own_only: bool = False) -> str:
        if draw.random.random() < 0.2:
            return draw.of(*MISSING)
        return draw.of(*OWN_TOPICS) if own_only else draw.of(*OWN_TOPICS, *PROTECTED)

    def topic_id(self, draw: Draw, *, own_only: bool = False) -> Uuid:
        name = self.topic(draw, own_only=own_only)
        topic = self.image.topic(name)
        if name == METADATA_TOPIC:
            return METADATA_TOPIC_ID
        return draw.uuid() if topic is None else topic.id

    def protected_ids(self) -> tuple[Uuid, ...]:
        topics = (self.image.topic(each) for each in PROTECTED)
        return (METADATA_TOPIC_ID, *(each.id for each in topics if each is not None))
