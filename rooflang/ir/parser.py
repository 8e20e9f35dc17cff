"""The parser behind `text.parse`: tokens of a line, statements, and references that are resolved at the end."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from rooflang.errors import GraphError, UnknownNameError
from rooflang.ir.graph import Graph
from rooflang.ir.op import Op, op_kinds
from rooflang.ir.tensor import DTYPES, Dim, Role, Tensor

_TOKEN = re.compile(
    r"""\s*(?:(?P<comment>\#.*)
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<mark>[\[\](){}=,])
    |(?P<word>[^\s\[\](){}=,"\#]+))""",
    re.VERBOSE,
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,300}")
_FLOAT = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_CONSTANTS = {"true": True, "false": False, "none": None, "inf": float("inf"), "-inf": float("-inf")}

#: Tuples nested deeper than this are refused.
_DEPTH = 16

#: Longer lists of names are left out of messages; the nearest names are given all the same.
_LISTED = 30


class _Line:
    """The tokens of one line, read from left to right. Each is (group of `_TOKEN`, text)."""

    def __init__(self, text: str, where: str) -> None:
        self.where = where
        self._tokens: list[tuple[str, str]] = []
        self._at = 0
        end = len(text.rstrip())
        at = 0
        while at < end:
            match = _TOKEN.match(text, at)
            if match is None:
                raise GraphError(
                    f"cannot read {text[at:end].strip()!r}", where=where, hint="is a double quote missing?"
                )
            if match.lastgroup != "comment":
                self._tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            at = match.end()

    @property
    def done(self) -> bool:
        return self._at >= len(self._tokens)

    def peek(self) -> str:
        """The next token's text, empty at the end of the line."""
        return "" if self.done else self._tokens[self._at][1]

    def take(self, expected: str) -> tuple[str, str]:
        """The next token as (group, text)."""
        if self.done:
            raise GraphError("the line ends early", where=self.where, expected=expected)
        self._at += 1
        return self._tokens[self._at - 1]

    def mark(self, mark: str) -> None:
        """Step over a punctuation mark that must come now."""
        group, text = self.take(repr(mark))
        if group != "mark" or text != mark:
            raise GraphError(f"{text} is out of place", where=self.where, expected=repr(mark))

    def skip(self, mark: str) -> bool:
        """Step over a punctuation mark if it comes now."""
        if not self.done and self._tokens[self._at] == ("mark", mark):
            self._at += 1
            return True
        return False

    def name(self, what: str) -> str:
        """A word, or any name in quotes."""
        group, text = self.take(what)
        if group == "mark":
            raise GraphError(f"{text} is out of place", where=self.where, expected=what)
        return self.unquote(text) if group == "string" else text

    def unquote(self, text: str) -> str:
        try:
            return str(json.loads(text))
        except ValueError:
            raise GraphError(f"cannot read the string {text}", where=self.where, expected="a JSON string") from None

    def names(self, closing: str, what: str, *, commas: bool) -> tuple[str, ...]:
        """Names up to a closing mark, which is stepped over."""
        found: list[str] = []
        while not self.skip(closing):
            if found and commas:
                self.mark(",")
            found.append(self.name(f"{what} or {closing!r}"))
        return tuple(found)

    def number(self, what: str) -> float:
        text = self.name(what)
        if not _FLOAT.fullmatch(text):
            raise GraphError(f"{text!r} is no number", where=self.where, expected=what)
        return float(text)

    def value(self, depth: int = 0) -> Any:
        """An attribute's value: a number, a quoted string, a constant word, or a tuple of values."""
        what = 'a number, a "string", true, false, none, or a tuple of these'
        group, text = self.take(what)
        if group == "string":
            return self.unquote(text)
        if group == "mark" and text == "(" and depth < _DEPTH:
            return self._tuple(depth + 1)
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
        raise GraphError(f"{text} is no attribute value", where=self.where, expected=what)

    def _tuple(self, depth: int) -> tuple[Any, ...]:
        values: list[Any] = []
        while not self.skip(")"):
            values.append(self.value(depth))
            if not self.skip(","):
                self.mark(")")
                break
        return tuple(values)

    def end(self) -> None:
        if not self.done:
            raise GraphError(f"{self.peek()} is too much", where=self.where, expected="the end of the line")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    """An operator whose operands are still names."""

    where: str
    operands: tuple[str, ...]
    op: Op


@dataclass(slots=True)
class Parser:
    """Collects the statements of one text. `where` names the text in errors."""

    where: str
    _name: str | None = None
    _dims: dict[str, Dim] = field(default_factory=dict)
    _tensors: dict[str, tuple[Tensor, str]] = field(default_factory=dict)
    _statements: list[_Statement] = field(default_factory=list)
    _outputs: dict[str, str] = field(default_factory=dict)
    _block: str = ""

    def graph(self, text: str) -> Graph:
        """The graph that the text describes. Raises `GraphError`."""
        for number, source in enumerate(text.split("\n"), start=1):
            line = _Line(source, f"{self.where}:{number}")
            if not line.done:
                self._statement(line)
                line.end()
        if self._name is None:
            raise GraphError("no graph", where=self.where, expected="a first line such as `graph NAME`")
        for name, where in self._outputs.items():
            self._tensor(name, where)
        return Graph(
            name=self._name,
            dims=tuple(self._dims.values()),
            ops=tuple(self._resolved(statement) for statement in self._statements),
            outputs=tuple(self._outputs),
        )

    def _statement(self, line: _Line) -> None:
        word = line.name("a statement")
        if word == "graph":
            if self._name is not None:
                raise GraphError("a second graph", where=line.where, expected="one graph a file")
            self._name = line.name("the graph's name")
        elif self._name is None:
            raise GraphError(f"{word} before any graph", where=line.where, expected="`graph NAME` in the first line")
        elif word == "dim":
            self._dim(line)
        elif word == "block":
            self._block = line.name("a block label")
        elif word == "op":
            self._op(line)
        elif word == "out":
            self._out(line)
        elif word in set(Role):
            self._leaf(line, Role(word))
        else:
            known = ("graph", "dim", "block", "op", "out", *(role.value for role in Role))
            raise _unknown("statement", word, known, line.where)

    def _dim(self, line: _Line) -> None:
        label = line.name("a dim label")
        text = line.name("a size")
        if not _INTEGER.fullmatch(text) or int(text) < 1:
            raise GraphError(f"dim {label!r} has the size {text}", where=line.where, expected="an integer of 1 or more")
        meaning = "" if line.done else line.name("what the dim means")
        if label in self._dims:
            raise GraphError(f"dim {label!r} is declared twice", where=line.where)
        self._dims[label] = Dim(label=label, size=int(text), meaning=meaning)

    def _leaf(self, line: _Line, role: Role) -> None:
        tensor = self._shape(line, line.name("a tensor name"), role)
        while not line.done:
            tensor = replace(tensor, fill=self._fill(line, line.name("`fill`")))
        self._declare(tensor, line.where)

    def _shape(self, line: _Line, name: str, role: Role) -> Tensor:
        line.mark("[")
        dims = line.names("]", "a dim label", commas=False)
        for label in dims:
            if label not in self._dims:
                raise _unknown("dim", label, self._dims, line.where)
        dtype = line.name("a dtype")
        if dtype not in DTYPES:
            raise _unknown("dtype", dtype, DTYPES, line.where)
        return Tensor(name=name, dims=dims, dtype=dtype, role=role)

    def _fill(self, line: _Line, key: str) -> float:
        if key != "fill":
            raise _unknown("option", key, ("fill",), line.where)
        line.mark("=")
        return line.number("a share between 0 and 1")

    def _op(self, line: _Line) -> None:
        name = line.name("the operator's name")
        line.mark("=")
        kind = line.name("an operator kind")
        if kind not in op_kinds():
            raise _unknown("operator kind", kind, op_kinds(), line.where)
        line.mark("(")
        operands = line.names(")", "a tensor name", commas=True)
        output = self._shape(line, name, Role.ACTIVATION)
        texts = {"group": kind, "compute": ""}
        while not line.done and line.peek() != "{":
            key = line.name("an option")
            if key == "fill":
                output = replace(output, fill=self._fill(line, key))
                continue
            if key not in ("role", "tensor", *texts):
                raise _unknown("option", key, ("fill", "role", "tensor", *texts), line.where)
            line.mark("=")
            text = line.name(f"a {key}")
            if key == "role":
                output = replace(output, role=self._role(line, text))
            elif key == "tensor":
                output = replace(output, name=text)
            else:
                texts[key] = text
        op = Op(name=name, kind=kind, operands=(), output=output, attrs=self._attrs(line), block=self._block, **texts)
        self._declare(output, line.where)
        self._statements.append(_Statement(where=line.where, operands=operands, op=op))

    def _role(self, line: _Line, text: str) -> Role:
        if text not in set(Role):
            raise _unknown("role", text, (role.value for role in Role), line.where)
        return Role(text)

    def _attrs(self, line: _Line) -> tuple[tuple[str, Any], ...]:
        found: dict[str, Any] = {}
        if line.skip("{"):
            while not line.skip("}"):
                if found:
                    line.mark(",")
                key = line.name("an attribute's name")
                line.mark("=")
                if key in found:
                    raise GraphError(f"attribute {key!r} is given twice", where=line.where)
                found[key] = line.value()
        return tuple(found.items())

    def _out(self, line: _Line) -> None:
        while True:
            name = line.name("a tensor name")
            if name in self._outputs:
                raise GraphError(f"{name!r} is an output twice", where=line.where)
            self._outputs[name] = line.where
            if line.done:
                return

    def _declare(self, tensor: Tensor, where: str) -> None:
        if tensor.name in self._tensors:
            raise GraphError(
                f"tensor {tensor.name!r} is declared here and in {self._tensors[tensor.name][1]}", where=where
            )
        self._tensors[tensor.name] = (tensor, where)

    def _tensor(self, name: str, where: str) -> Tensor:
        if name not in self._tensors:
            raise _unknown("tensor", name, self._tensors, where)
        return self._tensors[name][0]

    def _resolved(self, statement: _Statement) -> Op:
        return replace(statement.op, operands=tuple(self._tensor(n, statement.where) for n in statement.operands))


def _unknown(what: str, name: str, known: Iterable[str], where: str) -> GraphError:
    names = tuple(known)
    near = UnknownNameError(what, name, names)
    return GraphError(near.what, where=where, expected=near.expected if len(names) <= _LISTED else "", hint=near.hint)
