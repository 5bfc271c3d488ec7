"""Both transports in the conformance suite, and properties that only real sockets show."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from quorate.quorum.seams import Wire
from tests.unit.rpc.nets import LINKED, RUNNERS, Net, on_every_net
from tests.unit.rpc.transport_conformance import SCENARIOS

pytestmark = pytest.mark.timeout(20)


@on_every_net
@pytest.mark.parametrize("wire", LINKED, ids=lambda wire: wire.value)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_conformance(
    kind: str, wire: Wire, scenario: Callable[[Net, Wire], Awaitable[None]]
) -> None:
    async def checked(net: Net) -> None:
        await scenario(net, wire)
        assert not net.failures

    RUNNERS[kind](checked)
