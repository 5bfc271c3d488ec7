"""A run of a scenario from start to end.

cluster_runs.py and listed_runs.py run scenarios on clusters, run.py one scenario. setup.py and
ending.py have its first and last stages, and evidence.py makes the result.
"""
