"""What a model needs per token, as text, as JSON and as a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rooflang.hw.cluster import Device
from rooflang.report.layout import paragraph, table
from rooflang.report.needs import PARTS, Need, StepNeed
from rooflang.report.numbers import show_count, show_share
from rooflang.report.reproduction import style
from rooflang.units import show_bytes

#: Schema of the JSON.
NEEDS_SCHEMA = "rooflang.needs/1"

_HEADS = ("context", "batch", "weights", "KV cache", "activations", "bytes", "FLOPs", "FLOP/byte")


def show_needs(needs: Sequence[StepNeed], device: Device | None = None) -> str:
    """Bytes and FLOPs per token, then the shares of the parts of the model in both. With a device also the time that
    one of it would take for them."""
    parts = ["per token", table((*_HEADS, *(_TIME if device else ())), [_row(step, device) for step in needs])]
    for what, amount in (("bytes", "bytes"), ("FLOPs", "total_flops")):
        parts.append(f"share of {what}\n" + table(("context", "batch", *PARTS), share_rows(needs, amount)))
    if device is not None:
        ridges = ", ".join(
            f"{dtype} {peak / device.hbm_bytes_per_s:,.0f}"
            for dtype, peak in device.peaks.items()
            if dtype not in device.emulated
        )
        parts.append(
            paragraph(
                f"On {device.name}, whose FLOP/byte are {ridges}. Tokens per second are a ceiling of one device that "
                "holds all of the model, memory and compute perfectly overlapped; where the weights are shared out, "
                "it is one of each device.",
                then="  ",
            )
        )
    return "\n\n".join(parts)


_TIME = ("memory", "compute", "tok/s", "<bound by")


def need_cells(step: StepNeed) -> tuple[str, ...]:
    """The cells of a row, as `_HEADS` names them."""
    need = step.total
    amounts = (need.weight_bytes, need.kv_bytes, need.activation_bytes, need.bytes)
    figures = (*map(show_bytes, amounts), show_flops(need.total_flops), f"{need.intensity:,.1f}")
    return (show_count(step.context), show_count(step.batch), *figures)


def _row(step: StepNeed, device: Device | None) -> tuple[str, ...]:
    if device is None:
        return need_cells(step)
    memory_s, compute_s = step.total.memory_s(device), step.total.compute_s(device)
    times = (f"{memory_s * 1e6:,.1f} µs", f"{compute_s * 1e6:,.1f} µs", f"{1.0 / max(memory_s, compute_s):,.0f}")
    return (*need_cells(step), *times, "memory" if memory_s >= compute_s else "compute")


def share_rows(needs: Sequence[StepNeed], amount: str) -> list[tuple[str, ...]]:
    """A row for each step: context, batch, and the share of every part in an amount of `Need`."""
    rows = []
    for step in needs:
        whole = getattr(step.total, amount) or 1.0
        shares = (show_share(getattr(need, amount) / whole) for need in step.parts.values())
        rows.append((show_count(step.context), show_count(step.batch), *shares))
    return rows


def show_flops(value: float) -> str:
    """FLOPs with a prefix: `117.6 G`."""
    for scale, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:.4g} {letter}"
    return f"{value:.4g}"


def needs_json(needs: Sequence[StepNeed], inputs: dict[str, Any]) -> dict[str, Any]:
    """The needs as JSON-ready data, schema `rooflang.needs/1`; bytes and FLOPs per token."""
    return {
        "schema": NEEDS_SCHEMA,
        "inputs": inputs,
        "steps": [
            {
                "context": step.context,
                "batch": step.batch,
                "total": _json(step.total),
                "parts": {part: _json(need) for part, need in step.parts.items()},
            }
            for step in needs
        ],
    }


def _json(need: Need) -> dict[str, Any]:
    return {**asdict(need), "bytes": need.bytes, "total_flops": need.total_flops}


def draw_needs(needs: Sequence[StepNeed], title: str, path: Path, *, device: Device | None = None) -> None:
    """Bytes per token and arithmetic intensity over the batch, and the parts of the bytes over the context at the
    largest of the batch sizes. The suffix of `path` says how it is written. Raises `RooflangError` without
    matplotlib."""
    plt = style.pyplot()
    figure, (traffic, intensity, parts) = plt.subplots(1, 3, figsize=(11.5, 3.4), layout="constrained")
    contexts = sorted({step.context for step in needs})
    batches = sorted({step.batch for step in needs})
    for number, context in enumerate(contexts):
        mine = [step for step in needs if step.context == context]
        colour = plt.get_cmap("viridis")(0.9 * number / max(1, len(contexts) - 1))
        label = show_count(context).upper()
        xs = [step.batch for step in mine]
        traffic.plot(xs, [step.total.bytes for step in mine], color=colour, label=f"all, {label}")
        traffic.plot(xs, [step.total.kv_bytes for step in mine], color=colour, linestyle=":", linewidth=1.0)
        intensity.plot(xs, [step.total.intensity for step in mine], color=colour, label=label)
    first = [step for step in needs if step.context == contexts[0]]
    traffic.plot(
        [step.batch for step in first],
        [step.total.weight_bytes for step in first],
        color="#555555",
        linestyle="--",
        linewidth=1.0,
        label="weights",
    )
    traffic.plot([], [], color="#555555", linestyle=":", linewidth=1.0, label="KV cache")
    for panel, words in ((traffic, "bytes per token"), (intensity, "arithmetic intensity, FLOP/byte")):
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xlabel("batch, requests")
        panel.set_title(words)
        panel.xaxis.set_major_formatter(lambda value, _: show_count(round(value)).upper())
    traffic.yaxis.set_major_formatter(lambda value, _: show_bytes(value))
    if device is not None:
        for dtype, peak in device.peaks.items():
            if dtype not in device.emulated and dtype != "fp32":
                ridge = peak / device.hbm_bytes_per_s
                intensity.axhline(ridge, color="#999999", linewidth=0.8, linestyle="-.")
                intensity.annotate(
                    f" {device.name} {dtype}", (0, ridge), xycoords=("axes fraction", "data"), va="bottom", fontsize=7
                )
    _stack(parts, needs, contexts, batches[-1])
    for panel in (traffic, intensity):
        panel.legend(fontsize=7)
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def _stack(panel: Any, needs: Sequence[StepNeed], contexts: Sequence[int], batch: int) -> None:
    mine = [step for step in needs if step.batch == batch]
    below = [0.0] * len(mine)
    for part, colour in zip(PARTS, style.PARTS):
        shares = [step.parts[part].bytes / step.total.bytes for step in mine]
        panel.bar(range(len(mine)), shares, bottom=below, color=colour, width=0.7, label=part)
        below = [low + share for low, share in zip(below, shares)]
    panel.set_xticks(range(len(mine)), [show_count(context).upper() for context in contexts])
    panel.set_xlabel("context, tokens")
    panel.set_title(f"share of the bytes, batch {show_count(batch).upper()}")
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    panel.set_ylim(0, 1)
    panel.grid(visible=False)
    panel.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
