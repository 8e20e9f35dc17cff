"""All of the evaluation, and what this repository keeps of it: `make reproduce`, or this file with a FOLDER.

Runs `rooflang reproduce` into the folder, going on with what is there, then writes the summary of its report into the
README beside this file, Figures 3 and 4 with it, and the ends of the grid's curves to the tests that check them.
"""

from __future__ import annotations

import csv
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rooflang.report.reproduction.checks import curve_ends
from rooflang.report.reproduction.figures import NUMBERS
from rooflang.report.reproduction.frontiers import SERIES, curves
from rooflang.report.reproduction.report import IN_SHORT, PARTS, REPORT, reproduce
from rooflang.report.reproduction.setting import Scope
from rooflang.search.progress import Progress

HERE = Path(__file__).parent
ENDS = HERE.parents[1] / "tests" / "validation" / "curve_ends.csv"

COLUMNS = ("model", "stage", "context", "hardware", "gpus", "end", "batch", "dp", "cp", "pp", "tok_s_user", "tok_s_gpu")

_SHAPE = re.compile(r"grid dp(?P<dp>\d+) cp(?P<cp>\d+) ep\d+ pp(?P<pp>\d+)")
_SUMMARY = re.compile(r"(?<=<!-- summary: begin -->\n).*?(?=<!-- summary: end -->)", re.S)


def end_rows(results: Mapping[str, Mapping[str, Any]], scope: Scope) -> Iterator[tuple[object, ...]]:
    """Both ends of every curve of the grid under the paper's assumptions, in the order of `COLUMNS`."""
    grid = [each for each in SERIES if (each.search, each.assumptions) == ("grid", "paper")]
    for end in curve_ends(curves(scope, results, grid)):
        setting, shape = end.curve.setting, _SHAPE.fullmatch(end.point["origin"])
        assert shape is not None
        where = (setting.model, setting.stage, setting.context, setting.hardware, setting.gpus)
        rates = (f"{end.point[name]:.9g}" for name in ("tok_s_user", "tok_s_gpu"))
        yield (*where, end.end, end.point["batch"], *shape.groups(), *rates)


def summary(report: str) -> str:
    """The lines of the report's summary."""
    after = report.split(f"{IN_SHORT}\n", 1)[1]
    return after.split("\n## ", 1)[0].strip() + "\n"


def now_and_then(every_s: float = 30.0) -> Callable[[str], None]:
    """Progress for a file, which has a line every half minute."""
    last_s = -every_s

    def say(message: str) -> None:
        nonlocal last_s
        if time.monotonic() >= last_s + every_s:
            last_s = time.monotonic()
            print(message, file=sys.stderr, flush=True)

    return say


def main(folder: Path, scope: Scope | None = None) -> int:
    """Exit code 2 where a job failed, 130 after Ctrl-C; nothing is refreshed then."""
    folder.mkdir(parents=True, exist_ok=True)
    progress = Progress(sink=None if sys.stderr.isatty() else now_and_then())
    try:
        report, ran = reproduce(tuple(PARTS), folder, progress, scope=scope)
    except KeyboardInterrupt:
        print(f"stopped; the same command goes on with what {folder} has", file=sys.stderr)
        return 130
    finally:
        progress.done()
    (folder / REPORT).write_text(report, encoding="utf-8")
    if ran.errors:
        print("\n".join(f"{name}: {error}" for name, error in sorted(ran.errors.items())), file=sys.stderr)
        return 2
    for stage, number in NUMBERS.items():
        shutil.copyfile(folder / "figures" / f"{stage}-grid-paper.png", HERE / f"figure-{number}.png")
    with ENDS.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(COLUMNS)
        lines.writerows(end_rows(ran.results, scope or Scope()))
    page = HERE / "README.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(_SUMMARY.sub(lambda _: summary(report), text), encoding="utf-8")
    print(f"wrote {folder / REPORT}, {page}, its figures and {ENDS}; {ran.cpu_s / 60:.1f} minutes of one core")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "build/reproduced")))
