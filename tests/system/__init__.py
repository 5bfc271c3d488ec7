"""A cluster of real processes under random faults, with checks of its clients and disks.

`faults` draws a schedule, and `run` carries it out under load and compares afterwards. `nodes`
hurts processes, `faulty_nodes` also disks (`disk_faults`) and links (`links`, `proxies`). Each kind
of fault counts the times that the nodes noticed it. A run in which a kind had no effect fails.
"""
