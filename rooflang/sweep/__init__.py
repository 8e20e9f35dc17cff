"""Sweeps: `optimize` over models × clusters × stages × contexts × objectives, kept in a store that can be resumed.

A TOML file (`spec`) says what to compute; it is expanded to cases (`cases`), each with a key, the content hash of all
that its result depends on. Cases that are one search with several goals are a job (`job`), which a backend runs: this
process, local processes, or a cluster (`backends`). Results are appended to a SQLite file (`store`), a row a case.
"""

from rooflang.sweep.run import Summary, run_sweep
from rooflang.sweep.store import Store

__all__ = ["Store", "Summary", "run_sweep"]
