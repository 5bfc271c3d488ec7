"""Free ports are outside of the range that the kernel gives to connections."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.quorum.rpc import ports
from quorate.quorum.rpc.ports import EPHEMERAL_ELSEWHERE, ephemeral_ports, free_socket

HOST = "127.0.0.1"


def test_free_ports_are_outside_of_the_ephemeral_range() -> None:
    for _ in range(20):
        with free_socket(HOST) as found:
            assert found.getsockname()[1] not in ephemeral_ports()


def test_sockets_that_are_open_have_ports_of_their_own() -> None:
    found = [free_socket(HOST) for _ in range(50)]
    try:
        assert len({each.getsockname()[1] for each in found}) == 50
    finally:
        for each in found:
            each.close()


@pytest.mark.parametrize("text", ["", "1 2 3", "a b"])
def test_a_range_that_cannot_be_read(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "range"
    file.write_text(text)
    monkeypatch.setattr(ports, "EPHEMERAL_FILE", file)
    assert ephemeral_ports() == EPHEMERAL_ELSEWHERE


def test_a_range_of_all_ports_leaves_the_choice_to_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "range"
    file.write_text("1024\t65535\n")
    monkeypatch.setattr(ports, "EPHEMERAL_FILE", file)
    with free_socket(HOST) as found:
        assert found.getsockname()[1]
