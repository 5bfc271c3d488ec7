"""`quorate chaos`: failure scenarios on real processes, with a verdict.

A scenario is a TOML file: a cluster, a workload, expectations, and variants made of steps. A run
creates a topic, writes and reads it with clients of its own, changes metadata, and carries out the
steps, which kill, stop, pause or isolate nodes. Afterwards it ends all faults, reads everything
back and compares. The verdict is good if every check of `checks/table.py` is good.

Inputs are the scenario and a cluster. Those of `quorate up` have fault sockets (quorum/faults), and
metadata logs on disk. Those of a nodes.toml have commands, and are asked by Kafka's protocol.
Outputs are lines on the terminal, JSON, JUnit XML, or an HTML page.

Decisions that hold for the whole package:

- A run always ends with a result, in bounded time. Its parts after the steps are stages with a
  limit (`run/ending.py`), and what fails there is a problem of the result.
- Faults are leases. They end by themselves if the run is killed (`control/`), and so does a cluster
  that the run has started (`control/process_cluster.py`).
- The verdict is a pure function of the observations (`checks/evidence.py`).

In reading order:

- command.py, heal.py: the commands.
- scenario/, loading/: the language of scenario files, and their reader.
- workload/: the clients of a run, and the record of what they did.
- timeline/: the events of the run, by time.
- checks/: the verdict.
- control/: the nodes of a cluster, and how faults reach them.
- actions/: the steps.
- run/: a run from start to end.
- results/: the forms of a result."""
