"""The messages of `quorate console` about its own address. It needs no cluster to print them."""

from __future__ import annotations

import socket

import pytest
from click.testing import CliRunner

from quorate.cli.console.command import console

NOTHING = ("--bootstrap-server", "127.0.0.1:1")


@pytest.mark.parametrize(
    ("options", "may"), [((), "can see the"), (("--allow-actions",), "can see and change the")]
)
def test_a_port_in_use_and_the_risk_of_other_machines_are_named(
    options: tuple[str, ...], may: str
) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        listen = ("--listen", "0.0.0.0", "--port", str(port))
        found = CliRunner().invoke(console, [*NOTHING, *listen, *options])
    assert found.exit_code != 0
    assert may in found.output
    assert f"cannot listen on 0.0.0.0 port {port}" in found.output
    assert "Choose another --port\n" in found.output


def test_an_address_of_another_machine_is_refused_with_the_option() -> None:
    found = CliRunner().invoke(console, [*NOTHING, "--listen", "192.0.2.1", "--port", "0"])
    assert found.exit_code != 0
    assert "Choose another --listen or --port" in found.output
