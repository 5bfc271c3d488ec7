"""Wraps the clock, the network and the disk of a node, so that fault rules can disturb them."""

from __future__ import annotations

from quorate.quorum.faults.clock import FaultClock
from quorate.quorum.faults.disk import FaultDisk
from quorate.quorum.faults.faults import Faults
from quorate.quorum.faults.transport import FaultTransport
from quorate.quorum.seams import Seams


def with_faults(seams: Seams, faults: Faults) -> Seams:
    """Return `seams` with a clock, a network and a disk that obey the rules in `faults`.

    Random numbers stay as they are. Each node needs its own `faults`, so that a rule disturbs one
    node only."""
    return Seams(
        clock=FaultClock(seams.clock, faults),
        random=seams.random,
        transport=FaultTransport(seams.transport, faults),
        disk=FaultDisk(seams.disk, faults),
    )
