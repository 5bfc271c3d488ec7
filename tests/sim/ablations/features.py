"""Safeguards of feature levels: no level rises above what a node of the cluster can read."""

from __future__ import annotations

from quorate.quorum.controller.brokers import registration
from quorate.quorum.controller.features import update_features
from tests.sim.ablations.ablation import Ablation
from tests.sim.ablations.stories import Script
from tests.unit.controller import test_controller_registration as controllers
from tests.unit.controller import test_registration as brokers

ABLATIONS = (
    Ablation(
        "features-of-controllers",
        "a feature level rises only if every registered controller supports it (KIP-919)",
        update_features,
        "registrations_supported",
        lambda image: False,
        Script(controllers.test_every_registered_controller_must_support_the_level),
        "ErrorCode.INVALID_UPDATE_VERSION",
    ),
    Ablation(
        "feature-dependencies",
        "a feature level that needs a higher metadata.version is not raised",
        update_features,
        "check_dependencies",
        lambda context, update, proposed: None,
        Script(controllers.test_the_dependency_has_kafkas_words),
        "ErrorCode.INVALID_UPDATE_VERSION",
    ),
    Ablation(
        "features-of-brokers",
        "a broker that does not support a finalized level is not registered",
        registration,
        "check_features",
        lambda context, request: None,
        Script(brokers.test_a_finalized_feature_that_the_broker_does_not_know_must_be_at_zero),
        "UNSUPPORTED_VERSION",
    ),
)
