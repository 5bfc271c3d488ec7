"""`quorate demo`: what the project promises, shown on this machine, with a verdict as exit
status."""
