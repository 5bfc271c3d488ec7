"""`quorate features`: kafka-features' describe."""

from __future__ import annotations

import json

import click

from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.quorum.rpc.kafka.schemas.api_versions import ApiVersionsRequest, ApiVersionsResponse

METADATA_VERSION = "metadata.version"
# From level 1 on.
LEVELS = (
    "3.0-IV1", "3.1-IV0", "3.2-IV0", "3.3-IV0", "3.3-IV1", "3.3-IV2", "3.3-IV3", "3.4-IV0",
    "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2", "3.7-IV0", "3.7-IV1",
    "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0", "4.0-IV0", "4.0-IV1", "4.0-IV2",
    "4.0-IV3", "4.1-IV0", "4.1-IV1",
)  # fmt: skip


@click.group()
def features() -> None:
    """Which features the cluster has, in which versions."""


@features.command()
@cluster_options(controllers=True)
@format_option
def describe(
    bootstrap_server: str | None,
    bootstrap_controller: str | None,
    command_config: str | None,
    timeout_s: float | None,
    output: str,
) -> None:
    """Supported and finalized versions."""
    with connected(
        bootstrap_server=bootstrap_server,
        bootstrap_controller=bootstrap_controller,
        command_config=command_config,
        timeout_s=timeout_s,
    ) as admin:
        request = ApiVersionsRequest(
            client_software_name="quorate-cli", client_software_version="1"
        )
        answer = admin.ask(request, ApiVersionsResponse)
    finalized = {each.name: each.max_version_level for each in answer.finalized_features}
    supported = sorted(answer.supported_features, key=lambda each: each.name)
    if output == "json":
        rows = [
            {
                "feature": each.name,
                "min": each.min_version,
                "max": each.max_version,
                "finalized": finalized.get(each.name, 0),
            }
            for each in supported
        ]
        click.echo(json.dumps({"epoch": answer.finalized_features_epoch, "features": rows}))
        return
    epoch = answer.finalized_features_epoch
    for each in supported:
        click.echo(
            f"Feature: {each.name}"
            f"\tSupportedMinVersion: {level_text(each.name, each.min_version)}"
            f"\tSupportedMaxVersion: {level_text(each.name, each.max_version)}"
            f"\tFinalizedVersionLevel: {level_text(each.name, finalized.get(each.name, 0))}"
            f"\tEpoch: {epoch if epoch >= 0 else '-'}"
        )


def level_text(feature: str, level: int) -> str:
    """metadata.version has names; a level that has none yet is its number."""
    if feature == METADATA_VERSION and 0 < level <= len(LEVELS):
        return LEVELS[level - 1]
    return str(level)
