"""Tests of the simulator; a package, so that they share generators and the exact oracle."""
