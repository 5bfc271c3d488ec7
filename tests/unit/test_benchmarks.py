"""The helpers that the benchmarks share: ratios, percentiles, CPU time."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.figure import Figure, as_json, as_table, percentile, rows
from benchmarks.machine import Limits
from benchmarks.pipelined import Held
from benchmarks.target import cpu_s, pss_mb
from quorate.quorum.raft.messages import VoteResponse
from quorate.quorum.rpc.messages import BY_CLASS
from quorate.quorum.seams import ProtocolError

LIMITS = Limits(fsyncs_per_s=1000.0, round_trip_ms=0.1, loopback_mb_per_s=2000.0)


def test_a_ratio_above_one_is_in_our_favour() -> None:
    ours = [
        Figure("rate", 500.0, "/s", "fsyncs_per_s", more_is_better=True),
        Figure("wait", 0.5, "ms", "round_trip_ms"),
    ]
    peer = {
        "rate": Figure("rate", 250.0, "/s", more_is_better=True),
        "wait": Figure("wait", 1.5, "ms"),
    }
    rate, wait = rows(ours, peer, LIMITS)
    assert (rate.ratio, rate.of_limit) == (2.0, 0.5)
    assert (wait.ratio, wait.of_limit) == (3.0, 0.2)


def test_without_a_peer_there_is_no_ratio() -> None:
    shown = rows([Figure("rate", 500.0, "/s", more_is_better=True)], {}, None)
    assert shown[0].ratio is None
    assert '"ratio": null' in as_json(shown)
    assert as_table(shown, "none").splitlines()[1].split() == ["rate", "500", "/s"]


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(each) for each in range(100, 0, -1)]
    assert percentile(values, 0.5) == 51.0
    assert percentile(values, 0.99) == 100.0
    assert percentile([7.0], 0.99) == 7.0


def test_a_load_is_told_as_a_rate_and_what_its_requests_took() -> None:
    shown = Held(per_s=50.0, taken_ms=[4.0, *[2.0] * 98, 9.0]).figures("updates", 1)
    assert [(each.name, each.value, each.unit) for each in shown] == [
        ("updates, 1 outstanding", 50.0, "/s"),
        ("  p50, 1", 2.0, "ms"),
        ("  p99, 1", 9.0, "ms"),
    ]
    assert shown[0].more_is_better
    assert shown[0].limit == "fsyncs_per_s"
    assert Held(1.0, [1.0]).figures("updates", 32)[0].limit is None


def test_what_the_kernel_says_of_a_process_is_understood() -> None:
    before_s = cpu_s(os.getpid())
    assert 0 < before_s <= sum(os.times()[:2]) + 0.1
    assert 1 < pss_mb([os.getpid()]) < 10_000


UNCHECKED = """
from benchmarks.unchecked_server import REMOVED, holder_of, remove_checks

remove_checks()
for removed in REMOVED:
    assert getattr(holder_of(removed.holder), removed.name) is removed.replacement, removed
from quorate.quorum.raft.messages import VoteResponse
from quorate.quorum.rpc.messages import BY_CLASS

kind = BY_CLASS[VoteResponse]
fields = len(VoteResponse.__dataclass_fields__)
print(kind.read([kind.number, 1] + [-(1 << 70)] * fields))
"""


def test_the_unchecked_server_reads_what_a_checked_one_refuses() -> None:
    """Otherwise the benchmark of the cost of the checks compares two servers with all checks."""
    kind = BY_CLASS[VoteResponse]
    bad = [kind.number, 1] + [-(1 << 70)] * len(VoteResponse.__dataclass_fields__)
    with pytest.raises(ProtocolError):
        kind.read(bad)
    ran = subprocess.run([sys.executable, "-c", UNCHECKED], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert str(-(1 << 70)) in ran.stdout
