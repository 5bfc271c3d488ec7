"""Hints: evidence that a broker's process is dead, which fences it before its session expires.

The rule: if the connection of a broker closes, and its node port then refuses a probe, the process
is dead and the broker is fenced immediately. docs/differences.md, "Failures are noticed sooner",
describes the effect.

Active and standby controllers keep the same facts about each registration: the address to probe,
the addresses where a probe succeeded, and the open links. These rules make hints safe:

- A refusal proves a death only if a probe of that address has succeeded since the broker's present
  registration. A host that refuses every connection proves nothing. The broker must also have no
  open link.
- The probed host is the one that the broker's link comes from. Before the first link it is the
  registered host.
- A hint never causes an unclean election. A hold delays such an election until the session would
  have expired.
- After a takeover the new active controller probes every unfenced broker that has not connected in
  time. It thus finds a broker that died together with the old controller. Standbys probe each new
  registration for the same reason: a new active controller needs an earlier success.

Nothing here is replicated, and safety does not depend on it. Every fencing is a decision on the
image and is written to the log.
"""

from __future__ import annotations

import enum
from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from quorate.quorum.controller.state.result import ProbeBroker
from quorate.quorum.metadata.image import Broker
from quorate.quorum.seams import Address

FIRST_RETRY_MS = 20
"""The delay before the first repeated probe. It doubles with each probe, up to MAX_RETRY_MS."""
MAX_RETRY_MS = 500
"""The longest delay between two probes of a broker without a link."""


class Connection(enum.Enum):
    """The state of a broker's links to this controller. A broker that has had no link since its
    registration, or since the last takeover, is UNSEEN."""

    UNSEEN = "unseen"
    UP = "up"
    LOST = "lost"


@dataclass(slots=True)
class BrokerConnectionState:
    """The facts about one registration.

    `links` counts the open links. `seen` is True if there was a link since the registration or the
    last takeover. `answered` holds the addresses where a probe succeeded. `number` is that of the
    newest probe. A late outcome of an older probe counts only if it shows that the address
    answered.
    """

    broker_epoch: int
    address: Address | None
    fenced: bool
    links: int = 0
    seen: bool = False
    answered: set[Address] = field(default_factory=set)
    number: int = 0
    retry_ms: int = FIRST_RETRY_MS

    @property
    def connection(self) -> Connection:
        """Return UP with an open link, LOST if all links closed, else UNSEEN."""
        if self.links:
            return Connection.UP
        return Connection.LOST if self.seen else Connection.UNSEEN


Probes = tuple[ProbeBroker, ...]


