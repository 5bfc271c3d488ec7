"""`quorate cluster`: the cluster-id and unregister operations of kafka-cluster."""

from __future__ import annotations

import json

import click

from quorate.cli.client.admin import Admin, check
from quorate.cli.client.options import cluster_options, connected, format_option
from quorate.cli.suggesting_group import SuggestingGroup
from quorate.quorum.protocol.schemas.cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from quorate.quorum.protocol.schemas.unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


@click.group(cls=SuggestingGroup)
def cluster() -> None:
    """Show the cluster's id, and remove the registrations of brokers."""


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
    click.echo(json.dumps({"cluster_id": found}) if output == "json" else f"Cluster ID: {found}")


@cluster.command()
@cluster_options(controllers=True)
@click.option("--id", "-i", "broker_id", type=int, required=True, help="The id of the broker.")
def unregister(
    bootstrap_server: str | None,
    bootstrap_controller: str | None,
    command_config: str | None,
    timeout_s: float | None,
    broker_id: int,
) -> None:
    """Remove the registration of a broker that will not come back."""
    with connected(
        bootstrap_server=bootstrap_server,
        bootstrap_controller=bootstrap_controller,
        command_config=command_config,
        timeout_s=timeout_s,
    ) as admin:
        answer = admin.change(
            UnregisterBrokerRequest(broker_id=broker_id),
            UnregisterBrokerResponse,
            lambda answer: [answer.error_code],
        )
    check(answer.error_code, answer.error_message)
    click.echo(f"Broker {broker_id} is no longer registered.")


def describe_cluster(admin: Admin, *, fenced: bool = False) -> DescribeClusterResponse:
    """Return the cluster's description from a broker or a controller, as `admin` is connected.

    With `fenced` the response includes fenced brokers if the node supports that. Raise Refused on
    an error."""
    request = DescribeClusterRequest(
        include_cluster_authorized_operations=False,
        endpoint_type=admin.endpoint_type,
        include_fenced_brokers=fenced,
    )
    answer = admin.ask(request, DescribeClusterResponse, lambda answer: [answer.error_code])
    check(answer.error_code, answer.error_message)
    return answer
