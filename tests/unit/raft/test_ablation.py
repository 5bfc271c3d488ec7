"""The random walk has teeth: without one safeguard, some history breaks an invariant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from quorate.quorum.ids import EpochOffset
from quorate.quorum.raft import follower, leader, serving, vote
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.effects import Persist
from quorate.quorum.raft.errors import InvariantViolation
from quorate.quorum.raft.messages import VoteRequest
from tests.unit.raft import test_replication, test_votes
from tests.unit.raft.walk import Walk

SEEDS = 200
STEPS = 400


def count_what_is_not_flushed(patch: pytest.MonkeyPatch) -> None:
    def flush(core: Core) -> None:
        core.durable_offset = core.log.end_offset

    patch.setattr(Core, "flush", flush)


def commit_what_is_not_known_to_match(patch: pytest.MonkeyPatch) -> None:
    """R15: take the high watermark of an answer that says that the logs diverge."""
    truncate = follower._truncate

    def truncate_and_commit(core: Core, diverging: EpochOffset) -> None:
        truncate(core, diverging)
        core.raise_high_watermark(core.log.end_offset)

    patch.setattr(follower, "_truncate", truncate_and_commit)


def count_a_minority(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(serving, "majority_offset", lambda offsets: sorted(offsets)[-(len(offsets) // 2)])


def commit_older_epochs_by_counting(patch: pytest.MonkeyPatch) -> None:
    become_leader = leader.become_leader

    def lead(core: Core, granted: set[int]) -> None:
        become_leader(core, granted)
        core.state.epoch_start_offset = -1  # type: ignore[union-attr]

    patch.setattr(leader, "become_leader", lead)


def vote_for_shorter_logs(patch: pytest.MonkeyPatch) -> None:
    grants = vote._grants

    def grant(core: Core, request: VoteRequest) -> bool:
        longest = EpochOffset(1 << 30, 1 << 30)
        return grants(core, replace(request, last=longest))

    patch.setattr(vote, "_grants", grant)


def vote_for_everybody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(vote, "_grants", lambda core, request: True)


def forget_votes_in_a_crash(patch: pytest.MonkeyPatch) -> None:
    say = Core._say_what_changed

    def say_but_the_vote(core: Core) -> None:
        say(core)
        for position, effect in enumerate(core.effects):
            if isinstance(effect, Persist):
                core.effects[position] = Persist(replace(effect.election, voted=None))

    patch.setattr(Core, "_say_what_changed", say_but_the_vote)


def keep_what_diverges(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(follower, "_truncate", lambda core, diverging: None)


def never_call_it_diverging(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(serving, "diverging_epoch", lambda core, offset, epoch: None)


def walks() -> None:
    for seed in range(SEEDS):
        Walk(seed, steps=STEPS).run()


@pytest.mark.parametrize(
    ("ablate", "history"),
    [
        (count_what_is_not_flushed, walks),
        (count_a_minority, walks),
        (vote_for_shorter_logs, walks),
        (vote_for_everybody, walks),
        (keep_what_diverges, walks),
        (never_call_it_diverging, walks),
        # Too rare for random histories: each needs its own script.
        (
            commit_what_is_not_known_to_match,
            test_replication.test_r15_what_is_not_known_to_match_is_not_committed_either,
        ),
        (
            commit_older_epochs_by_counting,
            test_replication.test_r19_figure_8_an_older_epochs_record_is_not_committed_by_counting,
        ),
        (
            forget_votes_in_a_crash,
            test_votes.test_r1_a_vote_that_was_saved_is_kept_after_a_crash,
        ),
    ],
)
def test_without_this_safeguard_a_history_breaks(
    ablate: Callable[[pytest.MonkeyPatch], None],
    history: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ablate(monkeypatch)
    with pytest.raises((AssertionError, InvariantViolation)):
        history()
