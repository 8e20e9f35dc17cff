"""Tests of plans: grids, paths, lowering, certificates."""
