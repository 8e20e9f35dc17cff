"""Are the rules sound? Examples, mutants, lemmas, and derivations from the literal primitives.

- `source`, `search`: examples that can be played again, and counterexamples made small.
- `cases`, `draw`: small graphs of every operator kind, laid over a few ranks, evenly, unevenly, or in pieces.
- `splits`, `merges`, `fusions`, `orders`, `identities`, `places`: what each rule claims, as a property of an example.
- `mutants`: rules broken on purpose, each of which some example has to refute.
- `lemmas`: what holds for shards of any number and size.
- `algebra`: the term algebra of scatter, gather, broadcast and reduce, in which every row and step is derived.
- `check`, `report`: `check_rule` for one rule or operator, `verify_rules` for all.
"""
