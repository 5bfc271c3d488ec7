"""Latencies and rates of commits and elections.

An event costs a comparison and some additions. Averages, maxima and rates are computed when metrics
are requested. They cover the last 30 to 60 s, like Kafka's sampled statistics. A rate covers a
longer time if metrics are requested less often.

The commit latency is sampled: one append is followed until the high watermark passes it, then the
next append after that. An election is the time in which the node was neither leader nor follower.
"""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from dataclasses import dataclass

from quorate.quorum.histogram import US_PER_MS, Histogram
from quorate.quorum.ids import NO_NODE
from quorate.quorum.raft.effects import Role, RoleChanged
from quorate.quorum.seams import Clock
from quorate.quorum.watch.loop_lag import LoopLag

HALF_WINDOW_MS = 30_000
MAX_SAMPLES = 64
SETTLED = (Role.LEADER, Role.FOLLOWER)
"""Roles in which the node knows that an election is over."""


@dataclass(slots=True)
class _Half:
    count: int = 0
    total_ms: int = 0
    max_ms: int = 0


class Latency:
    """The average and the maximum of a latency over the last HALF_WINDOW_MS to twice that time."""

    def __init__(self) -> None:
        self._now, self._before = _Half(), _Half()
        self._began_ms = 0

    def note(self, latency_ms: int, now_ms: int) -> None:
        """Add one latency, in ms."""
        self._rotate(now_ms)
        half = self._now
        half.count += 1
        half.total_ms += latency_ms
        half.max_ms = max(half.max_ms, latency_ms)

    def average_ms(self, now_ms: int) -> float:
        """Return the average in ms, or NaN if there was no event in the window, as Kafka does."""
        self._rotate(now_ms)
        count = self._now.count + self._before.count
        return (self._now.total_ms + self._before.total_ms) / count if count else math.nan

    def max_ms(self, now_ms: int) -> float:
        """Return the maximum in ms, or NaN if there was no event in the window."""
        self._rotate(now_ms)
        if not self._now.count + self._before.count:
            return math.nan
        return max(self._now.max_ms, self._before.max_ms)

    def _rotate(self, now_ms: int) -> None:
        over_ms = now_ms - self._began_ms
        if over_ms >= HALF_WINDOW_MS:
            self._before = self._now if over_ms < 2 * HALF_WINDOW_MS else _Half()
            self._now = _Half()
            self._began_ms = now_ms


class Rate:
    """The rate of a counter per second, over about the last 30 to 60 s.

    The counter is sampled only when the rate is read. If it is read less often than every 60 s, the
    rate covers the time since an older sample. At first it covers the time since the start."""

    def __init__(self, now_ms: int, count: float = 0) -> None:
        self._samples: deque[tuple[int, float]] = deque([(now_ms, count)], maxlen=MAX_SAMPLES)

    def of(self, count: float, now_ms: int) -> float:
        """Return the rate per second up to now, given the present value of the counter."""
        samples = self._samples
        while len(samples) > 1 and samples[1][0] <= now_ms - 2 * HALF_WINDOW_MS:
            samples.popleft()
        then_ms, before = samples[0]
        if now_ms - samples[-1][0] >= HALF_WINDOW_MS // MAX_SAMPLES:
            samples.append((now_ms, count))
        return (count - before) * 1000 / (now_ms - then_ms) if now_ms > then_ms else 0.0


class QuorumMeasures:
    """Measurements of one node in the metadata quorum, updated on the node's event loop."""

    def __init__(self, clock: Clock, end_offset: int) -> None:
        """`end_offset` is the end of the log when the node starts."""
        now_ms = clock.now_ms()
        self.append_rate = Rate(now_ms)  # of `appended`
        self.fetch_rate = Rate(now_ms, end_offset)  # of the other records of the log
        self.busy_rate = Rate(now_ms, time.thread_time())  # CPU seconds of the loop's thread
        self.appended = 0
        self.snapshots_loaded = 0
        self.new_controllers = 0  # leaders that this node has learned of
        self.commits, self.elections = Latency(), Latency()
        self.election_times = Histogram()
        """The elections, from the loss of the leader to the next one."""
        self.election_ends: Counter[str] = Counter()
        """The ends of elections by the role of this node after them."""
        self.loop_lag = LoopLag(clock)
        self._clock = clock
        self._followed: tuple[int, int] | None = None  # (offset, time of its append)
        self._leaderless_ms: int | None = None
        self._leader: tuple[int, int] = (-1, NO_NODE)  # (epoch, leader)

    def on_appended(self, last_offset: int, count: int) -> None:
        """Count records that this node appended as leader, and follow them if no other append is
        followed.
        """
        self.appended += count
        if self._followed is None:
            self._followed = (last_offset, self._clock.now_ms())

    def on_committed(self, high_watermark: int) -> None:
        """Note the commit latency if the high watermark has passed the followed append."""
        if self._followed is not None and self._followed[0] < high_watermark:
            now_ms = self._clock.now_ms()
            self.commits.note(now_ms - self._followed[1], now_ms)
            self._followed = None

    def on_role(self, effect: RoleChanged) -> None:
        """Note the start or the end of an election, and a new leader. If the node does not lead,
        stop following its append.
        """
        now_ms = self._clock.now_ms()
        if effect.role is not Role.LEADER:
            self._followed = None
        if effect.role in SETTLED:
            if self._leaderless_ms is not None:
                self.elections.note(now_ms - self._leaderless_ms, now_ms)
                self.election_times.observe((now_ms - self._leaderless_ms) * US_PER_MS)
                self.election_ends[effect.role.value] += 1
            self._leaderless_ms = None
        elif self._leaderless_ms is None:
            self._leaderless_ms = now_ms
        leader = (effect.epoch, effect.leader_id)
        if effect.leader_id != NO_NODE and leader != self._leader:
            self._leader = leader
            self.new_controllers += 1
