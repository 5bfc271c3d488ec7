"""The callbacks through which a node's roles follow its metadata and its links."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from quorate.quorum.metadata.delta import ImageDelta
from quorate.quorum.metadata.image import MetadataImage
from quorate.quorum.node.replica.committed_image import PrepareLoad
from quorate.quorum.raft.effects import RoleChanged


@dataclass(slots=True)
class NodeListeners:
    """Lists of callbacks. The node calls each list in order, on its event loop, after the change
    unless the field says otherwise.

    The roles of the node append their callbacks when they are created, before the node starts."""

    image: list[Callable[[MetadataImage, ImageDelta], None]] = field(default_factory=list)
    """The committed image has changed by this delta. Not called for the image of a snapshot, nor
    for an image that the active controller adopts."""
    prepare_load: list[PrepareLoad] = field(default_factory=list)
    """The image of a snapshot, or the first image, is about to be installed
    (`committed_image.py`)."""
    role: list[Callable[[RoleChanged], None]] = field(default_factory=list)
    """The Raft role, the epoch or the leader has changed."""
    committed: list[Callable[[int], None]] = field(default_factory=list)
    """The high watermark has risen. The committed image is replayed afterwards."""
    resigned: list[Callable[[], None]] = field(default_factory=list)
    """The resignation that `Raft.resign` started is complete."""
    links: list[Callable[[], None]] = field(default_factory=list)
    """A link to a voter came up or was lost. Not called for links to bootstrap servers."""
    survives: list[Callable[[BaseException], bool]] = field(default_factory=list)
    """The node is about to fail with this error. If a callback returns True, it has taken the part
    offline that the error concerns, and the node continues."""
    failed: list[Callable[[BaseException], None]] = field(default_factory=list)
    """The node has failed and is about to close. These callbacks may block and must not raise."""

    def links_changed(self) -> None:
        """Call the callbacks of `links`."""
        for each in self.links:
            each()
