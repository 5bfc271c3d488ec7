"""Dynamic configs.

- alter_configs.py: both requests that change configs.
- config_resources.py: the kinds of resources that have configs, and the checks of each kind.
- min_isr_configs.py: min.insync.replicas while ELR (KIP-966) is on.
"""
