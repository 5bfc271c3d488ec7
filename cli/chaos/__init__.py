"""`quorate chaos`: failures rehearsed on real processes, with a verdict."""
