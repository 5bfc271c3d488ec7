"""The features of the cluster, and the controllers that support them.

- first_records.py: the features of an empty log, and what a new active controller writes first.
- update_features.py: a change of feature levels.
- controller_registration.py: the features that each controller supports (KIP-919).
"""
