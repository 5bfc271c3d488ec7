"""The reaction to a stored batch that cannot be read. It is never sent to a client or a follower.

| this broker                     | reaction to damage                                             |
|---------------------------------|----------------------------------------------------------------|
| leads, alone in the ISR         | it refuses the read, and logs the place and the way out        |
| leads, with others in the ISR   | it stops: another replica leads, and the next start repairs    |
| follows                         | it stops, and its next start repairs                           |

Before it stops, it lowers the recovery point to just behind the damage (`LogManager.distrust`). The
next start therefore reads this place, outside of the ISR, and fetches the rest from the leader.
"""

from __future__ import annotations

import logging

from quorate.broker.replication.partitions.hosted_partition import HostedPartition
from quorate.quorum.log.files.errors import CorruptBatch, CorruptLog
from quorate.quorum.protocol.errors import ErrorCode

logger = logging.getLogger("quorate.broker.replication")


def unreadable(hosted: HostedPartition, damage: CorruptLog) -> ErrorCode:
    """Return the error for the reader of a damaged batch, CORRUPT_MESSAGE, or raise `damage` if the
    node must stop. Log each damage that does not stop the node, without repetitions in a row."""
    leadership = hosted.partition.leadership
    if leadership is None or len(leadership.isr.committed) > 1:
        raise damage
    if hosted.damage != str(damage):
        hosted.damage = str(damage)
        logger.error(
            "%r: a stored batch is damaged, and no other replica is in sync; reads of it fail: %s",
            hosted,
            damage,
        )
    return ErrorCode.CORRUPT_MESSAGE


def undecodable(hosted: HostedPartition, poison: CorruptBatch) -> ErrorCode:
    """Return the error for the reader of a batch with a right CRC and a payload that cannot be
    read.

    Its producer sent the batch like this, before the leader checked payloads, or past the checks,
    which are bounded. The stored bytes are not damaged, so the node continues. The result is
    always CORRUPT_MESSAGE. Log the batch, without repetitions in a row."""
    if hosted.poison != str(poison):
        hosted.poison = str(poison)
        logger.warning("%r: a producer sent a batch that cannot be read: %s", hosted, poison)
    return ErrorCode.CORRUPT_MESSAGE
