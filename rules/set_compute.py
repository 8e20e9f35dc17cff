"""set_compute: an operator is placed on a device, and on one of its streams."""

from __future__ import annotations

from dataclasses import replace

from rooflang.hw.cluster import Cluster, Device
from rooflang.ir.op import Op, op_kind
from rooflang.rules.examples import mlp
from rooflang.rules.record import Exactness, Ok, Refusal, Rule, Verdict

NAME = "set_compute"


def check(op: Op, device: Device, stream: str = "compute") -> Verdict:
    """May `op` run on the device's stream? `Ok` carries (device name, stream)."""
    ones = dict.fromkeys(op.labels, 1)
    needed = sorted(op_kind(op.kind).flops(op, ones, ones))
    missing = [dtype for dtype in needed if dtype not in device.peaks]
    if missing:
        known = ", ".join(sorted(device.peaks))
        return Refusal(code="no-peak", reason=f"{device.name} has no {missing[0]} rate for {op.name}; it has {known}")
    return Ok(result=(device.name, stream))


def _example(compute: str) -> Verdict:
    return check(replace(mlp().op_by_name["up"], compute=compute), Cluster.of("b300", 8).device)


RULE = Rule(
    name=NAME,
    summary="choose the device, and its stream, that an operator runs on",
    before="op on d",
    after="op on d′",
    why="a device computes the operator's function or refuses; its operands travel to it, bit for bit",
    preconditions=("the device has a rate for every dtype that the operator computes in",),
    exactness=Exactness.EXACT,
    evidence="no FLOP of any operator kind is left without a rate",
    check=check,
    fires=lambda: _example("bf16"),
    refused=lambda: _example("int4"),
)
