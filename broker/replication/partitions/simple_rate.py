"""A rate over a sliding window of samples, with the arithmetic of Kafka's SimpleRate.

The rate is the sum of all samples, divided by the time since the oldest one began, but at least by
one window. A sample ends after one window. It is discarded when its last event is all windows old.
The rate after a burst therefore falls slowly, and reaches zero only when all windows are over.
"""

from __future__ import annotations


class _Sample:
    __slots__ = ("began_ms", "last_event_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.value = 0
        self.began_ms = now_ms
        self.last_event_ms = now_ms


class SimpleRate:
    """The rate of one kind of event. Times are monotonic, in ms.

    Invariant: at most `windows` + 1 samples are kept. The one beyond the windows may overlap the
    begin of the period."""

    def __init__(self, windows: int, window_ms: int) -> None:
        """Measure over `windows` windows of `window_ms` each."""
        self._max_samples = windows + 1
        self._window_ms = window_ms
        self._expire_ms = windows * window_ms
        self._samples: list[_Sample] = []
        self._current = 0

    def record(self, value: int, now_ms: int) -> None:
        """Add `value` to the present sample."""
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        sample = samples[self._current]
        if now_ms - sample.began_ms >= self._window_ms:
            self._current = (self._current + 1) % self._max_samples
            if self._current >= len(samples):
                samples.append(_Sample(now_ms))
            else:
                samples[self._current].reset(now_ms)
            sample = samples[self._current]
        sample.value += value
        sample.last_event_ms = now_ms

    def per_second(self, now_ms: int) -> float:
        """Return the rate per second. The first question begins the first sample, as in Kafka."""
        samples = self._samples
        if not samples:
            samples.append(_Sample(now_ms))
        for sample in samples:
            if now_ms - sample.last_event_ms >= self._expire_ms:
                sample.reset(now_ms)
        total = sum(sample.value for sample in samples)
        began_ms = min(sample.began_ms for sample in samples)
        return total * 1000 / max(now_ms - began_ms, self._window_ms)
