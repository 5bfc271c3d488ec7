"""`quorate features`: the describe operation of kafka-features.

The operations that change features are in updates.py."""

from __future__ import annotations

import json
from typing import Any

import click

from quorate.cli.client.admin import Admin
from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.cli.parsing.suggesting_group import SuggestingGroup
from quorate.cli.terminal.safe_text import echo
from quorate.quorum.protocol.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse

METADATA_VERSION = "metadata.version"
# The names of the levels of metadata.version, from level 1 on.
LEVELS = (
    "3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0",
    "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV1",
    "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1", "4.0-IV2",
    "4.0-IV3", "4.1-IV0", "4.1-IV1",
)  # fmt: skip


@click.group(cls=SuggestingGroup)
@cluster_options(controllers=True)
@click.pass_context
def features(context: click.Context, /, **cluster: Any) -> None:
    """List and change the features of the cluster.

    The options that name the cluster may precede the operation, as in Kafka, or follow it."""
    context.obj = cluster


def given(cluster: dict[str, Any]) -> dict[str, Any]:
    """Return the options of an operation; those that are missing come from the group."""
    outer = click.get_current_context().obj
    return {name: outer[name] if value is None else value for name, value in cluster.items()}


@features.command()
@cluster_options(controllers=True)
@format_option
def describe(output: str, **cluster: Any) -> None:
    """Print the supported and the finalized versions of features."""
    with connected(**given(cluster)) as admin:
        epoch, supported, finalized = feature_levels(admin)
    if output == "json":
        rows = [
            {
                "feature": name,
                "min": low,
                "max": high,
                "finalized": finalized.get(name, 0),
            }
            for name, (low, high) in supported.items()
        ]
        echo(json.dumps({"epoch": epoch, "features": rows}))
        return
    for name, (low, high) in supported.items():
        echo(
            f"Feature: {name}"
            f"\tSupportedMinVersion: {level_text(name, low)}"
            f"\tSupportedMaxVersion: {level_text(name, high)}"
            f"\tFinalizedVersionLevel: {level_text(name, finalized.get(name, 0))}"
            f"\tEpoch: {epoch if epoch >= 0 else '-'}"
        )


def feature_levels(admin: Admin) -> tuple[int, dict[str, tuple[int, int]], dict[str, int]]:
    """Return the epoch, the supported range of each feature, and the finalized level of each.

    The epoch is negative if the node knows none."""
    request = ApiVersionsRequest(client_software_name="quorate-cli", client_software_version="1")
    answer = admin.ask(request, ApiVersionsResponse)
    supported = sorted(answer.supported_features, key=lambda each: each.name)
    return (
        answer.finalized_features_epoch,
        {each.name: (each.min_version, each.max_version) for each in supported},
        {each.name: each.max_version_level for each in answer.finalized_features},
    )


def level_text(feature: str, level: int) -> str:
    """Return the name of a level of metadata.version. Other levels are numbers."""
    if feature == METADATA_VERSION and 0 < level <= len(LEVELS):
        return LEVELS[level - 1]
    return str(level)
