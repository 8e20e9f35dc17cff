"""Tests, by package; helpers are shared by relative imports."""
