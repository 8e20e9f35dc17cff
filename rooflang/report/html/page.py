"""A result as one HTML file without anything outside of it: no network, no library, the data in the page.

All words that come from files (names of models, tensors, dims, platforms, the command) are escaped where they stand in
the markup, and set as text by the script. A content security policy refuses any other script and any connection.
"""

from __future__ import annotations

import hashlib
import json
import math
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from rooflang.report.frontier import show_inputs
from rooflang.report.html.assumed import assumed
from rooflang.report.html.packed import Words, packed
from rooflang.report.html.record import CloseUp
from rooflang.report.needs import PARTS
from rooflang.report.numbers import show_count, show_dollars, show_gap, show_layers, show_memory, show_rate
from rooflang.report.plans import show_mesh
from rooflang.search.point import PRICE
from rooflang.units import show_seconds

#: Scripts in the order in which they need each other.
_SCRIPTS = ("dom.js", "frontier.js", "block.js", "panels.js", "page.js")

#: Parts of a model as the style sheet names them.
_CLASSES = {
    "attention": "attention",
    "FFN": "ffn",
    "routing": "routing",
    "head": "head",
    "other": "other",
}
_NETWORK = "collectives"

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """How a page came to be: the command that gives its result again, and facts about the search beside it. `table`,
    heads and rows, stands above the points under the heading `head`: what they are parts of, or compared with."""

    command: str
    facts: tuple[tuple[str, str], ...] = ()
    table: tuple[Sequence[str], Sequence[Sequence[str]]] | None = None
    head: str = ""


def write_page(
    path: Path, inputs: Json, points: Sequence[Json], closer: Mapping[int, CloseUp], origin: Origin, *, first: int = 0
) -> None:
    """Write the page of some points, as the JSON of a result has them. `closer` are those that were looked at closely,
    by index; the page opens with point `first`."""
    path.write_text(page(inputs, points, closer, origin, first=first), encoding="utf-8")


def page(inputs: Json, points: Sequence[Json], closer: Mapping[int, CloseUp], origin: Origin, *, first: int = 0) -> str:
    """The page as text; see `write_page`."""
    told = _told(points)
    style, script = _text("page.css"), '(() => {\n"use strict";\n' + "\n".join(map(_text, _SCRIPTS)) + "})();\n"
    return Template(_text("page.html")).substitute(
        policy=f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'; "
        "form-action 'none'",
        version=escape(str(inputs["version"])),
        title=escape(f"{inputs['model']} on {inputs['hardware']}: RoofLang"),
        style=style,
        what="what to deploy, why, and how far from the ceiling it is",
        model=escape(str(inputs["model"])),
        asked=escape(_asked(inputs)),
        points_head=escape(origin.head or ("Frontier" if len(points) > 1 else "The point")),
        lead="" if origin.table is None else _wide(origin.table[0], [("", row) for row in origin.table[1]]),
        table=_points(told),
        notes="Times are simulated by a roofline model of the hardware; nothing was run on it.",
        assumed=escape(_profile(inputs)),
        assumptions=_assumptions(inputs),
        command=escape(origin.command),
        origin=_facts([("hash of the inputs", inputs["hash"]), ("RoofLang", inputs["version"]), *origin.facts]),
        data=_data(told, closer, first),
        script=script,
    )


def _text(name: str) -> str:
    return files("rooflang.report.html").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _asked(inputs: Json) -> str:
    """What `show_inputs` tells, in one line and without the model, which is the title."""
    line = " ".join(show_inputs(inputs).split())
    return line.removeprefix(str(inputs["model"])).lstrip(", ")


def _profile(inputs: Json) -> str:
    changed = inputs.get("changed_assumptions", {})
    also = f", {len(changed)} of them changed" if changed else ""
    return f"What the numbers take for granted: the {inputs['assumptions']} profile{also}."


# -- tables -----------------------------------------------------------------------------------------------------------


