"""The steps of scenarios: one coroutine for each kind of step.

- table.py: all kinds of steps. Each module *_actions.py has the steps of one family.
- scenario_run.py: the state of the run, which all steps share. process_cluster.py: its processes.
- targets.py, controller_question.py: the nodes that a step names.
- fault_sockets.py, pause_guard.py: how faults reach nodes, as leases. fault_log.py: when they did.
"""
