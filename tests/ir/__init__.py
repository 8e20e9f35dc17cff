"""Tests of the intermediate representation; a package, so that they share operators and random layouts of them."""