def _points(points: Sequence[Json]) -> str:
    sizes, priced = len({p["gpus"] for p in points}) > 1, points[0]["usd"] is not None
    named = points[0]["label"]
    heads = [*(["<"] if named else []), "plan", *(["GPUs"] if sizes else []), "batch", "PP", "mesh"]
    heads += ["tok/s/GPU", "tok/s/user", *(["$/M tok"] if priced else []), "step", "gap", "memory", "<bottleneck"]
    rows = []
    for index, p in enumerate(points):
        cells = [*([p["label"]] if named else []), str(p["plan_number"]), *([str(p["gpus"])] if sizes else [])]
        cells += [p["batch_text"], str(p["pp"]), p["mesh_text"], show_rate(p["tok_s_gpu"]), show_rate(p["tok_s_user"])]
        cells += [show_dollars(p["usd"])] if priced else []
        cells += [show_seconds(p["step_s"]), show_gap(p["gap"]), show_memory(p["peak_bytes"], p["capacity_bytes"])]
        rows.append((f' data-point="{index}"', [*cells, p["bottleneck"]]))
    return _wide(heads, rows)


def _assumptions(inputs: Json) -> str:
    rows = [
        (' class="changed"' if each.changed else "", [each.name, each.value, each.says]) for each in assumed(inputs)
    ]
    table = _wide(["<assumption", "<value", "*what it says"], rows)
    return f"<details><summary>All {len(rows)} of them</summary>{table}</details>"


def _html_table(heads: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    """A table; heads that begin with `<` make columns of words, with `*` of sentences."""
    classes = [{"<": ' class="words"', "*": ' class="text"'}.get(head[:1], "") for head in heads]
    top = "".join(f'<th scope="col"{kind}>{escape(head.lstrip("<*"))}</th>' for head, kind in zip(heads, classes))
    body = "".join(
        f"<tr{attributes}>" + "".join(f"<td{kind}>{escape(cell)}</td>" for cell, kind in zip(cells, classes)) + "</tr>"
        for attributes, cells in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _wide(heads: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> str:
    return f'<div class="wide">{_html_table(heads, rows)}</div>'


def _facts(pairs: Iterable[tuple[str, Any]]) -> str:
    return "<dl>" + "".join(f"<dt>{escape(n)}</dt><dd>{escape(str(v))}</dd>" for n, v in pairs) + "</dl>"


# -- data -------------------------------------------------------------------------------------------------------------


def _told(points: Sequence[Json]) -> list[dict[str, Any]]:
    """Each point as the page needs it, plans numbered as the terminal numbers them."""
    plans: dict[Any, int] = {}
    told = []
    for number, p in enumerate(points, start=1):
        key = p["plan"], tuple(p["mesh"]), tuple(p["pp_partition"])
        names = ("batch", "pp", "tok_s_gpu", "tok_s_user", "step_s", "bound_s", "bound_scope", "gap", "peak_bytes")
        told.append(
            {name: p[name] for name in (*names, "capacity_bytes", "bottleneck", "overlap", "origin")}
            | {
                "number": number,
                "label": p.get("label", ""),
                "usd": p.get(PRICE),
                "gpus": math.prod(p["mesh"]) * p["pp"],
                "batch_text": show_count(p["batch"]),
                "mesh_text": show_mesh(p["mesh"]),
                "layers": p["pp_partition"],
                "layers_text": show_layers(p["pp_partition"]),
                "plan_number": plans.setdefault(key, len(plans) + 1),
                "plan": [list(part.rpartition(": ")[::2]) for part in p["plan"].split("; ")[:-1]],
            }
        )
    return told


def _data(points: Sequence[dict[str, Any]], closer: Mapping[int, CloseUp], first: int) -> str:
    words = Words()
    for index, point in enumerate(points):
        point["close"] = packed(closer[index], words) if index in closer else None
    parts = {group: _CLASSES[part] for part, groups in PARTS.items() for group in groups}
    data = {
        "points": points,
        "words": list(words.number),
        "parts": parts | {_NETWORK: "network"},
        "chart": len(points) > 1 and not points[0]["label"],
        "sizes": len({point["gpus"] for point in points}) > 1,
        "first": first,
    }
    return in_script(data)


def in_script(data: object) -> str:
    """JSON that can stand in a script element: nothing in it ends the element or begins a comment."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
