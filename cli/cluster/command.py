"""`quorate cluster`: the cluster-id and unregister operations of kafka-cluster, and
`decommission`."""

from __future__ import annotations

import json

import click

from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.cli.cluster.broker_removal import require_dead, unregister_broker
from quorate.cli.cluster.decommission import decommission
from quorate.cli.cluster.description import describe_cluster
from quorate.cli.parsing.suggesting_group import SuggestingGroup
from quorate.cli.terminal.safe_text import echo
from quorate.config.key import MAX_INT


@click.group(cls=SuggestingGroup)
def cluster() -> None:
    """Show the cluster's id, and remove brokers from it."""


@cluster.command("cluster-id")
@cluster_options(controllers=True)
@format_option
def cluster_id(
    bootstrap_server: str | None,
    bootstrap_controller: str | None,
    command_config: str | None,
    timeout_s: float | None,
    output: str,
) -> None:
    """Print the cluster's id."""
    with connected(
        bootstrap_server=bootstrap_server,
        bootstrap_controller=bootstrap_controller,
        command_config=command_config,
        timeout_s=timeout_s,
    ) as admin:
        found = describe_cluster(admin).cluster_id
    echo(json.dumps({"cluster_id": found}) if output == "json" else f"Cluster ID: {found}")


@cluster.command()
@cluster_options(controllers=True)
@click.option(
    "--id",
    "-i",
    "broker_id",
    type=click.IntRange(max=MAX_INT),
    required=True,
    help="The id of the broker.",
)
@click.option(
    "--force", is_flag=True, help="Remove the registration even if the broker is alive or leads."
)
def unregister(
    bootstrap_server: str | None,
    bootstrap_controller: str | None,
    command_config: str | None,
    timeout_s: float | None,
    broker_id: int,
    force: bool,
) -> None:
    """Remove the registration of a broker that will not come back.

    A broker that is alive, or that leads partitions, needs --force. It then stops. Its replicas
    stay assigned to it. `quorate cluster decommission` moves them first."""
    with connected(
        bootstrap_server=bootstrap_server,
        bootstrap_controller=bootstrap_controller,
        command_config=command_config,
        timeout_s=timeout_s,
    ) as admin:
        if not force:
            require_dead(admin, broker_id)
        unregister_broker(admin, broker_id)
    echo(f"Broker {broker_id} is no longer registered.")


cluster.add_command(decommission)
