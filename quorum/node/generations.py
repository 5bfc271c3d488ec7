"""Which generation of the quorum this node belongs to, and following it into a later one: the shell
around `raft/generation.py`.

A later generation is durable here before anybody is told of it; then all links are made anew, for
those that are up lead into the old one. It is written while the loop waits: whoever follows has no
record that the rebuilt quorum lacks, and in another thread's time the old leader could be reached
again and send some.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from quorate.quorum.log_limit import LogLimit
from quorate.quorum.raft.generation import (
    GenerationFile,
    LocalQuorumState,
    Rebuilds,
    is_later,
    why_not_follow,
)
from quorate.quorum.rpc.hello import Hello
from quorate.quorum.seams import Clock, Disk

logger = logging.getLogger("quorate.quorum.generation")


class Generations:
    """Raises GenerationFileError."""

    def __init__(
        self,
        clock: Clock,
        disk: Disk,
        directory: str,
        standing: Callable[[Rebuilds], LocalQuorumState],
        followed: Callable[[], None],
        superseded: Callable[[], None],
        on_failed: Callable[[BaseException], None],
    ) -> None:
        self._file = GenerationFile(disk, directory)
        self._standing = standing
        self._followed = followed
        self._superseded = superseded
        self._on_failed = on_failed
        self._said: tuple[int, str] | None = None
        self._log_limit = LogLimit(clock)
        self.rebuilds = self._file.load()

    def met(self, hello: Hello) -> None:
        """A node of a later generation. Blocks, for one small file, once in a generation."""
        standing = self._standing(self.rebuilds)
        reason = why_not_follow(standing, hello.rebuilds)
        if reason:
            self._say(hello, reason)
            if standing.is_controller and is_later(hello.rebuilds, self.rebuilds):
                self._superseded()
            return
        try:
            self._file.save(hello.rebuilds)
        except OSError as error:
            self._on_failed(error)
            return
        self.rebuilds = hello.rebuilds
        kept = self.rebuilds[-1]
        logger.warning(
            "following node %d into quorum generation %d, rebuilt from what ended at offset %d of "
            "epoch %d",
            hello.node_id,
            len(self.rebuilds),
            kept.offset,
            kept.epoch,
        )
        self._followed()

    def _say(self, hello: Hello, reason: str) -> None:
        """Log a refusal once, although every handshake with a node of that generation repeats it.

        A peer that varies its claims causes a limited number of lines."""
        if (hello.generation, reason) == self._said:
            return
        left_out = self._log_limit.passes("not following")
        if left_out is not None:
            self._said = hello.generation, reason
            logger.warning(
                "not following node %d into generation %d: %s%s",
                hello.node_id,
                hello.generation,
                reason,
                left_out,
            )
