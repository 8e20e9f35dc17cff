"""What the automatic search gains over the grid, at each batch size of each setting that both have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from statistics import fmean

from rooflang.report.markdown import markdown_table
from rooflang.report.numbers import show_count, show_gain, show_share
from rooflang.report.reproduction.checks import Gain, Gains, gains
from rooflang.report.reproduction.frontiers import Curve
from rooflang.report.reproduction.part import Done
from rooflang.report.reproduction.setting import PROFILES, TITLES

#: Names of a list that is shown in full only in the JSON.
_LONGEST = 12


def brief_gains(done: Done) -> str:
    """The gains by model, stage and profile, for the summary; nothing where there are none."""
    rows = []
    for model, stage, profile in product(done.scope.models, done.scope.stages, PROFILES):
        found = _found(done, stage=stage, assumptions=profile, model=model)
        if found.gains:
            rows.append(
                (TITLES.get(model, model), stage, profile, *_figures(found), _where(found.largest, f"{model} {stage}"))
            )
    if not rows:
        return ""
    heads = ("<model", "<stage", "<profile", *_FIGURES, "<most where")
    return (
        "Throughput of the best plan of the search over that of the grid's, at each batch size of each setting of "
        f"Figures 3 and 4 that both have:\n\n{markdown_table(heads, rows)}"
    )


def show_gains(done: Done) -> str:
    """Gains by profile and stage, then by model, context and number of GPUs; and what the comparison lacks."""
    rows: list[tuple[str, ...]] = []
    notes: list[str] = []
    said: list[str] = []
    for profile in PROFILES:
        said += _in_short(profile, done)
        for stage in done.scope.stages:
            found = _found(done, stage=stage, assumptions=profile)
            notes += _missing(profile, done.select(stage=stage, assumptions=profile, search="egraph"), found)
            if found.gains:
                ends = (show_gain(value) for value in (fmean(found.reach), max(found.reach)))
                settings = str(len(found.reach))
                rows.append((profile, stage, settings, *_figures(found), _where(found.largest), *ends))
    heads = ("<profile", "<stage", "settings", *_FIGURES, "<most where", "right end: mean", "most")
    text = (
        "Throughput of the best plan of the search over that of the grid's, at each batch size of each setting that "
        "both have; and, for each setting, the highest interactivity of the one over that of the other:\n\n"
        + markdown_table(heads, rows)
    )
    text = "\n".join([*said, "", text]) if said else text
    return "\n\n".join([text, *_by_model(done), *notes])


def _found(done: Done, **wanted: str | int) -> Gains:
    """The gains in the settings with these fields of a setting or a series."""

    def mine(search: str) -> list[Curve]:
        return [curve for curve in done.select(search=search) if all(_field(curve, x) == y for x, y in wanted.items())]

    return gains(mine("grid"), mine("egraph"), done.scope.batches)


def _field(curve: Curve, name: str) -> object:
    return getattr(curve.series if name == "assumptions" else curve.setting, name)


def _in_short(profile: str, done: Done) -> Iterator[str]:
    """The gains of a profile in both stages, as one sentence, with all batch sizes at which the search is behind; none
    where there is nothing to compare."""
    found = _found(done, assumptions=profile)
    if found.gains:
        mean, most = (show_gain(value) for value in (found.mean, found.largest.gain))
        kept = len(found.gains) - len(found.losses)
        behind = "; ".join(f"{_where(gain)}: {show_share(-gain.gain)}" for gain in found.losses)
        yield (
            f"**Under `{profile}` the search has the throughput of the grid or more at {kept:,} of "
            f"{len(found.gains):,} batch sizes in {len(found.reach)} settings: {mean} on average, {most} at most "
            f"({_where(found.largest)}).{f' It is behind at {behind}.' if behind else ''}**"
        )


#: What `_figures` says.
_FIGURES = ("compared", "≥ grid", "least", "mean", "most")


def _figures(found: Gains) -> tuple[str, ...]:
    counts = (len(found.gains), len(found.gains) - len(found.losses))
    values = (found.smallest.gain, found.mean, found.largest.gain)
    return (*(f"{count:,}" for count in counts), *(show_gain(value) for value in values))


def _where(gain: Gain, said: str = "") -> str:
    """The setting and the batch size, without its beginning where that is said beside it."""
    return f"{str(gain.grid.setting).removeprefix(said).strip()}, batch {show_count(gain.batch)}"


def _by_model(done: Done) -> list[str]:
    """Mean gain by model, stage, context and number of GPUs: a column for each profile."""
    rows, scope = [], done.scope
    for model, stage, context, gpus in product(scope.models, scope.stages, scope.contexts, scope.gpus):
        every = [
            _found(done, assumptions=profile, model=model, stage=stage, context=context, gpus=gpus)
            for profile in PROFILES
        ]
        cells = (
            f"{show_gain(found.mean)}, to {show_gain(found.largest.gain)}" if found.gains else "–" for found in every
        )
        rows.append((TITLES.get(model, model), stage, show_count(context), str(gpus), *cells))
    heads = ("<model", "<stage", "context", "GPUs", *(f"{profile}: mean, most" for profile in PROFILES))
    return ["Over all platforms and batch sizes:\n\n" + markdown_table(heads, rows)]


def _missing(profile: str, egraph: Sequence[Curve], found: Gains) -> list[str]:
    """What the comparison lacks."""
    notes = []
    stopped = [curve for curve in egraph if curve.stopped_by != "complete"]
    if stopped:
        names = "; ".join(str(curve.setting) for curve in stopped[:_LONGEST])
        notes.append(f"Under `{profile}` the time limit ended {len(stopped)} searches ({names}).")
    if found.only_grid:
        where = "; ".join(f"{curve.setting}, batch {show_count(batch)}" for curve, batch in found.only_grid[:_LONGEST])
        notes.append(f"Under `{profile}` the search has no point at {len(found.only_grid)} batch sizes ({where}).")
    return notes
