"""Tests of what shows that the rules are sound."""
