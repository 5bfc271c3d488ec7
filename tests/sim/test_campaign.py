"""A campaign of many seeds ends on Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from multiprocessing import active_children

import pytest

from tests.sim.campaign import outcomes
from tests.sim.seeds import Plan

HOURS_S = 1e6


@pytest.mark.timeout(120)
def test_an_interrupted_campaign_ends_in_the_midst_of_its_seeds() -> None:
    this_thread = threading.get_ident()

    def interrupt() -> None:
        while len(active_children()) < 2:
            time.sleep(0.01)
        signal.pthread_kill(this_thread, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        list(outcomes([1, 2, 3], Plan(controllers_only=True, faults_s=HOURS_S), processes=2))
    assert not active_children()
