"""From an exported program to a compute graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rooflang.errors import GraphError
from rooflang.importers.aten import translate
from rooflang.importers.draft import Draft, Made, Value
from rooflang.importers.exported import PLACEHOLDERS, Exported, Node
from rooflang.ir.graph import Graph

#: Labels that mean something to operators or to the search, whatever a module is called.
_MEANING = frozenset({"batch", "seq", "draft", "expert", "gate", "replica", "partial"})


def to_graph(program: Exported, *, dims: Mapping[str, Sequence[str]] | None = None) -> Graph:
    """The compute graph of a program.

    `dims` names the axes of inputs; without it the first axis of all inputs is `batch`, and the second `seq` where an
    input has two or more. Axes get their names from the inputs and parameters that they come from. Operators that have
    no kind here become `pointwise` or `opaque`, so that every program can be read. Raises `GraphError` for a program
    that makes nothing, or names of dims that do not fit its inputs.
    """
    draft, values = Draft(name=program.name), dict[str, Value]()
    given = dict(dims or {})
    for node in program.nodes:
        draft.enter(node)
        if node.target in PLACEHOLDERS:
            values[node.name] = draft.leaf(node, _hints(node, given))
            if node.target == "input":
                _tie_batch(draft, values, program, node)
        elif node.dtype:
            values[node.name] = translate(draft, node, values)
        else:
            draft.several[node.name] = node
    _check_names(given, program)
    return draft.build(_outputs(draft, program, values))


def _hints(node: Node, given: Mapping[str, Sequence[str]]) -> list[str]:
    """Names that the axes of a leaf would like."""
    if node.label in given or node.name in given:
        names = list(given.get(node.label, given.get(node.name, ())))
        if len(names) != len(node.shape):
            raise GraphError(
                f"{node.label} has {len(node.shape)} axes, not {len(names)}",
                where="--dims",
                expected="one name for each",
            )
        return names
    if node.target == "input":
        usual = ["batch", "seq"][: len(node.shape)]
        return [*usual, *(f"{node.label}_{i}" for i in range(2, len(node.shape)))]
    short = node.label.removesuffix(".weight").removesuffix(".bias").rpartition(".")[2]
    short = f"{short}_dim" if short in _MEANING else short
    return [short if i == 0 else f"{short}_{i}" for i in range(len(node.shape))]


def _tie_batch(draft: Draft, values: Mapping[str, Value], program: Exported, node: Node) -> None:
    """The first axes of all inputs are one, where they are as long."""
    first = next(each for each in program.nodes if each.target == "input")
    for one, other in zip(values[first.name].axes[:2], values[node.name].axes[:2]):
        if one is not None and other is not None:
            draft.axes.same(one, other)


def _check_names(given: Mapping[str, Sequence[str]], program: Exported) -> None:
    inputs = {text for node in program.nodes if node.target == "input" for text in (node.label, node.name)}
    for name in given:
        if name not in inputs:
            raise GraphError(f"there is no input {name!r}", where="--dims", expected=", ".join(sorted(inputs)))


def _outputs(draft: Draft, program: Exported, values: Mapping[str, Value]) -> list[Made]:
    made = [values[name].made for name in program.outputs if name in values]
    produced = {op.made.name for op in draft.ops}
    found = [each for each in dict.fromkeys(made) if each.name in produced]
    if not found:
        raise GraphError("the program computes nothing", where=program.name, expected="an output that operators make")
    return found
