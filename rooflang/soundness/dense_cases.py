"""Cases of operators of dense models beside those of `cases`: attention of many heads, gates, biases, linear attention,
sampling."""

from __future__ import annotations

from rooflang.soundness.case import Case, line

_KEYS = ("=batch ctx kv dim", "=batch ctx kv val")

#: Cases by name.
DENSE_CASES: dict[str, Case] = {
    "grouped_sinks": line("grouped_attention", "batch head dim", *_KEYS, "*head", out="batch head val", sinks=True),
    "grouped_capped": line(
        "grouped_attention",
        "batch seq head dim",
        *_KEYS,
        "*head",
        out="batch seq head val",
        causal=True,
        sinks=True,
        window=2,
        soft_cap=2.0,
    ),
    "grouped_chunks": line(
        "grouped_attention", "batch seq head dim", *_KEYS, out="batch seq head val", causal=True, chunk=2
    ),
}
