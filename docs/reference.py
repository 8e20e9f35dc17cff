"""The reference, out of what the code says of itself: `make reference`, or `python docs/reference.py FOLDER`.

`rules.md` and `operators.md` come from the registries and need nothing but RoofLang; the pages of the Python API come
from docstrings, by pdoc (`pip install 'rooflang[docs]'`). None of it is kept in the repository.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

from rooflang.ir import op_kinds
from rooflang.rules import rule, rule_names

#: What docs/policy.md calls public, and what errors, numbers and extensions are made of.
PACKAGES = (
    *("rooflang", "rooflang.agent", "rooflang.hw", "rooflang.ir", "rooflang.models", "rooflang.service"),
    *("rooflang.stacks", "rooflang.sweep", "rooflang.rules", "rooflang.rules.record", "rooflang.extractors"),
    *("rooflang.extractors.task", "rooflang.assumptions", "rooflang.errors", "rooflang.units"),
)


def rules_page() -> str:
    """Every rewrite rule: its whole record, with its egglog text."""
    parts = ["# Rewrite rules", "In the order of Tables 1 and 2 of the RoofLang paper (arXiv 2609.12551)."]
    for name in rule_names():
        parts.append(f"## {name}\n\n```text\n{rule(name).describe()}\n```")
    return "\n\n".join(parts) + "\n"


def operators_page() -> str:
    """Every operator kind: what it computes, its attributes, and what else its record says."""
    rows = []
    for name, kind in sorted(op_kinds().items()):
        attrs = ", ".join(f"`{each}`" for each in sorted(kind.attrs))
        traits = [] if kind.pure else ["has side effects"]
        traits += ["linear in its first operand"] if kind.linear else []
        traits += [f"writes operand {kind.in_place} in place"] if kind.in_place is not None else []
        rows.append(f"| `{name}` | {kind.summary.replace('|', chr(92) + '|')} | {attrs} | {'; '.join(traits)} |")
    heads = "| kind | what it computes | attributes | |\n| --- | --- | --- | --- |"
    return "# Operators\n\n" + "\n".join([heads, *rows]) + "\n"


def write(folder: Path) -> None:
    """Both pages of the registries, and the Python API below `api`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rules.md").write_text(rules_page(), encoding="utf-8")
    (folder / "operators.md").write_text(operators_page(), encoding="utf-8")
    for name in PACKAGES:
        importlib.import_module(name)  # a name that there is not ends here, and not in a warning of pdoc
    command = [sys.executable, "-m", "pdoc", "--docformat", "markdown", "-o", str(folder / "api"), *PACKAGES]
    subprocess.run(command, check=True)


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "build/reference"))
