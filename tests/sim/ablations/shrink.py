"""A raft walk, shortened as far as the same invariant still breaks.

The moves of the walk are recorded as it makes them. Then some moves are left out, in ever smaller
parts, and the others are made again. A move that is no longer possible, such as the delivery of a
letter that was never sent, is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, NamedTuple
from unittest import mock

from quorate.quorum.raft.errors import NotLeader
from quorate.quorum.raft.raft import Raft
from tests.sim.ablations.stories import BROKEN, RaftWalk, said
from tests.unit.raft.harness import Letter, RaftCluster
from tests.unit.raft.walk import Walk

MOVES = (
    *("deliver", "drop", "save", "flush", "install", "append", "take_snapshot", "pass_time"),
    *("crash", "kill", "start", "wipe", "isolate", "heal", "add_voter", "remove_voter"),
)
HINTS = ("link_lost", "link_refused", "voter_connected")
"""The hints that the walk gives to a node's core."""
MAX_REPLAYS = 3000
DAMAGED = b"damaged"
Cut = frozenset[tuple[int, int]]


class Place(NamedTuple):
    """The place of a letter, by which it is found again in a history without some of the others."""

    source: int
    target: int
    kind: type[object]
    number: int


class Move(NamedTuple):
    name: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    cut: Cut
    damaged: bool = False
    """True if the snapshot that this move installs is damaged."""


def _place_of(cluster: RaftCluster, letter: Letter) -> Place:
    alike = [
        each
        for each in cluster.letters
        if (each.source, each.target, type(each.message))
        == (letter.source, letter.target, type(letter.message))
    ]
    return Place(letter.source, letter.target, type(letter.message), alike.index(letter))


def _find(cluster: RaftCluster, place: Place) -> Letter | None:
    alike = [
        each
        for each in cluster.letters
        if (each.source, each.target, type(each.message)) == place[:3]
    ]
    return alike[place.number] if place.number < len(alike) else None


@contextmanager
def _written_down(moves: list[Move]) -> Iterator[None]:
    depth = 0

    def watched(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def move(cluster: RaftCluster, *arguments: Any, **named: Any) -> Any:
            nonlocal depth
            if depth == 0:
                kept = [
                    _place_of(cluster, each) if isinstance(each, Letter) else each
                    for each in arguments
                ]
                if name == "pass_time":
                    kept = [arguments[0] - cluster.now_ms]
                damaged = name == "install" and _is_damaged(cluster, *arguments)
                moves.append(Move(name, tuple(kept), named, frozenset(cluster.cut), damaged))
            depth += 1
            try:
                return original(cluster, *arguments, **named)
            finally:
                depth -= 1

        return move

    def told(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def hint(raft: Raft, now_ms: int, other: Any) -> Any:
            if depth == 0:
                moves.append(Move(name, (raft._core.me.id, other), {}, frozenset()))
            return original(raft, now_ms, other)

        return hint

    with ExitStack() as stack:
        for owner, names, wrap in ((RaftCluster, MOVES, watched), (Raft, HINTS, told)):
            for name in names:
                original = getattr(owner, name)
                stack.enter_context(mock.patch.object(owner, name, wrap(name, original)))
        yield


def _is_damaged(cluster: RaftCluster, node_id: int) -> bool:
    node = cluster.nodes[node_id]
    return node.installing is not None and node.snapshots.parts[node.installing] == DAMAGED


def moves_of(story: RaftWalk) -> list[Move]:
    """Return the moves of the walk until it breaks. The moves that start the nodes are not among
    them, because every walk makes these itself."""
    moves: list[Move] = []
    walk = Walk(story.seed, steps=story.steps)
    with _written_down(moves), suppress(*BROKEN):
        walk.run()
    return moves


def replay(story: RaftWalk, moves: list[Move]) -> None:
    walk = Walk(story.seed, steps=0)
    cluster = walk.cluster
    for move in moves:
        if move.name == "wipe":
            walk.invariants.forget(move.arguments[0])
        if move.name in HINTS:
            _tell(cluster, move)
        else:
            cluster.cut = set(move.cut)
            _make(cluster, move)
        walk.invariants.check()


def _tell(cluster: RaftCluster, move: Move) -> None:
    node_id, other = move.arguments
    node = cluster.nodes[node_id]
    if node.raft is not None:
        getattr(node.raft, move.name)(cluster.now_ms, other)
        cluster.collect(node)


def _make(cluster: RaftCluster, move: Move) -> None:
    name, arguments = move.name, list(move.arguments)
    if arguments and isinstance(arguments[0], Place):
        letter = _find(cluster, arguments[0])
        if letter is None:
            return
        arguments[0] = letter
    elif name == "pass_time":
        arguments[0] += cluster.now_ms
    elif arguments and name not in ("isolate",):
        node = cluster.nodes[arguments[0]]
        if (name == "start") != (node.raft is None):
            return
        if {"save": node.saving, "flush": node.flushes, "install": node.installing}.get(
            name, True
        ) in (None, False) or (name == "flush" and not node.flushes):
            return
        if move.damaged and node.installing is not None:
            node.snapshots.parts[node.installing] = DAMAGED
    try:
        getattr(cluster, name)(*arguments, **move.named)
    except NotLeader:
        return


def breaks(story: RaftWalk, moves: list[Move], caught: str) -> bool:
    try:
        replay(story, moves)
    except BROKEN as error:
        return caught in said(error)
    except Exception:  # a history that is no longer possible breaks nothing
        return False
    return False


def shortest(story: RaftWalk, caught: str) -> list[Move] | None:
    """Shorten the moves by delta debugging. Return None if they alone do not break the
    invariant."""
    moves = moves_of(story)
    if not breaks(story, moves, caught):
        return None
    replays, size = 0, max(1, len(moves) // 2)
    while size and replays < MAX_REPLAYS:
        first, before = 0, len(moves)
        while first < len(moves) and replays < MAX_REPLAYS:
            fewer = moves[:first] + moves[first + size :]
            replays += 1
            if breaks(story, fewer, caught):
                moves = fewer
            else:
                first += size
        if size > 1 or len(moves) == before:
            size //= 2
    return moves
