"""Cases of operators of dense models beside those of `cases`: attention of many heads, gates, biases, linear attention,
sampling."""

from __future__ import annotations

from rooflang.soundness.case import Case, line

_GATES = ("b h", "b h", "*h", "*h")
_ROWS = ("b seq h", "b seq h", "*h", "*h")
_KEYS = ("=batch ctx kv dim", "=batch ctx kv val")

#: Cases by name.
DENSE_CASES: dict[str, Case] = {
    "bias": line("bias", "b t h", "*h", out="t b h"),
    "append_by_head": line("kv_append", "b kv h", "=b ctx kv h", out="b ctx kv h"),
    "window_by_head": line("last_window", "b seq kv h", out="b window kv h"),
    "pointwise": line("pointwise", "b t h", "t h", out="h b t"),
    "rowwise": line("rowwise", "b t h", "t h k", out="t b n", function="cat"),
    "rowwise_whole": line("rowwise", "b h", out="h b", flops=2.0),
    "opaque": line("opaque", "b h", "*h k", out="b n", flops=3.0),
    "scale": line("scale", "b h", out="h b", factor=-1.5),
    "gated_activation": line("gated_activation", "b h t", "t b h", out="b t h", function="gelu"),
    "gated_biased": line(
        "gated_matmul",
        "b e k",
        "*e k gate n",
        "*gate e n",
        out="b e n",
        sizes={"gate": 2},
        function="swiglu_oai",
    ),
    "activation_capped": line("activation", "b h", out="b h", function="soft_cap", cap=2.0),
    "sigmoid_of_rows": line("sigmoid_mul", "b h t", "t b", out="b t h"),
    "delta_update_by_head": line("delta_update", "b h k", "b h v", *_GATES, "~b h k v", out="b h k v", gate="softplus"),
    "delta_scan_by_head": line(
        "delta_scan", "b seq h k", "b seq h k", "b seq h v", *_ROWS, out="b seq h v", gate="softplus"
    ),
    "delta_final_by_head": line("delta_final", "b seq h k", "b seq h v", *_ROWS, out="b h k v", gate="softplus"),
    "linear_update": line("linear_update", "b h k", "b h v", "*h", "~b h k v", out="b h k v"),
    "linear_read": line("linear_read", "b h k", "b h k v", out="b h v"),
    "linear_scan": line("linear_scan", "b seq h k", "b seq h k", "b seq h v", "*h", out="b seq h v"),
    "linear_final": line("linear_final", "b seq h k", "b seq h v", "*h", out="b h k v"),
    "route_softmax": line("route", "b expert", out="b expert", top_k=2, scores="softmax"),
    "route_sigmoid": line(
        "route", "b t expert", "*expert", out="t b expert", top_k=2, scores="sigmoid", renormalise=True
    ),
    "repeat": line("repeat", "b kv t", out="b t member"),
    "flatten": line("flatten", "outer b inner", out="b whole", sizes={"whole": 4}),
    "top_k": line("top_k", "b t vocab", out="t b chosen", ids=True),
    "sample_top_k": line("sample", "b vocab", "#b", out="b", ids=True, top_k=2, temperature=0.5),
    "sample_top_k_p": line("sample", "b t vocab", "#t b", out="t b", ids=True, top_k=3, top_p=0.6),
    "sample_nucleus": line("sample", "b vocab", "#b", out="b", ids=True, top_p=0.6),
    "rope_part": line("rope", "b t even", "#t b", out="b t even", fraction=0.5),
    "rope_part_interleaved": line("rope", "b even", "#b", out="b even", interleaved=True, fraction=0.5),
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
