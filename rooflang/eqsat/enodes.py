"""The e-nodes that layout records were read from, as text in the names of their block."""

from __future__ import annotations

from rooflang.eqsat.frozen import Arrival, Hold
from rooflang.ir.cut import Spec, show_spec
from rooflang.ir.layout import Mode, Transfer
from rooflang.rules.laws import LAWS

#: A transfer's e-node, by its collective.
_CONSTRUCTOR = {law.collective: law.constructor for law in LAWS}


def enodes(record: Mode | Transfer | Hold | Arrival) -> tuple[str, ...]:
    """The e-nodes that stand for a record: of a mode the view that it makes and the term of its kernel, of others one.

    They are in a saturated e-graph if the record is (`FrozenBlock.missing`).
    """
    match record:
        case Mode(op=op, operands=operands, out=out):
            views = " ".join(_view(tensor.name, spec) for tensor, spec in zip(op.operands, operands, strict=True))
            term = " ".join((op.name, *(tensor.name for tensor in op.operands)))
            count = len(operands)
            return (f"(Run{count} {op.name} {show_spec(out)} {views})", f"(Op{count} {term})")
        case Transfer(tensor=tensor, collective=collective, before=before, after=after):
            if collective not in _CONSTRUCTOR:  # half of a collective, by way of the first coordinate
                return ()
            specs = f"{show_spec(before)} {show_spec(after)}"
            return (f"({_CONSTRUCTOR[collective]} {specs} {_view(tensor, before)})",)
        case Hold(leaf=leaf, spec=spec, tier=tier):
            return (f"(Hold {leaf} {show_spec(spec)} {tier})",)
        case Arrival(port=port, spec=spec):
            return (f"(PortAt {port} {show_spec(spec)})",)


def _view(tensor: str, spec: Spec) -> str:
    return f"(View {tensor} {show_spec(spec)})"
