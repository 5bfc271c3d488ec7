"""The choice of brokers for one new partition after the other, so that the brokers stay balanced.

Each partition is placed in these steps:

1. Each rack gets the same number of replicas. If that leaves a remainder, the racks with the fewest
   replicas per broker get one more. A rack without unfenced brokers comes after the others.
2. The leader is the unfenced broker that is the preferred leader of the fewest partitions. It must
   store fewer replicas than the average of its rack after this partition, or be one of the brokers
   with the fewest. The search ends after LEADER_TRIES brokers.
3. In each rack, the other replicas go to the unfenced brokers with the fewest replicas, then to
   fenced ones. Among equals, a broker that leads more is chosen, because the others lead next.
4. Among equals, chance decides. Two brokers thus share few of their partitions, and the load of a
   broker that fails spreads over all others.

Outliers: a broker that is far from the average, for example a new one, would store each partition
of the next topic, and lead it. A count is therefore cut to the average +- 1 when a topic begins. A
new broker then gets one or two partitions more than the others from each topic.

A partition costs O(log n) for n brokers, because the brokers and the racks are in heaps. An entry
of a heap that is no longer the current one of its broker or rack is dropped when it is found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from quorate.quorum.seams import Random

LEADER_TRIES = 16
"""The number of brokers that one partition examines for its leader."""
TIES = 4
"""The number of brokers with equally many replicas that count as the lowest, too."""
Entry = tuple[float, float, float, int]
"""The key of a broker in a heap: two counts, a random number, and its position."""
RackEntry = tuple[bool, float, float, int]
"""The key of a rack: True if all its brokers are fenced, its replicas per broker, a random number,
and its position."""


@dataclass(slots=True, kw_only=True)
class BrokerCounts:
    """A broker with the numbers of its partitions: those that it stores, and those whose preferred
    leader it is."""

    id: int
    rack: str | None
    fenced: bool
    replicas: int = 0
    leaders: int = 0


class _Broker:
    """A broker with the counts that decide. They differ from `counts` for an outlier. `entry` and
    `leader_entry` are its current entries in the heaps."""

    __slots__ = ("counts", "entry", "leader_entry", "leaders", "number", "rack", "replicas")

    def __init__(self, number: int, counts: BrokerCounts, rack: _Rack) -> None:
        self.number = number
        self.counts = counts
        self.rack = rack
        self.replicas = counts.replicas
        self.leaders = counts.leaders
        self.entry: Entry | None = None
        self.leader_entry: Entry | None = None


class _Rack:
    """The brokers of one rack, in one heap for the unfenced and one for the fenced ones.

    `total` is the number of replicas of those that count for the balance: the `size` unfenced ones,
    or the fenced ones if there are no others. `shift` moves the rack's average into the bounds of
    outliers. `left` and `unfenced_left` are the brokers without a replica of the current partition.
    """

    __slots__ = (
        "brokers",
        "entry",
        "fenced",
        "heaps",
        "left",
        "number",
        "shift",
        "size",
        "total",
        "unfenced",
        "unfenced_left",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.brokers: list[_Broker] = []
        self.heaps: dict[bool, list[Entry]] = {False: [], True: []}
        self.total = self.size = self.left = self.unfenced_left = self.unfenced = 0
        self.shift = 0.0
        self.fenced = False
        self.entry: RackEntry | None = None

    @property
    def average(self) -> float:
        """Return the replicas per broker."""
        return self.total / self.size + self.shift


class Balance:
    """Places partitions one after the other, and adds them to the counts of the brokers.

    `exact` is True if no broker was an outlier at the creation. The caller makes a new object for
    the next topic if it is False, or if the counts have changed otherwise.
    """

    def __init__(self, counts: Sequence[BrokerCounts], random: Random) -> None:
        """At least one broker must be unfenced. The cost grows with the number of brokers."""
        self._random = random
        racks: dict[str | None, _Rack] = {}
        self._brokers: list[_Broker] = []
        for each in counts:
            rack = racks.setdefault(each.rack, _Rack(len(racks)))
            broker = _Broker(len(self._brokers), each, rack)
            self._brokers.append(broker)
            rack.brokers.append(broker)
        self._racks = list(racks.values())
        self.exact = True
        self._cut_leaders()
        for rack in self._racks:
            self._cut_replicas(rack)
        self._cut_racks()
        self._total = sum(rack.average * rack.size for rack in self._racks)
        self._size = sum(rack.size for rack in self._racks)
        self._leaders: list[Entry] = []
        self._rack_heap: list[RackEntry] = []
        for broker in self._brokers:
            chance = random.random()
            broker.entry = (broker.replicas, -broker.leaders, chance, broker.number)
            broker.rack.heaps[broker.counts.fenced].append(broker.entry)
            if not broker.counts.fenced:
                broker.leader_entry = (broker.leaders, broker.replicas, chance, broker.number)
                self._leaders.append(broker.leader_entry)
        heapify(self._leaders)
        for rack in self._racks:
            heapify(rack.heaps[False])
            heapify(rack.heaps[True])
            self._enter_rack(rack)

    # -- outliers --------------------------------------------------------------------------------

    def _cut_leaders(self) -> None:
        leading = [each for each in self._brokers if not each.counts.fenced]
        low, high = bounds([each.leaders for each in leading])
        for each in leading:
            each.leaders = self._cut(each.leaders, low, high)

    def _cut_replicas(self, rack: _Rack) -> None:
        unfenced = [each for each in rack.brokers if not each.counts.fenced]
        rack.unfenced, rack.fenced = len(unfenced), not unfenced
        counting = unfenced or rack.brokers
        low, high = bounds([each.replicas for each in counting])
        for each in counting:
            each.replicas = self._cut(each.replicas, low, high)
        rack.total, rack.size = sum(each.replicas for each in counting), len(counting)

    def _cut_racks(self) -> None:
        averages = [rack.average for rack in self._racks]
        low, high = bounds(averages)
        for rack, average in zip(self._racks, averages, strict=True):
            rack.shift = min(max(average, low), high) - average
            self.exact = self.exact and rack.shift == 0

    def _cut(self, count: int, low: int, high: int) -> int:
        self.exact = self.exact and low <= count <= high
        return min(max(count, low), high)

    # -- one partition ---------------------------------------------------------------------------

    def place(self, factor: int) -> tuple[int, ...]:
        """Return the ids of the replicas of the next partition, the leader first. There must be at
        least `factor` brokers, at least one of them unfenced."""
        racks = self._lowest_racks(min(factor, len(self._racks)))
        leader = self._leader(racks, factor)
        if leader.rack not in racks:
            self._enter_rack(racks.pop())
            racks.append(leader.rack)
        for rack in racks:
            rack.left, rack.unfenced_left = len(rack.brokers), rack.unfenced
        self._take(leader)
        replicas = [leader]
        turn = [rack for rack in racks if rack is not leader.rack]
        while len(replicas) < factor:
            replicas += [self._next(rack) for rack in turn[: factor - len(replicas)]]
            turn = [rack for rack in racks if rack.left]
            turn.sort(key=lambda rack: (not rack.unfenced_left, rack.average))
        leader.leaders += 1
        leader.counts.leaders += 1
        for broker in replicas:
            self._enter(broker)
        for rack in racks:
            self._enter_rack(rack)
        return tuple(broker.counts.id for broker in replicas)

    def _lowest_racks(self, count: int) -> list[_Rack]:
        """Remove the racks with the fewest replicas per broker from their heap and return them."""
        found: list[_Rack] = []
        while len(found) < count:
            entry = heappop(self._rack_heap)
            rack = self._racks[entry[-1]]
            if rack.entry is entry:
                found.append(rack)
        return found

    def _leader(self, racks: list[_Rack], factor: int) -> _Broker:
        """Return the leader of a partition that `racks` were chosen for. Another rack may get the
        leader if it has no more replicas per broker than the average."""
        average = (self._total + factor) / self._size
        each, more = divmod(factor, len(self._racks))
        shares = {rack.number: max(1, each + (i < more)) for i, rack in enumerate(racks)}
        passed: list[Entry] = []
        found: _Broker | None = None
        while self._leaders and found is None and len(passed) < LEADER_TRIES:
            entry = heappop(self._leaders)
            broker = self._brokers[entry[-1]]
            if broker.leader_entry is not entry:
                continue
            passed.append(entry)
            rack = broker.rack
            if rack.number in shares or rack.average <= average + 1 / rack.size:
                share = shares.get(rack.number, 1)
                below_average = broker.replicas < (rack.total + share) / rack.size
                if below_average or broker in self._lowest(rack, share):
                    found = broker
        for entry in passed:
            heappush(self._leaders, entry)
        if found is not None:
            return found
        lowest = [broker for rack in racks for broker in self._lowest(rack, shares[rack.number])]
        return min(lowest, key=lambda broker: (broker.leaders, broker.replicas, broker.number))

    def _lowest(self, rack: _Rack, count: int) -> list[_Broker]:
        """Return the unfenced brokers of the rack that have the fewest replicas: at most `count`,
        and those that have no more than the last of them."""
        heap = rack.heaps[False]
        found: list[_Broker] = []
        while heap and len(found) < count + TIES:
            broker = self._brokers[heap[0][-1]]
            if broker.entry is heap[0]:
                if len(found) >= count and broker.replicas > found[-1].replicas:
                    break
                found.append(broker)
            heappop(heap)
        for broker in found:
            assert broker.entry is not None, "a broker in a heap has an entry"
            heappush(heap, broker.entry)
        return found

    def _next(self, rack: _Rack) -> _Broker:
        """Return the next broker of a rack that has one left."""
        for heap in (rack.heaps[False], rack.heaps[True]):
            while heap:
                entry = heappop(heap)
                broker = self._brokers[entry[-1]]
                if broker.entry is entry:
                    self._take(broker)
                    return broker
        raise AssertionError("no broker is left in a rack that has some")

    def _take(self, broker: _Broker) -> None:
        """Give the broker a replica of the current partition."""
        rack, fenced = broker.rack, broker.counts.fenced
        broker.entry = broker.leader_entry = None
        broker.replicas += 1
        broker.counts.replicas += 1
        rack.left -= 1
        rack.unfenced_left -= not fenced
        if fenced == rack.fenced:
            rack.total += 1
            self._total += 1

    def _enter(self, broker: _Broker) -> None:
        """Put the broker into the heaps by its current counts."""
        fenced, number = broker.counts.fenced, broker.number
        chance = self._random.random()
        broker.entry = (broker.replicas, -broker.leaders, chance, number)
        heappush(broker.rack.heaps[fenced], broker.entry)
        if not fenced:
            broker.leader_entry = (broker.leaders, broker.replicas, chance, number)
            heappush(self._leaders, broker.leader_entry)

    def _enter_rack(self, rack: _Rack) -> None:
        rack.entry = (rack.fenced, rack.average, self._random.random(), rack.number)
        heappush(self._rack_heap, rack.entry)


def bounds(counts: Sequence[float]) -> tuple[int, int]:
    """Return the lowest and the highest count that is no outlier."""
    average = sum(counts) / len(counts)
    return math.floor(average) - 1, math.ceil(average) + 1
