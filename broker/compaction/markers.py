"""The questions that the cleaner asks about transactions, and the answers of a log without them.

A control batch ends a transaction. Its marker may be removed when no data of the transaction is
left, and the data of an aborted transaction may be removed immediately (KIP-98). Only an index of
aborted transactions can answer this. Transactions are not supported yet, and clients cannot write
control batches. A log of another origin may have some. They all stay.
"""

from __future__ import annotations

from typing import Protocol

from quorate.quorum.log.batches.batch import BatchHeader
from quorate.quorum.seams import Buffer


class Transactions(Protocol):
    """The state of the transactions in one pass over a log. Batches come in the order of the
    log."""

    def discards_data(self, header: BatchHeader) -> bool:
        """Return True if this data batch belongs to an aborted transaction."""
        ...

    def discards_marker(self, header: BatchHeader, batch: Buffer) -> bool:
        """Return True if no data of the transaction is left that this control batch ends. The
        batch then gets a delete horizon, and is removed after it."""
        ...


class NoTransactions:
    """The answers for a log without an index of aborted transactions: everything stays."""

    def discards_data(self, header: BatchHeader) -> bool:
        """Return False: no batch is known to be aborted."""
        return False

    def discards_marker(self, header: BatchHeader, batch: Buffer) -> bool:
        """Return False: every control batch stays."""
        return False
