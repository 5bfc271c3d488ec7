"""Hints: a closed connection starts early what the session timeout would start late (design idea
9).

Kept of every registration, by active and standby controllers alike: where its process can be
probed, whether a probe there has ever succeeded, and whether it is connected here. The rules that
keep hints safe:

- a refusal proves a death only where a probe succeeded earlier in the same session (a host that
  refuses every connection proves nothing), and only while the broker is not connected;
- the address is the host that the connection came from, and the registered one before there was
  any;
- a hint never leads to an unclean election: `holds` says until when such an election has to wait;
- after a takeover every unfenced broker that has not connected in time is probed, so that a broker
  that died together with the old controller is found. Standbys probe new registrations for that
  reason: otherwise a new controller would have no earlier success to go by.

Nothing here is replicated, and nothing here is needed for safety: every fence is decided on the
image and written to the log like any other.
"""

from __future__ import annotations

import enum
from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from quorate.quorum.controller.result import ProbeBroker
from quorate.quorum.metadata.image import Broker
from quorate.quorum.seams import Address

FIRST_RETRY_MS = 20
MAX_RETRY_MS = 500


class Connection(enum.Enum):
    """Of a broker to this controller. After a takeover whoever is not there yet is unseen."""

    UNSEEN = "unseen"
    UP = "up"
    LOST = "lost"


@dataclass(slots=True)
class Watched:
    """One registration. `number` tells the newest probe from older ones, whose outcome is late."""

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
        if self.links:
            return Connection.UP
        return Connection.LOST if self.seen else Connection.UNSEEN


Probes = tuple[ProbeBroker, ...]


class Hints:
    def __init__(self, *, enabled: bool, listener: str) -> None:
        self._enabled = enabled
        self._listener = listener
        self._active = False
        self._watched: dict[int, Watched] = {}
        self._holds: dict[int, int] = {}

    # -------------------------------------------------------------------------- what the image says

    def follow(self, broker_id: int, broker: Broker | None) -> Probes:
        """A registration is new, changed or gone. A new one is probed once, for evidence; and once
        more when it unfences without any, because its port may not have been open before."""
        if broker is None:
            self._watched.pop(broker_id, None)
            return ()
        watched = self._watched.get(broker_id)
        if watched is None or watched.broker_epoch != broker.epoch:
            watched = Watched(broker.epoch, self._registered_address(broker), broker.fenced)
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
        for broker_id in [each for each in self._watched if each not in broker_ids]:
            del self._watched[broker_id]

    def activate(self, brokers: Iterable[Broker], *, delay_ms: int, hold_until_ms: int) -> Probes:
        """`hold_until_ms`: brokers fenced under the old controller may have been so by a hint."""
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
        self._active = False
        self._holds.clear()

    # -------------------------------------------------------------------- what the node's port says

    def connected(self, broker_id: int, broker_epoch: int, host: str) -> Probes:
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
        watched = self._current(broker_id, broker_epoch)
        return Connection.UNSEEN if watched is None else watched.connection

    def connection_lost(self, broker_id: int, broker_epoch: int) -> Probes:
        watched = self._current(broker_id, broker_epoch)
        if watched is None:
            return ()
        watched.links = max(0, watched.links - 1)
        watched.retry_ms = FIRST_RETRY_MS
        if not self._active or watched.links or watched.fenced:
            return ()
        return self._probe(broker_id, watched)

    def succeeded(self, probe: ProbeBroker) -> Probes:
        """Alive, or still dying: a process that is being killed may lose its connections before its
        listening port."""
        watched = self._current(probe.broker_id, probe.broker_epoch)
        if watched is None:
            return ()
        watched.answered.add(probe.address)
        return self._again(probe, watched)

    def failed(self, probe: ProbeBroker) -> Probes:
        """No answer is no evidence."""
        watched = self._current(probe.broker_id, probe.broker_epoch)
        return () if watched is None else self._again(probe, watched)

    def is_proof_of_death(self, probe: ProbeBroker) -> bool:
        """Whether this refused probe is reason enough to fence the broker."""
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
        self._holds[broker_id] = until_ms

    def holds_any(self, broker_ids: Iterable[int]) -> bool:
        return any(broker_id in self._holds for broker_id in broker_ids)

    def next_hold(self) -> tuple[int, int] | None:
        """(until_ms, broker_id) of the hold that ends first."""
        return min(((until, broker) for broker, until in self._holds.items()), default=None)

    def release(self, broker_id: int) -> None:
        self._holds.pop(broker_id, None)

    # --------------------------------------------------------------------------------------- inside

    def _registered_address(self, broker: Broker) -> Address | None:
        endpoint = broker.endpoint(self._listener)
        return None if endpoint is None else Address(endpoint.host, endpoint.port)

    def _current(self, broker_id: int, broker_epoch: int) -> Watched | None:
        watched = self._watched.get(broker_id)
        return None if watched is None or watched.broker_epoch != broker_epoch else watched

    def _again(self, probe: ProbeBroker, watched: Watched) -> Probes:
        """Goes on, ever slower, until the broker is connected or its session times out."""
        if not self._active or watched.links or watched.fenced:
            return ()
        if probe.number != watched.number:
            return ()
        delay_ms, watched.retry_ms = watched.retry_ms, min(watched.retry_ms * 2, MAX_RETRY_MS)
        return self._probe(probe.broker_id, watched, delay_ms)

    def _probe(self, broker_id: int, watched: Watched, delay_ms: int = 0) -> Probes:
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
