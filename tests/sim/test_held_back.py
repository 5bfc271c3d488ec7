"""The workloads whose clients or brokers are held back or removed, and their checks.

They are a replication throttle, the quotas of a client, and an administrator that unregisters
brokers.
"""

from __future__ import annotations

import asyncio

import pytest

from quorate.quorum.metadata.image import MetadataImage
from tests.sim.ablations.table import ABLATIONS
from tests.sim.checks.committed_log import Violation
from tests.sim.run import Simulation, play, simulation
from tests.sim.scripts.staging import healed, settled
from tests.sim.workloads.quotas import Quotas
from tests.sim.workloads.throttled import Throttled
from tests.sim.workloads.unregistered import Unregistered, require_gone
from tests.sim.workloads.workload import Workload
from tests.sim.world.shape import Shape

RUN_S = 5


async def run(stage: Simulation, *works: type[Workload]) -> list[Workload]:
    await settled(stage)
    begun = [await stage.begin(each) for each in works]
    await asyncio.sleep(RUN_S)
    stage.quorum_admin.stopping = True
    await healed(stage)
    return begun


def test_all_of_them_do_something_and_find_wrong_histories() -> None:
    async def script(stage: Simulation) -> None:
        throttled, quotas, unregistered = await run(stage, Throttled, Quotas, Unregistered)
        assert isinstance(throttled, Throttled) and isinstance(quotas, Quotas)
        assert isinstance(unregistered, Unregistered)
        for kind in (
            "throttled: times the throttle was exceeded",
            "throttled: times a lagging replica was throttled",
            "throttled: writes of an exempt ISR",
            "quotas: throttled answers",
            "quotas: muted connections that were read again",
            "quotas: changer was let",
            "quotas: changer was refused",
            "quotas: 192.0.2.1 was let",
            "quotas: 192.0.2.1 was refused",
            "unregistered: unregistered brokers",
        ):
            assert stage.coverage[f"workload {kind}"] > 0, kind

        throttled.acknowledged[1 << 20] = b"never there"
        with pytest.raises(Violation, match="is not at"):
            await throttled.check()
        quotas.sent_bytes[stage.cluster.brokers[0].id] = 1 << 20
        with pytest.raises(Violation, match=r"broker .* took 1048576 bytes in"):
            quotas.check_rate()
        quotas.sent_bytes.clear()
        quotas.bounds_cpu, quotas.answers[stage.cluster.brokers[0].id] = True, 1 << 20
        with pytest.raises(Violation, match="requests in"):
            quotas.check_rate()
        for each in quotas.others:
            each.used = 1 << 20
            with pytest.raises(Violation, match=f"{each.name} used .* at a quota of"):
                await each.check()
        image = stage.cluster.newest_image()
        broker = image.brokers[stage.cluster.brokers[0].id]
        with pytest.raises(Violation, match="is still registered"):
            require_gone(image, broker.id)
        with pytest.raises(Violation, match="is not registered"):
            require_gone(image._replace(brokers=MetadataImage().brokers), broker.id)
        unregistered.incarnations[broker.id] = broker.incarnation_id
        with pytest.raises(Violation, match="did not register again"):
            await unregistered.check()

    with simulation("held back", Shape(overrides=Quotas.keys)) as stage:
        play(stage, script(stage))


def test_a_throttle_of_the_isr_is_found() -> None:
    with (
        ABLATIONS["throttle-exemption"].in_force(),
        simulation("throttled", Shape()) as stage,
        pytest.raises(Violation, match=r"beside a throttle|removed a replica|throttled is checked"),
    ):
        play(stage, run(stage, Throttled))


def test_a_connection_that_is_not_muted_is_found() -> None:
    with (
        ABLATIONS["quota-muting"].in_force(),
        simulation("quotas", Shape(overrides=Quotas.keys)) as stage,
        pytest.raises(Violation, match=r"the connection was read|bytes in"),
    ):
        play(stage, run(stage, Quotas))
