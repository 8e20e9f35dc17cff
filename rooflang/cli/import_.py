"""`rooflang import`."""

from __future__ import annotations

from pathlib import Path

import click

from rooflang.cli import options
from rooflang.cli.output import JsonTarget, replacing, writable
from rooflang.cli.types import OptionType
from rooflang.errors import ValueRangeError

_EXAMPLES = """\b
Examples:
  rooflang import model.pt2 --output model.rl
  rooflang import mymodel:make --dims tokens=batch,seq --output model.rl
  rooflang optimize model.rl --hardware h200 --gpus 4
"""


class AxisNames(OptionType):
    """Names of the axes of an input: `tokens=batch,seq`."""

    name = "INPUT=NAME,NAME…"

    def read(self, text: str, where: str) -> tuple[str, tuple[str, ...]]:
        tensor, _, names = text.partition("=")
        axes = tuple(name.strip() for name in names.split(","))
        if not tensor or not all(name.isidentifier() and name == name.lower() for name in axes):
            raise ValueRangeError(f"cannot read {text!r}", where=where, expected="INPUT=NAME,NAME… in lower case")
        return tensor.strip(), axes

    def spell(self, value: tuple[str, tuple[str, ...]]) -> str:
        return f"{value[0]}={','.join(value[1])}"


class Destination(OptionType):
    """A file to write."""

    name = "FILE"

    def read(self, text: str, where: str) -> Path:
        return writable(text, where=where)


@click.command("import", epilog=_EXAMPLES)
@click.argument("source", metavar="FILE.pt2|MODULE:NAME")
@click.option("--output", type=Destination(), metavar="FILE.rl", help="Write the compute graph here.")
@click.option(
    "--record",
    type=Destination(),
    metavar="FILE.json",
    help="Write what was read of the program: it can be imported again where there is no torch.",
)
@click.option(
    "--dims",
    multiple=True,
    type=AxisNames(),
    metavar="INPUT=NAME,NAME…",
    help="Names of the axes of an input; may be repeated.  [default: batch, seq]",
)
@options.json_file
def command(
    source: str,
    output: Path | None,
    record: Path | None,
    dims: tuple[tuple[str, tuple[str, ...]], ...],
    target: JsonTarget | None,
) -> None:
    """Make a compute graph of a PyTorch program.

    The program is a file that torch.export.save has written, or in a module of yours an ExportedProgram, or a function
    that returns a module and the tuple of its arguments. FLOPs of the graph are put beside those that PyTorch's own
    counter finds. It needs torch: pip install 'rooflang[torch]'.
    """
    from rooflang.importers import read_exported, to_graph
    from rooflang.ir.text import dump
    from rooflang.report.imported import imported_facts, show_imported

    if source.endswith(".json"):
        program = read_exported(Path(source))
    else:
        from rooflang.importers.torch_export import recorded

        program = recorded(source)
    graph = to_graph(program, dims=dict(dims))
    for path, text, where in ((output, dump(graph), "--output"), (record, program.to_json(), "--record")):
        if path is not None:
            with replacing(path, where=where) as new:
                new.write_text(text, encoding="utf-8")
    facts = imported_facts(program, graph)
    if target is not None:
        target.write(facts)
    if target is None or target.path is not None:
        click.echo(show_imported(facts))
