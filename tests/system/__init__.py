"""A cluster of real processes under random faults, with checks of its clients and disks."""
