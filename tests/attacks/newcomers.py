"""New clients beside an attack: which were not served, where, when and why, and the excuses.

A node that a soak has stopped serves no client. A newcomer is therefore excused if its wait
overlaps a time in which the run itself disturbed the node that it asked. Every other newcomer that
is not served was starved by the attack.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from quorate.quorum.protocol.schemas.api_versions import ApiVersionsRequest
from quorate.quorum.seams import Address
from tests.attacks.raw import framed, request

ASK_TIMEOUT_S = 1.0
RECOVERY_S = 60.0
"""A node serves newcomers again within this time after it was started or resumed."""
NEVER_S = float("inf")


def hello() -> bytes:
    """Return the first request of a client, with the size of its frame."""
    message = ApiVersionsRequest(client_software_name="new", client_software_version="1")
    return framed(request(message, 3))


def is_served(address: Address) -> bool:
    """Connect and ask. Return True if the node answers within ASK_TIMEOUT_S."""
    try:
        with socket.create_connection((address.host, address.port), ASK_TIMEOUT_S) as link:
            link.settimeout(ASK_TIMEOUT_S)
            link.sendall(hello())
            return len(link.recv(4)) > 0
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Unserved:
    """A newcomer that got no answer. The times are those of the monotonic clock."""

    address: str
    phase: str
    what: str
    """The error of the connection, or what happened to the request."""
    began_s: float
    ended_s: float

    def __str__(self) -> str:
        took_s = self.ended_s - self.began_s
        return f"{self.address}, {self.phase}, after {took_s:.1f} s: {self.what}"


def told(unserved: Sequence[Unserved]) -> str:
    """Return one text for all of them, with the first ones."""
    shown = "; ".join(map(str, unserved[:3]))
    return f"{len(unserved)} newcomers are not served ({shown})"


@dataclass(slots=True)
class Disturbance:
    """A time in which the run itself keeps a node from serving."""

    address: str
    begin_s: float
    mended_s: float = NEVER_S
    """The time at which the run has ended the fault."""
    end_s: float = NEVER_S
    """The time at which the node has served a client again."""

    def overlaps(self, unserved: Unserved) -> bool:
        return (
            self.address == unserved.address
            and unserved.began_s <= self.end_s
            and self.begin_s <= unserved.ended_s
        )


@dataclass(slots=True)
class Disturbances:
    """All disturbances of a run. The thread that causes them also looks after them."""

    ask: Callable[[Address], bool] = is_served
    now_s: Callable[[], float] = time.monotonic
    all: list[Disturbance] = field(default_factory=list)
    _open: dict[Address, Disturbance] = field(default_factory=dict)

    def begin(self, address: Address) -> None:
        """Note that the node is about to be hurt. It may be hurt again before it serves."""
        known = self._open.get(address)
        if known is not None:
            known.mended_s = NEVER_S
            return
        self._open[address] = Disturbance(str(address), self.now_s())
        self.all.append(self._open[address])

    def mended(self, address: Address) -> None:
        """Note that the node was started or resumed. It need not serve yet."""
        self._open[address].mended_s = self.now_s()

    def look(self) -> list[str]:
        """Ask the nodes that were mended. Return a sentence on each that does not serve in time.

        Such a node counts as undisturbed from then on."""
        late = []
        for address, disturbance in list(self._open.items()):
            if disturbance.mended_s == NEVER_S:
                continue
            served, now_s = self.ask(address), self.now_s()
            if served or now_s > disturbance.mended_s + RECOVERY_S:
                disturbance.end_s = now_s
                del self._open[address]
            if not served and address not in self._open:
                late.append(f"{address} serves no newcomer {RECOVERY_S:.0f} s after its fault")
        return late

    def starved(self, unserved: Sequence[Unserved]) -> list[Unserved]:
        """Return the newcomers that no disturbance excuses."""
        return [each for each in unserved if not any(one.overlaps(each) for one in self.all)]
