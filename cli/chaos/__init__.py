"""`quorate chaos`: failure scenarios on real processes, with a verdict.

A scenario is a TOML file: a cluster, a workload, expectations, and variants made of steps. A run
creates a topic, writes and reads it with clients of its own, and carries out the steps, which kill,
stop or isolate nodes. Afterwards it ends all faults, reads everything back and compares. The
verdict is good if no acknowledged record is lost, duplicated, reordered or changed, if all in-sync
replicas are equal, and if every step and expectation was met.

Inputs are the scenario, a local cluster (`quorate up`), the nodes' fault sockets (quorum/faults)
and the metadata logs on disk. Outputs are lines on the terminal, JSON, or an HTML page.

Files in reading order:

- command.py: the commands and the directories of their clusters.
- scenario.py, loader.py, toml_lines.py: the language of scenario files, its reader, its errors.
- run.py, run_setup.py, scenario_run.py, actions.py: a run from start to verdict.
- process_cluster.py, fault_sockets.py: processes and faults.
- brokers.py, writer.py, reader.py, ledger.py: the clients, and the record of what they sent.
- metadata_tail.py, timeline.py, outage.py: events from the metadata log, and gaps of writers.
- comparison.py, replicas.py, verdict.py: the checks. All three are pure, or only read files.
- view.py, page.py, page_lanes.py: the output."""
