"""The generation of the quorum that this node belongs to, and the change to a later one.

A generation begins when `force-voters` rebuilds a quorum. `raft/generation.py` decides whether a
node may follow into a later generation (docs/protocol/rebuilding-a-quorum.md).

The new generation is durable before this node names it in a handshake. Then all links are renewed,
because they lead to nodes of the old generation. The file is written while the event loop waits.
Otherwise the old leader could send records meanwhile that the rebuilt quorum does not have.
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
    """The generation of one node, in memory and on disk. Owned by the node's event loop.

    `rebuilds` are the rebuilds of this node's quorum, oldest first; their number is the generation.
    """

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
        """Read the generation from `directory`. Raise GenerationFileError if the file is damaged.

        `standing` returns the state that decides. `followed` is called when this node has followed.
        `superseded` is called when a controller stays although a later generation exists."""
        self._file = GenerationFile(disk, directory)
        self._standing = standing
        self._followed = followed
        self._superseded = superseded
        self._on_failed = on_failed
        self._said: tuple[int, str] | None = None
        self._log_limit = LogLimit(clock)
        self.rebuilds = self._file.load()

    def met(self, hello: Hello) -> None:
        """Follow the sender of `hello` into its later generation, if this node may.

        Otherwise log the reason and, on a controller, report a later generation to `superseded`.
        Blocks for the write of one small file. If the disk fails, call `on_failed` and do not
        follow."""
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
            "following node %d into quorum generation %d, rebuilt from a log that ended at offset "
            "%d of epoch %d",
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
