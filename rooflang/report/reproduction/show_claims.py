"""The paper's analysis as checks, and the numbers that explain the figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rooflang.report.explained import draw_needs, need_cells, share_rows
from rooflang.report.markdown import markdown_table
from rooflang.report.needs import PARTS, StepNeed, model_needs
from rooflang.report.numbers import show_count, show_rate, show_share
from rooflang.report.reproduction.claims import (
    EXCEEDS,
    REACHES,
    SCOPES,
    End,
    EndVerdict,
    ScopeRow,
    curve_ends,
    scope_holds,
    scope_jobs,
    scope_rows,
)
from rooflang.report.reproduction.frontiers import SERIES, frontier_jobs
from rooflang.report.reproduction.jobs import Job
from rooflang.report.reproduction.part import Done
from rooflang.report.reproduction.setting import BATCHES, PROFILES, TITLES, Scope

#: Contexts of the plots that explain the models, and batch sizes of the tables.
EXPLAINED = tuple(2**k for k in (12, 14, 16, 18, 20))
_SHOWN = (1, 256, 4096)


def claim_jobs(scope: Scope) -> Iterator[Job]:
    """The grid's curves, and its best throughput for each NVLink scope."""
    yield from frontier_jobs(scope, [series for series in SERIES if series.search == "grid"])
    yield from scope_jobs(scope)


def show_claims(done: Done) -> str:
    """Each statement with its verdict and its numbers."""
    curves = done.select(search="grid")
    parts = []
    for stage, statement in (
        ("prefill", "The left end of a prefill curve is the FLOP rate over the FLOPs of the model."),
        ("decode", "The right end of a decode curve is the bandwidth of HBM over the active bytes."),
    ):
        ends = curve_ends(curves, stage)
        if ends:
            parts.append(_ends(statement, stage, ends))
    rows = scope_rows(done.scope, done.results)
    if rows:
        parts.append(_scopes(rows))
    return "\n\n".join(parts)


def _ends(statement: str, stage: str, ends: Sequence[End]) -> str:
    what = "tok/s/GPU" if stage == "prefill" else "tok/s/user"
    verdicts = [
        EndVerdict.of(profile, mine) for profile in PROFILES if (mine := [e for e in ends if e.assumptions == profile])
    ]
    words = "; ".join(
        f"under `{each.assumptions}` {each.holds} of {each.count} ends are {REACHES:g} to {EXCEEDS:g} times the "
        f"formula (least {each.least:.2f}, middle {each.middle:.2f}, most {each.most:.2f})"
        for each in verdicts
    )
    verdict = "holds" if all(each.holds == each.count for each in verdicts) else "holds in part"
    by: dict[tuple[str, int, str], dict[str, list[End]]] = {}
    for end in ends:
        key = (end.setting.model, end.setting.context, end.setting.hardware)
        by.setdefault(key, {}).setdefault(end.assumptions, []).append(end)
    rows = [
        (
            TITLES.get(model, model),
            show_count(context),
            TITLES.get(hardware, hardware),
            *(cell for profile in PROFILES for cell in _end_cells(found.get(profile, []))),
        )
        for (model, context, hardware), found in by.items()
    ]
    heads = ("<model", "context", "<platform", *(f"{profile}: {x}" for profile in PROFILES for x in ("formula", what)))
    return (
        f"**{statement} Verdict: {verdict}.** {words[0].upper()}{words[1:]}. Simulated values are those of each number "
        "of GPUs, with their ratio to the formula, which is a ceiling for one GPU alone.\n\n"
        f"{markdown_table(heads, rows)}"
    )


def _end_cells(ends: Sequence[End]) -> tuple[str, str]:
    if not ends:
        return "–", "–"
    return show_rate(ends[0].formula), "; ".join(f"{show_rate(end.simulated)} ({end.ratio:.2f})" for end in ends)


def _scopes(rows: Sequence[ScopeRow]) -> str:
    ordered, shrinks = scope_holds(rows)
    verdict = "holds" if ordered and shrinks else "holds in part" if ordered or shrinks else "does not hold"
    lines = [
        (
            TITLES.get(row.model, row.model),
            show_count(row.context),
            row.assumptions,
            "–" if row.routing is None else show_share(row.routing),
            *("–" if value is None else show_rate(value) for value in row.tok_s_gpu.values()),
            "–" if row.gain is None else f"{row.gain:+.1%}",
        )
        for row in rows
    ]
    scopes = (f"{gpus} GPUs, domains of {domain}" for gpus, domain in SCOPES)
    heads = ("<model", "context", "<profile", "routing", *scopes, f"gain, {SCOPES[0][1]} to {SCOPES[1][1]}")
    return (
        "**A larger NVLink domain helps where routing dominates, and less as the context grows. Verdict: "
        f"{verdict}.** A larger share of routing {'goes' if ordered else 'does not go'} with a larger gain in most "
        f"pairs of models; the gain of {'every model shrinks' if shrinks else 'some model does not shrink'} from the "
        "shorter to the longer context. Peak decode throughput of the grid on GB300, tok/s/GPU; routing is its share "
        f"of the run without overlap in domains of {SCOPES[0][1]}.\n\n{markdown_table(heads, lines)}"
    )


def show_needs_of_models(done: Done) -> str:
    """What each model needs per token, as a table and a figure, under both profiles."""
    parts = [
        "Bytes and FLOPs per token of a step, every operator run whole: weights are read once for the batch, KV cache "
        "for each request. `rooflang explain MODEL --context … --batch … --plot FILE.svg` does it for any model."
    ]
    for profile in PROFILES:
        needs = {
            model: model_needs(model, stage="decode", contexts=done.scope.contexts, batches=_SHOWN, assumptions=profile)
            for model in done.scope.models
        }
        parts.append(f"### Decode, {profile} assumptions\n\n{_needs_table(needs)}")
        parts.append("Shares of the bytes:\n\n" + _share_table(needs, "bytes"))
        parts.append("Shares of the FLOPs:\n\n" + _share_table(needs, "total_flops"))
    for model in done.scope.models:
        drawn = model_needs(model, stage="decode", contexts=EXPLAINED, batches=BATCHES, assumptions="physical")
        stem = f"needs-{model}"
        for suffix in (".svg", ".png"):
            draw_needs(drawn, f"{TITLES.get(model, model)}, decode", done.figure(stem).with_suffix(suffix))
        parts.append(done.image(stem, f"What a decoded token of {TITLES.get(model, model)} needs"))
    return "\n\n".join(parts)


def _needs_table(needs: dict[str, list[StepNeed]]) -> str:
    heads = ("<model", "context", "batch", "weights", "KV cache", "activations", "bytes", "FLOPs", "FLOP/byte")
    rows = [(TITLES.get(model, model), *need_cells(step)) for model, steps in needs.items() for step in steps]
    return markdown_table(heads, rows)


def _share_table(needs: dict[str, list[StepNeed]], amount: str) -> str:
    rows = [(TITLES.get(model, model), *row) for model, steps in needs.items() for row in share_rows(steps, amount)]
    return markdown_table(("<model", "context", "batch", *PARTS), rows)


def no_jobs(scope: Scope) -> Iterator[Job]:
    """What is read off the graphs needs none."""
    return iter(())
