"""Safeguards of the answers to changes of the voters, and of a quorum that is lost for good and
rebuilt."""

from __future__ import annotations

from typing import Any

from quorate.quorum.offline import force_voters
from quorate.quorum.offline.source_directories import SourceDirectory
from quorate.quorum.protocol.errors import ErrorCode
from quorate.quorum.raft import effects, voter_changes
from quorate.quorum.raft.core import Core
from quorate.quorum.raft.raft import Raft
from quorate.quorum.raft.states import Leader
from quorate.quorum.rpc import hello as handshake
from tests.sim.ablations.ablation import Ablation
from tests.sim.ablations.stories import Scene
from tests.sim.scripts import lost_quorum_scenarios as scenarios
from tests.sim.scripts import quorum_scenarios

_append = voter_changes._append


def answer_at_once(core: Core, state: Leader, token: int, records: tuple[Any, ...]) -> None:
    _append(core, state, token, records)
    core.emit(effects.VoterChangeResult(token, ErrorCode.NONE, ""))


ABLATIONS = (
    Ablation(
        "voters-answer",
        "a leader answers a change of the voters only when the change is committed",
        voter_changes,
        "_append",
        answer_at_once,
        Scene(quorum_scenarios.removal_by_a_leader_cut_off, shape=quorum_scenarios.DYNAMIC),
        "no order explains the voters",
    ),
    Ablation(
        "generation",
        "the nodes of a rebuilt quorum and of the quorum before it refuse each other",
        handshake,
        "_generation_refusal",
        lambda mine, other: "",
        Scene(scenarios.old_majority_comes_back),
        "does not have the committed records",
    ),
    Ablation(
        "superseded",
        "a controller that has met the rebuilt quorum votes for no candidate of the old one",
        Raft,
        "superseded",
        lambda self: None,
        Scene(scenarios.old_controllers_come_back),
        "met the rebuilt quorum, and then voted",
    ),
    Ablation(
        "greatest-end",
        "force-voters rebuilds a quorum from the log with the greatest (epoch, offset)",
        SourceDirectory,
        "rank",
        property(lambda self: (len(self.rebuilds), self.end.offset)),
        Scene(scenarios.longest_is_not_latest),
        "was chosen and lacks",
    ),
    Ablation(
        "epoch-jump",
        "a rebuilt quorum begins in an epoch that the old quorum never reaches",
        force_voters,
        "EPOCH_MARGIN",
        0,
        Scene(scenarios.old_majority_goes_on_voting),
        "raft leader of epoch",
    ),
)
