"""A cluster of real processes, hurt at random while clients use it; then told against there.

`faults` draws what happens from a seed, `nodes` does it, `load` and `admin_load` are the clients
and what they were told, `disks` reads what is left when everything is stopped, `run` is the story.
`python -m tests.system --help` runs seeds by hand.
"""
