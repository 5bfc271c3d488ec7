"""`quorate chaos`: failure scenarios on real processes, with a verdict.

A scenario is a TOML file: a cluster, a workload, expectations, and variants made of steps. A run
creates a topic, writes and reads it with clients of its own, changes metadata, and carries out the
steps, which kill, stop, pause or isolate nodes. Afterwards it ends all faults, reads everything
back and compares. The verdict is good if every check of `checks.py` is good.

Inputs are the scenario, a local cluster (`quorate up`), the nodes' fault sockets (quorum/faults)
and the metadata logs on disk. Outputs are lines on the terminal, JSON, JUnit XML, or an HTML page.

Decisions that hold for the whole package:

- A run always ends with a result, in bounded time. Its parts after the steps are stages with a
  limit (`ending.py`), and what fails there is a problem of the result.
- Faults are leases. They end by themselves if the run is killed (`fault_sockets.py`,
  `pause_guard.py`), and so does a cluster that the run has started (`process_cluster.py`).
- The verdict is a pure function of the observations (`observations.py`).

Files in reading order:

- command.py, cluster_runs.py: the commands and the directories of their clusters. heal.py,
  compare.py, describe.py: smaller commands.
- scenario.py, steps.py, scenario_keys.py, loader.py, step_order.py, toml_lines.py: the language of
  scenario files, its reader, its rules about the order of steps, its errors.
- run.py, run_setup.py, scenario_run.py, ending.py, read_back.py: a run from start to end.
- actions.py: the table of steps. node_actions.py, link_actions.py, rule_actions.py,
  reassign_actions.py, client_actions.py, wait_actions.py, controller_question.py, targets.py: the
  steps, and the nodes that they name.
- process_cluster.py, fault_sockets.py, pause_guard.py, fault_log.py: processes and faults.
- brokers.py, writer.py, reader.py, metadata_probe.py, ledger.py, read_delays.py, latencies.py: the
  clients, and the record of what they did.
- metadata_tail.py, timeline.py, outage.py: events from the metadata log, and gaps of writers.
- observations.py, evidence.py, comparison.py, replicas.py, checks.py: the verdict. One module for
  each family of checks, such as fault_checks.py.
- result.py, result_schema.py, junit.py, view.py, page.py, page_lanes.py, page_latencies.py: the
  output."""
