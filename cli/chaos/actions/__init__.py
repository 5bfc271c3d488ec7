"""The steps of scenarios: one coroutine for each kind of step.

- table.py: all kinds of steps. Each module *_actions.py has the steps of one family.
- scenario_run.py: the state of the run, which all steps share, and run_clock.py its clock.
  control/ has its nodes.
- targets.py, controller_question.py: the nodes that a step names.
- fault_log.py: the begin and the end of each fault.
"""
