"""The role of a controller: requests to the pure rules of `quorum/controller`, and their records to
the log.

- controller_node.py: the parts of the role. controller_port.py with decided_apis.py:
  requests in Kafka's protocol.
- controller_shell.py with controller_queue.py: one decision after another. controller_decision.py,
  long_decision.py: one decision. uncommitted_decisions.py, controller_batch.py: what waits for its
  commit.
- voter_admin.py: changes of the voters. broker_probes.py: is a silent broker dead?
  replica_log_requests.py: which replica has the longest log?
- own_registration.py with controller_registrar.py: the registration of this controller.
- client_of_envelope.py, describe_configs.py, controller_settings.py.
- cluster_event_log.py, controller_stages.py, controller_metrics.py with controller_metric_table.py:
  what an operator sees.
"""
