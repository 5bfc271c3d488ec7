"""The command `python -m benchmarks [NAME ...]`: run all benchmarks, or those that are named."""

from __future__ import annotations

from benchmarks import (
    checks_alone,
    cold_start,
    commits,
    compaction,
    consume,
    cost_of_checks,
    create_topics,
    decode,
    failover_broker,
    failover_controller,
    history_scale,
    image,
    memory,
    metadata_updates,
    one_record,
    other_version,
    produce,
    produce_while_cleaning,
    recovery,
    run,
    thousand_partitions,
    tls,
)

MODULES = (
    failover_broker,
    failover_controller,
    cold_start,
    memory,
    metadata_updates,
    commits,
    one_record,
    produce,
    consume,
    create_topics,
    thousand_partitions,
    decode,
    history_scale,
    image,
    recovery,
    compaction,
    checks_alone,
    cost_of_checks,
    other_version,
    produce_while_cleaning,
    tls,
)

run.main([module.BENCHMARK for module in MODULES])
