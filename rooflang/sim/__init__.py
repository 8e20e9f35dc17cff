"""Discrete-event simulation: contention, streams, liveness and memory, on an exact symmetry quotient."""
