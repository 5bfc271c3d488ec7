"""Safeguards against input that no peer should send."""

from __future__ import annotations

from typing import Any

from quorate.broker.partition import validation
from quorate.quorum.node.controller.controller_shell import ControllerShell
from quorate.quorum.raft import epoch_limits, leader
from quorate.quorum.rpc.kafka.context import RequestContext
from tests.sim.ablations.ablation import Ablation
from tests.sim.ablations.stories import Scene
from tests.sim.adversary import scenes
from tests.sim.scripts.quorum_scenarios import DYNAMIC


def raise_on(self: RequestContext, error: Exception) -> None:
    raise error


def refuse_nothing(self: ControllerShell, asked: Any, error: Exception) -> None:
    raise error


ABLATIONS = (
    Ablation(
        "request-boundary",
        "an exception in a handler fails its request, not the node",
        RequestContext,
        "fail_with",
        raise_on,
        Scene(scenes.a_handler_raises),
        scenes.A_BUG,
    ),
    Ablation(
        "rule-boundary",
        "an exception in a rule of the controller fails its request, not the node",
        ControllerShell,
        "_refuse",
        refuse_nothing,
        Scene(scenes.a_rule_raises),
        scenes.A_BUG,
    ),
    Ablation(
        "batch-payload",
        "a broker checks that a batch holds records before it appends it",
        validation,
        "_check_payload",
        lambda *_: None,
        Scene(scenes.poison_is_sent),
        "payload",
    ),
    Ablation(
        "plausible-epoch",
        "a node refuses an epoch far ahead of its own, which would use up the epochs for elections",
        epoch_limits,
        "is_plausible",
        lambda core, epoch: True,
        Scene(scenes.vote_in_the_last_epoch),
        "not within",
    ),
    Ablation(
        "observer-led",
        "a leader steps down for an observer in a later epoch, which could not follow it otherwise",
        leader,
        "is_plausible",
        lambda core, epoch: False,
        Scene(scenes.vote_asked_of_a_spare, shape=DYNAMIC),
        "everybody knows offset",
    ),
)
