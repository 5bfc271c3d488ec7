"""Brokers whose link just died, while the controller has not said yet what became of them, and
those that it has just fenced.

A client that loses a broker asks the others who leads now, usually a few milliseconds before the
controller has fenced the dead one; librdkafka then believes the old leader for another second. So
an answer that would name a suspect waits for the controller's verdict, for HOLD_MS at most. This is
a hint (design idea 9): nothing is decided here, and a suspect that lives costs a short delay.

A broker that was fenced a moment ago leads nothing but stays in the list of brokers: librdkafka
(2.16) ends the thread of a broker that is gone from the list, and that thread may take back a
partition that was just given to its new leader; the client then asks again only 500 ms later.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import Broker, MetadataImage
from quorate.quorum.seams import Clock

HOLD_MS = 150
GRACE_MS = 10
"""A client that asks again on a connection has often lost a leader, whose death shows at different
times on different connections: its question waits so long before it is taken up."""
MAX_HELD = 1000
LISTED_MS = 1000
"""How long a broker stays listed after it was fenced."""


class Suspects:
    def __init__(self, clock: Clock, image: Callable[[], MetadataImage], *, enabled: bool) -> None:
        self._clock = clock
        self._image = image
        self._enabled = enabled
        self._since_ms: dict[int, int] = {}
        self._fenced_ms: dict[int, int] = {}
        self._held: list[Callable[[], None]] = []

    def link_lost(self, broker_id: int) -> None:
        broker = self._image().brokers.get(broker_id)
        if not self._enabled or broker is None or broker.fenced or broker_id in self._since_ms:
            return
        now_ms = self._clock.now_ms()
        self._since_ms[broker_id] = now_ms
        self._clock.call_later(HOLD_MS, lambda: self._clear(broker_id, now_ms))

    def image_changed(self, delta: ImageDelta) -> None:
        for broker_id, change in delta.brokers.items():
            if self._enabled and change.old and not change.old.fenced:
                self._fenced_ms[broker_id] = self._clock.now_ms()
            if broker_id in self._since_ms:
                self._clear(broker_id, self._since_ms[broker_id])

    def listed(self, broker: Broker) -> bool:
        """Whether clients are told of it."""
        if not broker.fenced:
            return True
        fenced_ms = self._fenced_ms.get(broker.id)
        return fenced_ms is not None and self._clock.now_ms() - fenced_ms < LISTED_MS

    def hold(self, answer: Callable[[], None], *, returning: bool = False) -> bool:
        """True: `answer` is called later, when there is no suspect. `returning`: its client has
        asked on this connection before."""
        if not self._enabled or len(self._held) >= MAX_HELD:
            return False
        if self._since_ms:
            self._held.append(answer)
            return True
        if returning:
            self._clock.call_later(GRACE_MS, lambda: self._after_grace(answer))
        return returning

    def _after_grace(self, answer: Callable[[], None]) -> None:
        if not self.hold(answer):
            answer()

    def _clear(self, broker_id: int, since_ms: int) -> None:
        if self._since_ms.get(broker_id) != since_ms:
            return
        del self._since_ms[broker_id]
        if not self._since_ms:
            held, self._held = self._held, []
            for answer in held:
                answer()
