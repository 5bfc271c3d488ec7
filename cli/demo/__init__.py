"""`quorate demo`: a demonstration of durability on this machine, with a verdict as exit status.

The demo starts a local cluster, writes numbered lines with librdkafka, kills a leader and the
active controller, restarts both, reads everything back and compares. Files in reading order:
command.py, run.py (the steps), workload.py (the client), history.py (the report from Spark). The
comparison and the cluster are those of cli/chaos."""
