"""Tests of the cost model, on a toy machine with round numbers."""
