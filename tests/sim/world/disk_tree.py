"""The files and directories of a simulated disk, with the changes since the last sync.

A power cut leaves any part of these changes. If the disk lies or rots, the tree also remembers the
bytes that the disk should hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from quorate.quorum.seams import Random

SECTOR_BYTES = 512


@dataclass(slots=True)
class Write:
    offset: int
    data: bytes


@dataclass(slots=True)
class Truncate:
    size: int
    moment: int


@dataclass(slots=True)
class Rename:
    """New nodes for some names of one directory, set in one step. None removes a name."""

    names: dict[str, Node | None]
    moment: int


@dataclass(slots=True)
class Crash:
    random: Random
    committed: int
    """The moment up to which changes of names and sizes were kept."""
    forgetful: bool = False
    """True if no unsynced write is kept."""


@dataclass(slots=True)
class Inode:
    data: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    unsynced: list[Write | Truncate] = field(default_factory=list)
    true: bytearray | None = None
    """The bytes that would be durable if the disk had never lied. None means `durable`."""

    def change(self, change: Write | Truncate) -> None:
        apply(self.data, change)
        self.unsynced.append(change)

    def sync(self, landed: Landed) -> None:
        for change in self.unsynced:
            pieces = landed(change) if isinstance(change, Write) else [change]
            if pieces != [change]:
                self.remember()
            if self.true is not None:
                apply(self.true, change)
            for piece in pieces:
                apply(self.durable, piece)
            # a disk that lies about sectors does not change file sizes, which the file system keeps
            if isinstance(change, Write):
                apply(self.durable, Write(change.offset + len(change.data), b""))
        self.unsynced.clear()

    def sync_failed(self) -> None:
        """Handle a failed sync. The kernel marks the pages clean: reads return them, but nothing
        writes them to the disk later."""
        self.remember()
        assert self.true is not None
        for change in self.unsynced:
            apply(self.true, change)
        self.unsynced.clear()

    def remember(self) -> None:
        """Keep the bytes that the disk should hold, because the durable bytes may differ from now
        on."""
        if self.true is None:
            self.true = bytearray(self.durable)

    @property
    def scarred(self) -> bool:
        return self.true is not None and self.true != self.durable

    def mend(self) -> None:
        if self.true is not None:
            self.durable, self.true = self.true, None
            self.data = bytearray(self.durable)
            for change in self.unsynced:
                apply(self.data, change)

    def after_crash(self, crash: Crash) -> Inode:
        contents = [bytearray(self.durable)]
        if self.true is not None:
            contents.append(bytearray(self.true))
        writes: list[Write] = []
        for change in (*self.unsynced, None):
            if isinstance(change, Write):
                writes.append(change)
                continue
            for write in () if crash.forgetful else surviving(writes, crash.random):
                for content in contents:
                    apply(content, write)
            writes.clear()
            if change is None or change.moment > crash.committed:
                break
            for content in contents:
                apply(content, change)
        durable, true = contents[0], contents[1] if len(contents) > 1 else None
        return Inode(bytearray(durable), durable, true=true)


@dataclass(slots=True)
class Directory:
    names: dict[str, Node] = field(default_factory=dict)
    durable: dict[str, Node] = field(default_factory=dict)
    unsynced: list[Rename] = field(default_factory=list)

    def change(self, change: Rename) -> None:
        rename_all(self.names, change)
        self.unsynced.append(change)

    def sync(self) -> None:
        for change in self.unsynced:
            rename_all(self.durable, change)
        self.unsynced.clear()

    def after_crash(self, crash: Crash) -> Directory:
        kept = dict(self.durable)
        for change in self.unsynced:
            if change.moment <= crash.committed:
                rename_all(kept, change)
        after = {name: kept[name].after_crash(crash) for name in sorted(kept)}
        return Directory(dict(after), after)


Node = Inode | Directory
Landed = Callable[[Write], list[Write | Truncate]]
"""Returns the changes that the disk really makes when a write is synced."""


def apply(content: bytearray, change: Write | Truncate) -> None:
    size = change.size if isinstance(change, Truncate) else change.offset
    if len(content) < size:
        content += bytes(size - len(content))
    if isinstance(change, Truncate):
        del content[size:]
    else:
        content[size : size + len(change.data)] = change.data


def rename_all(names: dict[str, Node], change: Rename) -> None:
    for name, node in change.names.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


def surviving(writes: list[Write], random: Random) -> Iterator[Write]:
    """Yield the writes that survive a crash, as if the disk had written them in any order: all,
    none, a prefix and a torn write, or any sectors."""
    if not writes:
        return
    how = random.randrange(0, 4)
    whole = (0, len(writes), random.randrange(0, len(writes)), 0)[how]
    yield from writes[:whole]
    torn = ([], [], writes[whole : whole + 1], writes)[how]
    for write in torn:
        for sector in sectors(write):
            if random.getrandbits(1):
                yield sector


def sectors(write: Write) -> Iterator[Write]:
    start = 0
    while start < len(write.data):
        end = start + SECTOR_BYTES - (write.offset + start) % SECTOR_BYTES
        yield Write(write.offset + start, write.data[start:end])
        start = end


def files_below(path: str, directory: Directory) -> Iterator[tuple[str, Inode]]:
    for name in sorted(directory.names):
        node = directory.names[name]
        if isinstance(node, Inode):
            yield f"{path}/{name}", node
        else:
            yield from files_below(f"{path}/{name}", node)


def used_bytes(node: Node) -> int:
    if isinstance(node, Inode):
        return len(node.data)
    return sum(used_bytes(child) for child in node.names.values())
