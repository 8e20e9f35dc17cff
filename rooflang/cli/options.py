"""Options that several subcommands share."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from rooflang.cli import assume
from rooflang.cli.output import JsonTarget, apart
from rooflang.cli.types import (
    Count,
    JsonFile,
    Known,
    OptionType,
    cache_formats,
    hardware_names,
    profile_names,
    weight_formats,
)
from rooflang.errors import ValueRangeError

_Command = TypeVar("_Command", bound=Callable[..., Any])

#: Parameters that say where results go or how much is printed, and nothing about what is computed.
_OUTPUT = ("target", "trace", "quiet", "html", "plot")

#: Where a value comes from that is not the program's own default: a command line, a variable, a file of defaults.
_GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT, ParameterSource.DEFAULT_MAP)

_HARDWARE = click.option(
    "--hardware",
    required=True,
    type=Known("hardware", hardware_names, suffix=".toml"),
    metavar="NAME|FILE.toml",
    help="Platform by name (`rooflang hardware` lists them), or a hardware file.",
)
_GPUS = click.option("--gpus", required=True, type=Count(), help="Number of GPUs in the cluster.")

stage = click.option(
    "--stage",
    default="decode",
    show_default=True,
    type=Known("stage", lambda: ("decode", "prefill")),
    metavar="decode|prefill",
    help="One token for each request beside a KV cache, or the whole prompt at once.",
)

#: Options of a step, in the order of the help text.
_STEP = (
    stage,
    click.option(
        "--context",
        type=Count(),
        help="Tokens of context of each request: 65536, 64k, 1m (k = 1024). A model needs it.",
    ),
)
_PROFILE = click.option(
    "--assumptions",
    default="physical",
    show_default=True,
    type=Known("assumption profile", profile_names),
    metavar="physical|paper",
    help="What hardware does, or what the RoofLang paper's published numbers take for granted.",
)
json_file = click.option(
    "--json",
    "target",
    type=JsonFile(),
    metavar="FILE",
    help="Also write the result as JSON; - writes it to standard output instead.",
)
quiet = click.option("--quiet", "-q", is_flag=True, help="Print the main table only: no plans, no counts, no progress.")


def apply(*options: Callable[[_Command], _Command]) -> Callable[[_Command], _Command]:
    """One decorator for several options, in the order of the help text."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _stored(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """The model with the formats of `--weights` and `--kv` in its name, as `rooflang.models.load` reads them."""
    changes = [f"{key}={ctx.meta[key]}" for key in ("weights", "kv") if ctx.meta.get(key)]
    if changes and value.endswith(".rl"):
        where = f"--{changes[0].partition('=')[0]}"
        raise ValueRangeError("a graph file says itself how its tensors are stored", where=where, expected="a model")
    return f"{value}:{','.join(changes)}" if changes else value


def _format(key: str, names: Callable[[], tuple[str, ...]], text: str) -> Callable[[_Command], _Command]:
    """An option whose value becomes a part of the model's name."""

    def keep(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        ctx.meta[key] = value

    return click.option(
        f"--{key}",
        type=Known(f"format of {key}", names),
        metavar="FORMAT",
        is_eager=True,
        expose_value=False,
        callback=keep,
        help=text,
    )


#: The model, and how it is stored where that is not what its config says.
model = apply(
    click.argument("model", metavar="MODEL", callback=_stored),
    _format("weights", weight_formats, "Weights of the layers: bf16, fp8, fp8_block, mxfp4, nvfp4, int8 or int4."),
    _format("kv", cache_formats, "The KV cache: bf16, fp8 or fp4.  [default of both: what the config says]"),
)

#: What is taken for granted; `assume.assumed` makes one record of what these say.
assumptions = apply(_PROFILE, *assume.OPTIONS)

#: The GPUs that there are.
fleet = apply(_HARDWARE, _GPUS)

#: What is computed, and on how many GPUs.
task = apply(_HARDWARE, _GPUS, *_STEP)

#: The same, where a search may choose the number of GPUs.
task_of_any_size = apply(
    _HARDWARE,
    click.option("--gpus", type=Count(), help="Number of GPUs in the cluster. This, or --max-gpus, is needed."),
    click.option("--max-gpus", type=Count(), help="Try every number of GPUs up to this that the platform allows."),
    *_STEP,
)


def overlap(*modes: str, text: str) -> Callable[[_Command], _Command]:
    """The option that chooses one of the modes; the first is the default."""
    return click.option(
        "--overlap",
        default=modes[0],
        show_default=True,
        type=Known("overlap", lambda: modes),
        metavar="|".join(modes),
        help=text,
    )


#: The modes in which a search bounds what it finds.
searched_overlap = overlap(
    *("perfect", "none", "two-batch"),
    text="Computation and communication hide each other as far as they can, never, or as two halves of the batch "
    "really do.",
)


def no_output_above(ctx: click.Context, target: JsonTarget | None) -> bool:
    """Does a subcommand run, which has a `--json` of its own? Raises where one stands before it."""
    if ctx.invoked_subcommand is not None and target is not None:
        raise ValueRangeError(
            "it stands before the subcommand",
            where="--json",
            expected=f"{ctx.command_path} {ctx.invoked_subcommand} … --json FILE",
        )
    return ctx.invoked_subcommand is not None


def check_apart(ctx: click.Context) -> None:
    """Raises `ValueRangeError` for a file to write that is read as well, or written twice."""
    values = {param.opts[0]: ctx.params.get(param.name or "") for param in ctx.command.params}
    apart(
        read={name: _read_file(value) for name, value in values.items() if isinstance(value, str)},
        written={
            name: value.path if isinstance(value, JsonTarget) else value
            for name, value in values.items()
            if isinstance(value, JsonTarget | Path)
        },
    )


def _read_file(value: str) -> Path:
    """The file that an argument names, if it names one: of the model in a folder its config.json."""
    stored = not os.path.exists(value) and ":" in value  # as `NAME:weights=fp8`
    path = Path(os.path.realpath(value.rpartition(":")[0] if stored else value))
    return path / "config.json" if os.path.isdir(path) else path


def check_workload(ctx: click.Context, model: str, context: int | None) -> int:
    """The context, 0 for a graph file. Raises for a model without one, for a graph with options of models, and as
    `check_apart` does."""
    check_apart(ctx)
    if not model.endswith(".rl"):
        if context is None:
            raise click.UsageError("Missing option '--context', which a model needs.", ctx)
        return context
    for name in ("stage", "context"):
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise ValueRangeError(
                "a graph file says itself what one step is",
                where=f"--{name}",
                expected="a model, or a graph without this option",
            )
    return 0


def check_size(ctx: click.Context, gpus: int | None, max_gpus: int | None) -> tuple[int | None, int | None]:
    """The number of GPUs, or the most of them. What is typed goes before what a file of defaults says; otherwise raises
    unless there is one of both."""
    if gpus is None and max_gpus is None:
        raise click.UsageError("Missing option '--gpus' or '--max-gpus'.", ctx)
    if gpus is None or max_gpus is None:
        return gpus, max_gpus
    typed = [name for name in ("gpus", "max_gpus") if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    if len(typed) != 1:
        raise ValueRangeError(
            "a number of GPUs, and the most of them", where="--gpus, --max-gpus", expected="one of both"
        )
    other = "max_gpus" if typed == ["gpus"] else "gpus"
    ctx.params.pop(other)  # so that the command line of the result does not name it either
    return (gpus, None) if other == "max_gpus" else (None, max_gpus)


def spell(ctx: click.Context, *, without: Collection[str] = _OUTPUT) -> str:
    """The command line that gives the same result again, without the program's defaults and some parameters (default:
    those of output)."""
    words = ctx.command_path.split()
    for param in ctx.command.params:
        assert param.name is not None
        if ctx.get_parameter_source(param.name) not in _GIVEN or param.name in without:
            continue
        if param.name not in ctx.params:  # the name of the model says it
            continue
        value = ctx.params[param.name]
        if isinstance(param, click.Option) and param.is_flag:
            words += [param.opts[0]] if value else []
            continue
        for each in value if param.multiple else (value,):
            text = param.type.spell(each) if isinstance(param.type, OptionType) else str(each)
            words.extend([param.opts[0], text] if isinstance(param, click.Option) else [text])
    return shlex.join(words)
