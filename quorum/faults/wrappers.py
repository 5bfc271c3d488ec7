"""The seams of a node under fault rules."""

from __future__ import annotations

from quorate.quorum.faults.clock import FaultClock
from quorate.quorum.faults.disk import FaultDisk
from quorate.quorum.faults.faults import Faults
from quorate.quorum.faults.transport import FaultTransport
from quorate.quorum.seams import Seams


def with_faults(seams: Seams, faults: Faults) -> Seams:
    """Return the seams wrapped for one node. Each node needs its own `faults`."""
    return Seams(
        clock=FaultClock(seams.clock, faults),
        random=seams.random,
        transport=FaultTransport(seams.transport, faults),
        disk=FaultDisk(seams.disk, faults),
    )
