"""All curves on one page: plotly, with everything that it needs in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rooflang.report.numbers import show_count, show_gap, show_rate
from rooflang.report.plans import show_mesh
from rooflang.report.reproduction import style
from rooflang.report.reproduction.frontiers import Curve
from rooflang.report.reproduction.setting import PROFILES, TITLES
from rooflang.units import show_bytes, show_seconds

#: Name of the page, beside the report.
PAGE = "figures.html"

#: Longest line of a plan under the pointer.
_LINE = 76

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>RoofLang: frontiers</title>
<meta name="viewport" content="width=device-width">
<style>body{font:15px/1.5 system-ui,sans-serif;margin:1.5rem;color:#222;max-width:1500px}h1{font-size:1.5rem}
h2{font-size:1.15rem;margin-top:2rem}</style></head><body>
<h1>Throughput over interactivity: four models on four platforms</h1>
<p>Solid: the automatic search (e-graph). Dashed: the grid of the RoofLang paper (arXiv 2609.12551). Hollow markers: 8
GPUs. Click a name in the legend to hide its curves, twice to see them alone; point at a point to see its plan.</p>
"""


def write_page(curves: Sequence[Curve], path: Path) -> bool:
    """Write the page; False if there is no curve with points."""
    go, subplots = style.graph_objects()
    bodies: list[str] = []
    for stage in dict.fromkeys(curve.setting.stage for curve in curves):
        for profile in PROFILES:
            mine = [c for c in curves if c.setting.stage == stage and c.series.assumptions == profile and c.points]
            if mine:
                figure = _figure(go, subplots, mine)
                library = "inline" if not bodies else False
                html = figure.to_html(full_html=False, include_plotlyjs=library, div_id=f"{stage}-{profile}")
                bodies.append(f"<h2>{stage.capitalize()}, {profile} assumptions</h2>\n{html}\n")
    if not bodies:
        return False
    partial = path.with_name(f".{path.name}")
    partial.write_text(_HEAD + "".join(bodies) + "</body></html>\n", encoding="utf-8")
    partial.replace(path)
    return True


def _figure(go: Any, subplots: Any, curves: Sequence[Curve]) -> Any:
    models = list(dict.fromkeys(curve.setting.model for curve in curves))
    contexts = sorted({curve.setting.context for curve in curves})
    titles = [f"{TITLES.get(model, model)}, {show_count(context).upper()}" for context in contexts for model in models]
    figure = subplots.make_subplots(
        len(contexts), len(models), subplot_titles=titles, horizontal_spacing=0.045, vertical_spacing=0.13
    )
    named: set[str] = set()
    for curve in curves:
        setting = curve.setting
        row, column = contexts.index(setting.context) + 1, models.index(setting.model) + 1
        figure.add_trace(_trace(go, curve, named), row=row, col=column)
    figure.update_xaxes(type="log", title_text=style.SPEED, title_font_size=11, gridcolor="#eee", exponentformat="SI")
    figure.update_yaxes(type="log", gridcolor="#eee", exponentformat="SI")
    figure.update_yaxes(title_text=style.RATE, title_font_size=11, col=1)
    figure.update_layout(
        height=330 * len(contexts) + 120,
        plot_bgcolor="white",
        margin={"l": 60, "r": 20, "t": 50, "b": 60},
        hoverlabel={"align": "left", "font_size": 12},
        legend={"orientation": "h", "y": -0.14},
    )
    return figure


def _trace(go: Any, curve: Curve, named: set[str]) -> Any:
    setting, grid = curve.setting, curve.series.search == "grid"
    name = f"{TITLES.get(setting.hardware, setting.hardware)} × {setting.gpus}, {'grid' if grid else 'e-graph'}"
    colour = style.COLOURS.get(setting.hardware, "#444444")
    symbol = style.SYMBOLS.get(setting.hardware, "circle") + ("-open" if setting.gpus <= 8 else "")
    first = name not in named
    named.add(name)
    return go.Scatter(
        x=[point["tok_s_user"] for point in curve.frontier],
        y=[point["tok_s_gpu"] for point in curve.frontier],
        text=[_words(curve, point) for point in curve.frontier],
        hovertemplate="%{text}<extra></extra>",
        mode="lines+markers",
        name=name,
        legendgroup=name,
        showlegend=first,
        line={"color": colour, "width": 1.2 if grid else 2.0, "dash": "dash" if grid else "solid"},
        marker={"symbol": symbol, "size": 6, "color": colour},
    )


def _words(curve: Curve, point: Mapping[str, Any]) -> str:
    setting = curve.setting
    shown = [
        f"<b>{setting}</b> ({curve.series.title})",
        f"{show_rate(point['tok_s_gpu'])} tok/s/GPU, {show_rate(point['tok_s_user'])} tok/s/user",
        f"batch {show_count(point['batch'])}, PP {point['pp']}, mesh {show_mesh(point['mesh'])}, "
        f"step {show_seconds(point['step_s'])}, gap {show_gap(point['gap'])}",
        f"bottleneck: {point['bottleneck']}, peak {show_bytes(point['peak_bytes'])} of "
        f"{show_bytes(point['capacity_bytes'])}",
        *_plan(point["plan"]),
    ]
    return "<br>".join(shown)


def _plan(plan: str) -> list[str]:
    """The plan, a line for each few of its parts."""
    lines = [""]
    for part in plan.split("; "):
        if lines[-1] and len(lines[-1]) + len(part) > _LINE:
            lines.append("")
        lines[-1] += ("; " if lines[-1] else "") + part
    return lines
