"""Delays Metadata and FindCoordinator answers while a broker is suspected to be dead, and lists a
fenced broker for one more second.

A broker is a suspect from the loss of its link until its registration changes, for HOLD_MS at most.
A client that loses a broker asks another broker for the new leader. It usually asks a few
milliseconds before the controller has fenced the dead broker. If the answer named the old leader,
librdkafka would wait for another second. All answers therefore wait while there is any suspect,
even answers that would not name it. A suspicion has no other effect. If the suspect is alive, the
cost is a short delay.

A broker that was fenced within LISTED_MS leads nothing, but stays in the list of brokers. If a
broker disappears from the list, librdkafka (2.16) ends the thread of that broker. The thread may
then reclaim a partition that the client has just assigned to the thread of the new leader. The
client asks again only after 500 ms.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import Broker, MetadataImage
from quorate.quorum.seams import Clock

HOLD_MS = 150
"""Maximum duration of one suspicion. An answer waits longer if suspicions overlap."""
GRACE_MS = 10
"""Delay of a repeated Metadata request on one connection. The client often repeats the request
because it lost a leader, and this broker may notice the death of that leader a little later."""
MAX_HELD = 1000
"""Maximum number of answers that wait for the end of suspicions. Further answers are sent without a
delay. Answers that wait for GRACE_MS do not count."""
LISTED_MS = 1000
"""Time for which a fenced broker stays in the list of brokers."""


class Suspects:
    """The suspected and the recently fenced brokers. It runs on the broker's event loop.

    If not `enabled`, no broker is suspected and no fenced broker is listed."""

    def __init__(self, clock: Clock, image: Callable[[], MetadataImage], *, enabled: bool) -> None:
        self._clock = clock
        self._image = image
        self._enabled = enabled
        self._since_ms: dict[int, int] = {}
        self._fenced_ms: dict[int, int] = {}
        self._held: list[Callable[[], None]] = []

    def link_lost(self, broker_id: int) -> None:
        """Suspect this broker for HOLD_MS, if it is registered and not fenced.

        If it is suspected already, do nothing: the suspicion is not extended.
        """
        broker = self._image().brokers.get(broker_id)
        if not self._enabled or broker is None or broker.fenced or broker_id in self._since_ms:
            return
        now_ms = self._clock.now_ms()
        self._since_ms[broker_id] = now_ms
        self._clock.call_later(HOLD_MS, lambda: self._clear(broker_id, now_ms))

    def image_changed(self, delta: ImageDelta) -> None:
        """End the suspicion of every broker whose registration changed, and send the answers that
        waited only for this. Record the present time, for `listed`, for the brokers that were not
        fenced before the change."""
        for broker_id, change in delta.brokers.items():
            if self._enabled and change.old and not change.old.fenced:
                self._note_fenced(broker_id)
            if broker_id in self._since_ms:
                self._clear(broker_id, self._since_ms[broker_id])

    def _note_fenced(self, broker_id: int) -> None:
        """Remember the time of the fence, and discard the times that no longer matter."""
        now_ms = self._clock.now_ms()
        old = [each for each, time_ms in self._fenced_ms.items() if now_ms - time_ms >= LISTED_MS]
        for each in old:
            del self._fenced_ms[each]
        self._fenced_ms[broker_id] = now_ms

    def listed(self, broker: Broker) -> bool:
        """Return True if answers list this broker: it is not fenced, or was fenced within the last
        LISTED_MS.
        """
        if not broker.fenced:
            return True
        fenced_ms = self._fenced_ms.get(broker.id)
        return fenced_ms is not None and self._clock.now_ms() - fenced_ms < LISTED_MS

    def hold(self, answer: Callable[[], None], *, returning: bool = False) -> bool:
        """Return True if `answer` will be called later. If False, the caller must answer now.

        `answer` waits until no broker is suspected. `returning` is True if the client has sent a
        Metadata request on this connection before. Such an answer waits for GRACE_MS first if no
        broker is suspected. Return False if nothing has to be waited for, if MAX_HELD answers wait
        already, or if suspicions are not enabled.
        """
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
        """End the suspicion that began at `since_ms`. Answer all requests after the last one."""
        if self._since_ms.get(broker_id) != since_ms:
            return
        del self._since_ms[broker_id]
        if not self._since_ms:
            held, self._held = self._held, []
            for answer in held:
                answer()