class Hints:
    """The facts about all registrations, and the holds on unclean elections. `Controller` owns it.

    The caller sends the probes that a method returns. If `enabled` is False, no method returns any.
    `listener` is the name of the node-to-node listener.
    """

    def __init__(self, *, enabled: bool, listener: str) -> None:
        self._enabled = enabled
        self._listener = listener
        self._active = False
        self._watched: dict[int, BrokerConnectionState] = {}
        self._holds: dict[int, int] = {}

    # ------------------------------------------------------------------------- input from the image

    def follow(self, broker_id: int, broker: Broker | None) -> Probes:
        """Adopt a registration that is new, has changed, or was removed (None). Return the probes
        to send. An unfencing ends the broker's hold.

        A new registration is probed once, as evidence for later. It is probed again when it is
        unfenced without such evidence, because its port may have been closed before.
        """
        if broker is None:
            self._watched.pop(broker_id, None)
            return ()
        watched = self._watched.get(broker_id)
        if watched is None or watched.broker_epoch != broker.epoch:
            watched = BrokerConnectionState(
                broker.epoch, self._registered_address(broker), broker.fenced
            )
            self._watched[broker_id] = watched
            return self._probe(broker_id, watched)
        unfenced = watched.fenced and not broker.fenced
        watched.fenced = broker.fenced
        if unfenced:
            self._holds.pop(broker_id, None)
            if watched.address not in watched.answered:
                return self._probe(broker_id, watched)
        return ()

    def keep_only(self, broker_ids: Container[int]) -> None:
        """Drop the facts about brokers that are not in `broker_ids`."""
        for broker_id in [each for each in self._watched if each not in broker_ids]:
            del self._watched[broker_id]

    def activate(self, brokers: Iterable[Broker], *, delay_ms: int, hold_until_ms: int) -> Probes:
        """Begin to act on hints. Return the probes of all unfenced brokers without a link, delayed
        by `delay_ms`.

        The old controller may have fenced a broker on a hint. Fenced brokers therefore hold unclean
        elections until `hold_until_ms`.
        """
        self._active = True
        probes: list[ProbeBroker] = []
        for broker in brokers:
            if broker.fenced:
                self.hold(broker.id, hold_until_ms)
                continue
            watched = self._watched.get(broker.id)
            if watched is not None and not watched.links:
                watched.seen = False
                watched.retry_ms = FIRST_RETRY_MS
                probes += self._probe(broker.id, watched, delay_ms)
        return tuple(probes)

    def deactivate(self) -> None:
        """Stop acting on hints and drop all holds. The facts about registrations stay."""
        self._active = False
        self._holds.clear()

    # --------------------------------------------------------------------- input from the node port

    def connected(self, broker_id: int, broker_epoch: int, host: str) -> Probes:
        """Count a new link from `host`. Probe the address if it has not answered yet. Ignore a
        registration that is not current."""
        watched = self._current(broker_id, broker_epoch)
        if watched is None:
            return ()
        watched.links += 1
        watched.seen = True
        if watched.address is not None and watched.address.host != host:
            watched.address = Address(host, watched.address.port)
        if watched.address in watched.answered:
            return ()
        return self._probe(broker_id, watched)

    def connection(self, broker_id: int, broker_epoch: int) -> Connection:
        """Return the state of the registration's links. It is UNSEEN if the registration is not
        current."""
        watched = self._current(broker_id, broker_epoch)
        return Connection.UNSEEN if watched is None else watched.connection

    def connection_lost(self, broker_id: int, broker_epoch: int) -> Probes:
        """Remove one link. If it was the last one of an unfenced broker and this controller is
        active, return a probe."""
        watched = self._current(broker_id, broker_epoch)
        if watched is None:
            return ()
        watched.links = max(0, watched.links - 1)
        watched.retry_ms = FIRST_RETRY_MS
        if not self._active or watched.links or watched.fenced:
            return ()
        return self._probe(broker_id, watched)

    def succeeded(self, probe: ProbeBroker) -> Probes:
        """Record that the address answered, and probe again if the broker is still without a link.

        The process may be alive, or it may be exiting: a process that is being killed can lose its
        connections before its listening port.
        """
        watched = self._current(probe.broker_id, probe.broker_epoch)
        if watched is None:
            return ()
        watched.answered.add(probe.address)
        return self._again(probe, watched)

    def failed(self, probe: ProbeBroker) -> Probes:
        """Probe again if the broker is still without a link. A missing response is no evidence."""
        watched = self._current(probe.broker_id, probe.broker_epoch)
        return () if watched is None else self._again(probe, watched)

    def is_proof_of_death(self, probe: ProbeBroker) -> bool:
        """Return True if this refused probe is sufficient reason to fence the broker.

        This requires that the controller is active and the probe is the newest one. The broker must
        be unfenced, without a link, and must have answered an earlier probe of the same address.
        """
        watched = self._current(probe.broker_id, probe.broker_epoch)
        return (
            watched is not None
            and self._active
            and watched.number == probe.number
            and not watched.links
            and not watched.fenced
            and probe.address in watched.answered
        )

    # ------------------------------------------------------------------ unclean elections that wait

    def hold(self, broker_id: int, until_ms: int) -> None:
        """Delay unclean elections of partitions whose ISR or ELR contains the broker, or whose last
        known leader is the broker.

        The controller releases the hold at `until_ms`, or earlier when the broker is unfenced. A
        new hold replaces an earlier one of the broker.
        """
        self._holds[broker_id] = until_ms

    def holds_any(self, broker_ids: Iterable[int]) -> bool:
        """Return True if one of the brokers has a hold."""
        return any(broker_id in self._holds for broker_id in broker_ids)

    def next_hold(self) -> tuple[int, int] | None:
        """Return (until_ms, broker_id) of the hold that ends first, or None."""
        return min(((until, broker) for broker, until in self._holds.items()), default=None)

    def release(self, broker_id: int) -> None:
        """End the broker's hold, if it has one."""
        self._holds.pop(broker_id, None)

    # --------------------------------------------------------------------------------------- inside

    def _registered_address(self, broker: Broker) -> Address | None:
        endpoint = broker.endpoint(self._listener)
        return None if endpoint is None else Address(endpoint.host, endpoint.port)

    def _current(self, broker_id: int, broker_epoch: int) -> BrokerConnectionState | None:
        watched = self._watched.get(broker_id)
        return None if watched is None or watched.broker_epoch != broker_epoch else watched

    def _again(self, probe: ProbeBroker, watched: BrokerConnectionState) -> Probes:
        """Return the next probe, with a delay that doubles up to MAX_RETRY_MS. Probing ends when
        the broker has a link or is fenced."""
        if not self._active or watched.links or watched.fenced:
            return ()
        if probe.number != watched.number:
            return ()
        delay_ms, watched.retry_ms = watched.retry_ms, min(watched.retry_ms * 2, MAX_RETRY_MS)
        return self._probe(probe.broker_id, watched, delay_ms)

    def _probe(self, broker_id: int, watched: BrokerConnectionState, delay_ms: int = 0) -> Probes:
        if not self._enabled or watched.address is None:
            return ()
        watched.number += 1
        return (
            ProbeBroker(
                broker_id=broker_id,
                broker_epoch=watched.broker_epoch,
                number=watched.number,
                address=watched.address,
                delay_ms=delay_ms,
            ),
        )
