"""A stored batch that is not what was appended, found when it is read: it is never handed out.

| this broker             | then                                                                   |
|-------------------------|------------------------------------------------------------------------|
| leads, alone in the ISR | the read is refused; the node's log says where, and the way out        |
| leads, others are in it | it stops, as at an I/O error: they lead, and the next start repairs    |
| follows                 | the same                                                               |

Before it stops the recovery point is lowered to behind the damage (`LogManager.distrust`), so that
the next start reads the place, outside of the ISR, and takes the rest from the leader.
"""

from __future__ import annotations

import logging

from quorate.broker.replication.hosted_partition import HostedPartition
from quorate.quorum.log.errors import CorruptBatch, CorruptLog
from quorate.quorum.protocol.errors import ErrorCode

logger = logging.getLogger("quorate.broker.replication")


def unreadable(hosted: HostedPartition, damage: CorruptLog) -> ErrorCode:
    """What a reader is told; or raises `damage`, and then the node stops."""
    leadership = hosted.partition.leadership
    if leadership is None or len(leadership.isr.committed) > 1:
        raise damage
    if hosted.damage != str(damage):
        hosted.damage = str(damage)
        logger.error("%r: no other replica is in sync: %s", hosted, damage)
    return ErrorCode.CORRUPT_MESSAGE


def undecodable(hosted: HostedPartition, poison: CorruptBatch) -> ErrorCode:
    """Return the error of a reader that met a batch whose CRC is right and whose payload cannot be
    read. Its producer sent it like this before the leader checked payloads, or it passed the
    checks, which are bounded. The stored bytes are not damaged, so the node goes on."""
    if hosted.poison != str(poison):
        hosted.poison = str(poison)
        logger.warning("%r: a producer sent a batch that cannot be read: %s", hosted, poison)
    return ErrorCode.CORRUPT_MESSAGE
