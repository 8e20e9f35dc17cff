"""`Action`: one application of a primitive, as a record, as a line of text, and as JSON.

    split_kernel layers.0.up dim=ffn axis=x
    merge_reduce_broadcast layers.0.down axis=x
    set_compute graph mesh=2x8 stages=4
    set_memory layers.0.kv memory=dram only=layers.3-7

The first word is the primitive, the second what it is applied to: an operator, a tensor, a block, or `graph`. Names
with blanks stand in quotes as in a shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

import msgspec

from rooflang.errors import UnknownNameError, ValueRangeError
from rooflang.report.numbers import show_layers
from rooflang.rules import rule_names
from rooflang.units import parse_layers

#: What an action on the whole graph is applied to.
GRAPH = "graph"

#: A name longer than this is none of ours; it would only make an error message as long.
LONGEST_NAME = 500

_RUN = re.compile(r"\d{1,7}(x\d{1,4})?")


class Action(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One application of a primitive of the RoofLang paper (arXiv 2609.12551, Tables 1 and 2).

    - `target`: the operator (`split_kernel`, `dup_kernel`, `dedup_kernel`, `fuse_kernels`, control edges,
      `remove_identity`, `set_compute`), the tensor (`merge_…`, `set_memory`, `insert_identity`), the block or `graph`
      (`set_compute`).
    - `axis`: mesh axes, `x` or `x,y`. `dim`: the dim label by which something is cut, or a value lies after a merge.
    - `reader`: for merges, the operator that reads the tensor; default: every reader where the merge applies.
    - `inner`: the operator that `fuse_kernels` computes inside the target, or those, with commas between them, that
      read what the target reads and are computed beside it. `after`: the one that waits for the target.
    - `keep`: the operand that is read instead of an identity that `remove_identity` leaves out (default: its first).
    - `step`: the collective of the target, such as `all_reduce`, that `set_compute` puts on a stream.
    - `memory`: `hbm`, `dram` or `nvme`. `stream`, `stage`: where `set_compute` puts it. `mesh`, `stages`, `layers`: the
      mesh of a stage, the number of stages, the layers on each.
    - `parts`: for `split_kernel` of an operator that sums over the dim: the elements of each part, not over an axis but
      side by side, as operators of their own.
    - `only`: the blocks that the edit is made in, of all that are laid alike: `this`, labels (`layers.3`), ranges
      (`layers.3-7`), stages (`stage:1`), separated by commas. Default: all of them.
    """

    primitive: str
    target: str
    dim: str = ""
    axis: str = ""
    reader: str = ""
    inner: str = ""
    after: str = ""
    keep: str = ""
    memory: str = ""
    step: str = ""
    stream: int | None = None
    stage: int | None = None
    mesh: tuple[int, ...] | None = None
    stages: int | None = None
    layers: tuple[int, ...] | None = None
    parts: tuple[int, ...] | None = None
    only: str = ""

    def __str__(self) -> str:
        words = [self.primitive, shlex.quote(self.target)]
        for name in FIELDS:
            value = getattr(self, name)
            if value not in ("", None):
                words.append(f"{name}={_SHOW.get(name, shlex.quote)(value)}")
        return " ".join(words)

    def to_json(self) -> dict[str, object]:
        """The action as JSON data, defaults left out."""
        data: dict[str, object] = msgspec.to_builtins(self)
        return data


#: Fields of an action besides primitive and target, in the order in which they are written.
FIELDS = tuple(name for name in Action.__struct_fields__ if name not in ("primitive", "target"))


def parse_action(line: str, *, where: str = "action") -> Action:
    """The action that a line of text describes. Raises `UnknownNameError` or `ValueRangeError`."""
    primitive, target, given = split_line(line, where=where)
    return make_action(primitive, target, given, where=where)


