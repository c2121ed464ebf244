"""A real HTTP receiver with one path a behaviour, and `make demo`, which exercises them all."""
