"""Beside NVIDIA AIConfigurator in its roofline mode: DeepSeek-V3 and Llama 3.1 70B on 8 H200, same inputs, both times.

    python benchmarks/aiconfigurator.py                      # makes build/aiconfigurator, an environment of its own
    python benchmarks/aiconfigurator.py --environment DIR    # one that has aiconfigurator already
    python benchmarks/aiconfigurator.py --steps              # single steps only, without the services (a minute)

It prints two tables in Markdown. *Steps*: one layout, the time of one decode step and of prefill, by AIConfigurator
(`cli estimate`), by RoofLang for the same layout without and with overlap, and for the best layout that is found.
*Services*: the best aggregated service within targets, by `cli default` and by `plan`, and how long each took.
docs/aiconfigurator.md has them, and why they differ.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rooflang.search.effort import Effort
from rooflang.search.egraph import search_egraph
from rooflang.search.fix import FREE, Fixed
from rooflang.search.problem import Problem
from rooflang.search.progress import Progress
from rooflang.service import plan_service
from rooflang.sim.result import Overlap
from rooflang.stacks import Shape

PACKAGE = "aiconfigurator==0.12.0"
ROOT = Path(__file__).resolve().parents[1]

SYSTEM, HARDWARE, GPUS = "h200_sxm", "h200", 8
ISL, OSL, TTFT_S, TPOT_S = 4096, 1024, 2.0, 0.03

#: Context of a decode step halfway through an answer, in which a service's steps are timed.
MEAN = ISL + OSL // 2


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model in both tools' words, and one layout: flags of `cli estimate` and the same as a shape of RoofLang.
    `formats` are those of AIConfigurator's own log (`Resolved quant modes`), which the name of our model repeats."""

    theirs: str
    ours: str
    formats: str
    flags: tuple[str, ...]
    shape: Shape
    batch: int
    prompts: int

    def problem(self, stage: str) -> Problem:
        return Problem.of(
            self.ours, hardware=HARDWARE, gpus=GPUS, stage=stage, context=MEAN if stage == "decode" else ISL
        )


CASES = (
    Case(
        theirs="meta-llama/Meta-Llama-3.1-70B",
        ours="llama-3.1-70b",
        formats="weights and cache bf16",
        flags=("--tp-size", "8"),
        shape=Shape(dp=1, tp=8, pp=1, ep=False),
        batch=128,
        prompts=8,
    ),
    Case(
        theirs="deepseek-ai/DeepSeek-V3",
        ours="deepseek-v3:kv=fp8",
        formats="weights fp8 by blocks, cache fp8",
        flags=("--tp-size", "1", "--attention-dp-size", "8", "--moe-ep-size", "8", "--moe-tp-size", "1"),
        shape=Shape(dp=8, tp=1, pp=1, ep=True),
        batch=256,
        prompts=8,
    ),
)


def environment(given: str | None) -> Path:
    """The program `aiconfigurator`, of an environment that is made when none is given."""
    folder = Path(given) if given else ROOT / "build" / "aiconfigurator"
    program = folder / "bin" / "aiconfigurator"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", PACKAGE], check=True)
    return program


def run(program: Path, mode: str, case: Case, *more: str) -> tuple[str, float]:
    """What it prints, and seconds."""
    words = [str(program), "cli", mode, "--model-path", case.theirs, "--system", SYSTEM, "--database-mode", "SOL"]
    words += ["--isl", str(ISL), "--osl", str(OSL), "--no-color", *more]
    begin = time.perf_counter()
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr, time.perf_counter() - begin


def number(text: str, label: str) -> float:
    """The number after a label in a report."""
    found = re.search(rf"{re.escape(label)}:?\s+([\d,.]+)", text)
    if found is None:
        raise SystemExit(f"no {label!r} in what aiconfigurator printed:\n{text[-2000:]}")
    return float(found[1].replace(",", ""))


def step_s(case: Case, stage: str, batch: int, overlap: Overlap, fixed: Fixed) -> float:
    """Seconds of a step with the best plan that keeps to what is fixed."""
    found = search_egraph(
        case.problem(stage), (1,), (batch,), overlap, frozenset(), Progress(), fixed=fixed, effort=Effort(gap=0.01)
    )
    return found.points[0].sim.step_s


def steps(program: Path, case: Case) -> list[list[str]]:
    """A row for decode and one for prefill: milliseconds."""
    rows = []
    for stage, batch, label in (("decode", case.batch, "TPOT"), ("prefill", case.prompts, "TTFT")):
        text, _ = run(
            program, "estimate", case, "--estimate-mode", "static", *case.flags,
            "--batch-size", str(batch // case.shape.dp),
        )  # fmt: skip
        same = case.shape.fixed(case.problem(stage))
        own = [step_s(case, stage, batch, "none", same), step_s(case, stage, batch, "perfect", same)]
        own.append(step_s(case, stage, batch, "perfect", FREE))
        rows.append(
            [case.ours, stage, str(batch), f"{number(text, label):.2f}", *(f"{1e3 * each:.2f}" for each in own)]
        )
    return rows


def services(program: Path, case: Case) -> list[list[str]]:
    """A row for each tool."""
    targets = ("--total-gpus", str(GPUS), "--serving-mode", "agg")
    text, seconds = run(
        program, "default", case, *targets, "--ttft", f"{1e3 * TTFT_S:g}", "--tpot", f"{1e3 * TPOT_S:g}"
    )
    values = [number(text, f"{name}") for name in ("Per-GPU Throughput", "TTFT:", "TPOT:")]
    plan = re.search(r"\|\s+1\s+\|.*?\|\s*([\w]+)\s*\|\s*(\d+)\s*\|\s*$", text, re.M)
    rows = [[case.ours, "AIConfigurator", f"{values[0]:,.0f}", f"{values[1]:,.0f} ms", f"{values[2]:.1f} ms",
             f"{plan[1]}, {plan[2]} a rank" if plan else "", f"{seconds:.0f} s"]]  # fmt: skip
    begin = time.perf_counter()
    found = plan_service(
        case.ours, hardware=HARDWARE, gpus=GPUS, isl=ISL, osl=OSL, ttft_s=TTFT_S, tpot_s=TPOT_S, mode="aggregated"
    )
    best = found.best
    point = best.decode.choice.point
    words = point.plan.split("; ")
    attention = next((each for each in words if "attention" in each.split(":")[0]), words[0])
    rows.append(
        [
            "",
            "RoofLang",
            f"{best.tok_s_gpu:,.0f}",
            f"{1e3 * best.ttft_s:,.0f} ms",
            f"{1e3 * best.tpot_s:.1f} ms",
            f"{best.decode.replicas} × {best.decode.choice.gpus} GPUs, batch {point.batch}; {attention}",
            f"{time.perf_counter() - begin:.0f} s",
        ]
    )
    return rows


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", help="folder of an environment that has aiconfigurator")
    parser.add_argument("--steps", action="store_true", help="single steps only")
    given = parser.parse_args()
    program = environment(given.environment)
    print(f"{PACKAGE}, {GPUS} × {HARDWARE}; " + "; ".join(f"{case.ours}: {case.formats}" for case in CASES) + "\n")
    heads = ("model", "step", "batch", "AIConfigurator, ms", "no overlap, ms", "perfect overlap, ms", "best layout, ms")
    print(table(heads, [row for case in CASES for row in steps(program, case)]) + "\n", flush=True)
    if not given.steps:
        heads = ("model", "tool", "tok/s/GPU", "first token", "each further", "layout", "took")
        print(table(heads, [row for case in CASES for row in services(program, case)]))


if __name__ == "__main__":
    main()
