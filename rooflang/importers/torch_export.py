"""From `torch.export` to `Exported`. The one module that imports torch, and only when it is asked for."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from rooflang.errors import GraphError
from rooflang.importers.exported import Exported, Node

_ATTENTION = "scaled_dot_product_attention"
_HINT = "pip install 'rooflang[torch]'"


def recorded(source: str) -> Exported:
    """The record of a .pt2 file, or of `package.module:name`, where the name is an `ExportedProgram`, or a function
    that returns one, or returns a module and the tuple of its arguments.

    torch loads the file; a module is imported, from the current folder too: both are to be one's own. Raises
    `GraphError` where torch is missing or the source is none of these.
    """
    torch = _torch()
    if source.endswith(".pt2"):
        program = _loaded(torch, Path(source))
        return _read(torch, program, Path(source).stem)
    module, _, name = source.partition(":")
    if not name:
        raise GraphError("neither a .pt2 file nor a name in a module", where=source, expected="FILE.pt2 or MODULE:NAME")
    return _read(torch, _made(torch, module, name, source), name)


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise GraphError("torch is not installed", where="import", hint=_HINT) from error


def _loaded(torch: Any, path: Path) -> Any:
    if not path.is_file():
        raise GraphError("there is no such file", where=str(path), expected="a file that torch.export.save has written")
    try:
        return torch.export.load(path)
    except Exception as error:  # whatever torch finds wrong with a file is the file's fault
        what = str(error).strip().splitlines() or [type(error).__name__]
        raise GraphError(f"torch cannot load it: {what[0]}", where=str(path)) from error


def _made(torch: Any, module: str, name: str, where: str) -> Any:
    sys.path.insert(0, "")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise GraphError(f"cannot be imported: {error}", where=where, expected="MODULE:NAME") from error
    finally:
        sys.path.remove("")
    if callable(found) and not isinstance(found, (torch.nn.Module, torch.export.ExportedProgram)):
        found = found()
    if isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], torch.nn.Module):
        found = torch.export.export(found[0].eval(), tuple(found[1]))
    if not isinstance(found, torch.export.ExportedProgram):
        raise GraphError(
            f"is a {type(found).__name__}",
            where=where,
            expected="an ExportedProgram, or a module and the tuple of its arguments",
        )
    return found


def _read(torch: Any, program: Any, name: str) -> Exported:
    signature = program.graph_signature
    kinds = {
        **dict.fromkeys(signature.inputs_to_parameters, "parameter"),
        **dict.fromkeys(signature.inputs_to_buffers, "buffer"),
        **dict.fromkeys(signature.inputs_to_lifted_tensor_constants, "constant"),
    }
    labels = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    nodes: list[Node] = []
    outputs: list[str] = []
    for node in program.graph.nodes:
        if node.op == "output":
            outputs = [each.name for each in node.args[0] if hasattr(each, "name")]
        elif node.op == "placeholder":
            shape, dtype = _kept(node)
            target, label = kinds.get(node.name, "input"), labels.get(node.name, node.name)
            nodes.append(Node(name=node.name, target=target, shape=shape, dtype=dtype, label=label))
        elif node.op == "get_attr":
            nodes.append(Node(name=node.name, target="constant", label=str(node.target)))
        else:
            nodes.append(_operator(node))
    return Exported(name=name, torch=str(torch.__version__), nodes=nodes, outputs=outputs, flops=_flops(torch, program))


def _operator(node: Any) -> Node:
    shape, dtype = _kept(node)
    target = "getitem" if "getitem" in str(node.target) else str(node.target)
    label = next((str(path) for path, _ in reversed(list(node.meta.get("nn_module_stack", {}).values()))), "")
    kwargs = {key: _plain(value) for key, value in node.kwargs.items()}
    args = [_plain(each) for each in node.args]
    return Node(name=node.name, target=target, args=args, kwargs=kwargs, shape=shape, dtype=dtype, label=label)


def _kept(node: Any) -> tuple[list[int], str]:
    """Shape and dtype of the value of a node; sizes that are not fixed count as they were when it was exported."""
    value = node.meta.get("val")
    if not hasattr(value, "shape"):
        return [], ""
    return [_size(each) for each in value.shape], str(value.dtype).removeprefix("torch.")


def _size(each: Any) -> int:
    hint = getattr(getattr(each, "node", None), "hint", None)
    return int(each) if hint is None else int(hint)


def _plain(value: Any) -> Any:
    """An argument as JSON: nodes by name, what is no number or text as its text."""
    if hasattr(value, "op") and hasattr(value, "name"):
        return {"ref": value.name}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _flops(torch: Any, program: Any) -> dict[str, int]:
    """What PyTorch's counter says of the program, run on tensors without data.

    It knows no attention on a CPU; there its formula for attention is asked by itself.
    """
    flop_counter = importlib.import_module("torch.utils.flop_counter")
    counter = flop_counter.FlopCounterMode(display=False)
    values = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"]
    with torch.no_grad(), counter:
        torch.fx.Interpreter(program.graph_module).run(*values)
    found = counter.get_flop_counts().get("Global", {})
    counts = {str(name).removeprefix("aten."): int(count) for name, count in found.items()}
    if not any("attention" in name for name in counts):
        for node in program.graph.nodes:
            if _ATTENTION in str(node.target):
                q, k, v = (list(map(_size, each.meta["val"].shape)) for each in node.args[:3])
                k[1] = v[1] = q[1]  # heads that share keys and values read them once each
                counts[_ATTENTION] = counts.get(_ATTENTION, 0) + int(flop_counter.sdpa_flop_count(q, k, v))
    return dict(sorted(counts.items()))
