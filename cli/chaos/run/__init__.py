"""A run of a scenario from start to end.

- cluster_choice.py: the cluster that the options of `chaos run` name. temporary_runs.py,
  existing_runs.py and listed_runs.py run a scenario on each kind of cluster. They return a result
  in bounded time, also if the cluster does not start or is broken afterwards. Only mistakes that
  are known before anything starts raise an error.
- run.py: one run. setup.py and ending.py have its first and last stages, evidence.py makes the
  result, and interruptible.py lets signals end it.
"""