def split_line(line: str, *, where: str) -> tuple[str, str, dict[str, str]]:
    """(first word, second word, the others by name). Raises `ValueRangeError`."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ValueRangeError(f"{_clip(line)!r}: {error}", where=where, expected="quotes in pairs") from error
    if not words:
        raise ValueRangeError("an empty line", where=where, expected="primitive target name=value …")
    target = words[1] if len(words) > 1 and "=" not in words[1] else ""
    given: dict[str, str] = {}
    for word in words[2:] if target else words[1:]:
        name, equals, value = word.partition("=")
        if not equals or name in given:
            raise ValueRangeError(f"{_clip(word)!r}", where=where, expected="name=value, each name once")
        given[name] = value
    return words[0], target, given


def make_action(primitive: str, target: str, given: dict[str, str], *, where: str = "action") -> Action:
    """The action of a primitive with its fields as text. Raises `UnknownNameError` or `ValueRangeError`."""
    check_primitive(primitive, where=where)
    values: dict[str, object] = {}
    for name, text in given.items():
        if name not in FIELDS:
            raise UnknownNameError("field of an action", _clip(name), FIELDS, where=where)
        read = _READ.get(name)
        values[name] = text if read is None else read(text, f"{where}: {name}")
    return checked(Action(primitive=primitive, target=target, **values), where=where)  # type: ignore[arg-type]


def action_from_json(data: object, *, where: str = "action") -> Action:
    """The action in JSON data, lists of numbers for meshes and layers. Raises `UnknownNameError`, `ValueRangeError`."""
    try:
        found = msgspec.convert(data, Action)
    except msgspec.ValidationError as error:
        raise ValueRangeError(str(error), where=where, expected="the fields of an action") from error
    check_primitive(found.primitive, where=where)
    return checked(found, where=where)


def checked(action: Action, *, where: str = "action") -> Action:
    """The action, if its texts are names and its numbers counts. Raises `ValueRangeError`."""
    for name in ("target", *FIELDS):
        value = getattr(action, name)
        if isinstance(value, str) and (len(value) > LONGEST_NAME or not value.isprintable()):
            raise ValueRangeError(f"{name} {_clip(value)!r}", where=where, expected="a name, printable and not so long")
        numbers = value if isinstance(value, tuple) else (value,)
        if any(isinstance(number, int) and not 0 <= number < 10**6 for number in numbers) or len(numbers) > 10**4:
            raise ValueRangeError(f"{name} {_clip(str(value))}", where=where, expected="0 to 999999")
    if not action.target:
        raise ValueRangeError(f"{action.primitive} of nothing", where=where, expected="an operator, a tensor, a block")
    return action


def check_primitive(name: str, *, where: str) -> None:
    """Raise `UnknownNameError` for what is no primitive."""
    if name not in rule_names():
        raise UnknownNameError("primitive", _clip(name), rule_names(), where=where)


def _read_layers(text: str, where: str) -> tuple[int, ...]:
    if not all(_RUN.fullmatch(part) for part in text.split(",")) or len(text) > LONGEST_NAME:
        raise ValueRangeError(f"{_clip(text)!r}", where=where, expected="numbers of layers, such as 3,4x14,2")
    return parse_layers(text, where=where)


def _read_mesh(text: str, where: str) -> tuple[int, ...]:
    parts = text.split("x")
    if not all(part.isdecimal() and len(part) < 7 for part in parts):
        raise ValueRangeError(f"{_clip(text)!r}", where=where, expected="axis sizes, such as 8 or 2x8")
    return tuple(map(int, parts))


def _read_number(text: str, where: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise ValueRangeError(f"{_clip(text)!r}", where=where, expected="a whole number, 0 to 999999")
    return int(text)


def _clip(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "…"


_READ: dict[str, Callable[[str, str], object]] = {
    "mesh": _read_mesh,
    "layers": _read_layers,
    "parts": _read_layers,
    "stream": _read_number,
    "stage": _read_number,
    "stages": _read_number,
}
_SHOW: dict[str, Callable[[Any], str]] = {
    "mesh": lambda sizes: "x".join(map(str, sizes)),
    "layers": show_layers,
    "parts": show_layers,
} | dict.fromkeys(("stream", "stage", "stages"), str)
