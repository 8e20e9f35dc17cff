"""Tests of the search: problems, what is looked at, screening, points."""
