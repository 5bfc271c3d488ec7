"""The choice of brokers for one new partition after the other, so that the brokers stay balanced.

Each partition is placed in these steps:

1. Each rack gets the same number of replicas. If that leaves a remainder, the racks with the fewest
   replicas per broker get one more. Among equals, a rack that leads more is picked. A rack without
   unfenced brokers comes after the others.
2. In each rack, the unfenced brokers with the fewest replicas are picked, then fenced ones. Among
   equals, a broker that leads more is picked, because the others lead next.
3. The picked broker that is the preferred leader of the fewest partitions leads. Among equals, the
   one in the rack that leads the fewest partitions per broker does, then the one in the rack with
   the most replicas per broker, and then the one with the most replicas.
4. If another broker comes first in the order of step 3, it takes the place of a picked broker with
   at least as many replicas in its rack, or in a rack with at least as many replicas per broker. It
   then leads. The search for it ends after LEADER_TRIES brokers.
5. Among equals, chance decides. Two brokers thus share few of their partitions, and the load of a
   broker that fails spreads over all others.

Bounds, over any sequence of topics with any replication factors, if all brokers are unfenced and
none was added, and no partition was deleted or assigned by hand:

- Without racks, or with one broker in each rack, the counts of replicas and of leaders differ by at
  most 1 between any two brokers. Step 2 keeps one of two sets inside of the other: the brokers that
  have one replica more, and the brokers that lead one partition more. Step 3 or 4 therefore always
  finds a broker that leads fewer, and its replica is free.
- With racks of one size, the counts of replicas differ by at most 1, and the leaders are within 1
  of the even share. The racks are to each other as the brokers without racks are, and so are the
  brokers of one rack. The tests try every sequence of factors on small clusters, and random ones on
  larger clusters. LEADER_TRIES may end the search too early if more brokers lead the fewest.
- With racks of different sizes, the counts of replicas differ by at most 1 inside of each rack. The
  brokers of a small rack store more, because each partition has a replica there. If all topics have
  the same replication factor, the leaders are within 2 of the even share (tested, not proved).
- With racks of different sizes and different replication factors, the leaders have no bound. Topics
  with one replica go to the racks that store less, and so do their leaders. The balance of the
  replicas comes first, because it is that of the disks.

Outliers: a broker that is far from the average, for example a new one, would store each partition
of the next topic, and lead it. A count is therefore cut to the average +- 1 when a topic begins. A
new broker then gets up to three partitions more than the others from each topic.

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
Entry = tuple[float, float, float, int]
"""The key of a broker in a heap: two counts, a random number, and its position."""
RackEntry = tuple[bool, float, float, int, float, int]
"""The key of a rack: True if all its brokers are fenced, its replicas per broker, its leaders per
broker and the leaders of its next broker, both as negative numbers, a random number, and its
position."""


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
        "leaders",
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
        self.leaders = 0
        self.shift = 0.0
        self.fenced = False
        self.entry: RackEntry | None = None

    @property
    def average(self) -> float:
        """Return the replicas per broker."""
        return self.total / self.size + self.shift

    @property
    def led(self) -> float:
        """Return the partitions that each broker leads, on average."""
        return self.leaders / self.size


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
            each.rack.leaders += each.leaders

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
        picked = self._pick(racks, factor)
        leader = self._leader(picked)
        if leader not in picked:
            displaced = displaced_by(leader, picked)
            picked[picked.index(displaced)] = leader
            self._push(displaced)
            if leader.rack not in racks:
                racks.append(leader.rack)
        self._total += sum(broker.counts.fenced == broker.rack.fenced for broker in picked)
        for broker in picked:
            self._take(broker)
        leader.leaders += 1
        leader.rack.leaders += 1
        leader.counts.leaders += 1
        for broker in picked:
            self._enter(broker)
        for rack in racks:
            self._enter_rack(rack)
        others = (broker.counts.id for broker in picked if broker is not leader)
        return (leader.counts.id, *others)

    def _pick(self, racks: Sequence[_Rack], factor: int) -> list[_Broker]:
        """Remove the brokers with the fewest replicas from the heaps of `racks` and return them.
        Each rack gets its share."""
        for rack in racks:
            rack.left, rack.unfenced_left = len(rack.brokers), rack.unfenced
        turn = list(racks)
        picked: list[_Broker] = []
        while len(picked) < factor:
            for rack in turn[: factor - len(picked)]:
                broker = self._next(rack)
                rack.left -= 1
                rack.unfenced_left -= not broker.counts.fenced
                picked.append(broker)
            turn = [rack for rack in racks if rack.left]
            turn.sort(key=lambda rack: (not rack.unfenced_left, rack.average))
        return picked

    def _lowest_racks(self, count: int) -> list[_Rack]:
        """Remove the racks with the fewest replicas per broker from their heap and return them."""
        found: list[_Rack] = []
        while len(found) < count:
            entry = heappop(self._rack_heap)
            rack = self._racks[entry[-1]]
            if rack.entry is entry:
                found.append(rack)
        return found

    def _leader(self, picked: Sequence[_Broker]) -> _Broker:
        """Return the leader: one of `picked`, or a broker that leads fewer and may displace one of
        them."""
        unfenced = [broker for broker in picked if not broker.counts.fenced]
        best = min(unfenced, key=leads_first, default=None)
        passed: list[Entry] = []
        found: list[_Broker] = []
        while self._leaders and len(passed) < LEADER_TRIES:
            entry = heappop(self._leaders)
            broker = self._brokers[entry[-1]]
            if broker.leader_entry is not entry:
                continue
            passed.append(entry)
            lowest = found[0] if found else best
            if lowest is not None and broker.leaders > lowest.leaders:
                break
            if best is None or (leads_less(broker, best) and self._may_displace(broker, picked)):
                found.append(broker)
        for entry in passed:
            heappush(self._leaders, entry)
        leader = min(found, key=leads_first) if found else best
        assert leader is not None, "one broker is unfenced"
        return leader

    def _may_displace(self, broker: _Broker, picked: Sequence[_Broker]) -> bool:
        """Return True if a partition may get `broker` in the place of one that was picked, because
        the replicas stay balanced."""
        displaced, rack = displaced_by(broker, picked), broker.rack
        if displaced.rack is rack:
            return broker.replicas <= displaced.replicas
        following = self._peek(rack)
        lowest = following is None or broker.replicas <= following.replicas
        return lowest and rack.average <= displaced.rack.average

    def _peek(self, rack: _Rack) -> _Broker | None:
        """Return the next unfenced broker of the rack that is not picked, or None."""
        heap = rack.heaps[False]
        while heap and self._brokers[heap[0][-1]].entry is not heap[0]:
            heappop(heap)
        return self._brokers[heap[0][-1]] if heap else None

    def _next(self, rack: _Rack) -> _Broker:
        """Remove the next broker of a rack that has one left from its heap and return it."""
        for heap in (rack.heaps[False], rack.heaps[True]):
            while heap:
                entry = heappop(heap)
                broker = self._brokers[entry[-1]]
                if broker.entry is entry:
                    return broker
        raise AssertionError("no broker is left in a rack that has some")

    def _push(self, broker: _Broker) -> None:
        """Put a broker whose counts are unchanged back into its heap."""
        assert broker.entry is not None, "a broker in a heap has an entry"
        heappush(broker.rack.heaps[broker.counts.fenced], broker.entry)

    def _take(self, broker: _Broker) -> None:
        """Give the broker a replica of the current partition."""
        rack = broker.rack
        broker.entry = broker.leader_entry = None
        broker.replicas += 1
        broker.counts.replicas += 1
        rack.total += broker.counts.fenced == rack.fenced

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
        following = self._peek(rack)
        led = 0 if following is None else -following.leaders
        chance = self._random.random()
        rack.entry = (rack.fenced, rack.average, -rack.led, led, chance, rack.number)
        heappush(self._rack_heap, rack.entry)


def leads_first(broker: _Broker) -> tuple[float, float, float, float]:
    """Return the key of the leader among picked brokers: the smallest one leads."""
    return broker.leaders, broker.rack.led, -broker.rack.average, -broker.replicas


def leads_less(broker: _Broker, other: _Broker) -> bool:
    """Return True if `broker` leads before `other`, apart from the replicas of both."""
    return leads_first(broker)[:3] < leads_first(other)[:3]


def bounds(counts: Sequence[float]) -> tuple[int, int]:
    """Return the lowest and the highest count that is no outlier."""
    average = sum(counts) / len(counts)
    return math.floor(average) - 1, math.ceil(average) + 1


def displaced_by(broker: _Broker, picked: Sequence[_Broker]) -> _Broker:
    """Return the broker that leaves the picked ones for `broker`: the last of its rack, or the last
    of all if its rack has none."""
    return next((each for each in reversed(picked) if each.rack is broker.rack), picked[-1])
