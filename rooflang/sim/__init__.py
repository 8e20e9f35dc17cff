"""Discrete-event simulation of a placed graph: contention, streams, liveness and memory on an exact symmetry quotient."""
