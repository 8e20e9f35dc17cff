"""The primitives on a state: each asks its rule's record, and returns the state after it.

A record decides one application (`rules`); the code behind this table finds what it is applied to and writes down what
follows. Whether all readers can be given what they read after it is for `World.settled` to say.
"""

from __future__ import annotations

from collections.abc import Callable

from rooflang.agent import kernels, where
from rooflang.agent.actions import Action
from rooflang.agent.between import merge, put_between
from rooflang.agent.joining import join, joins
from rooflang.agent.parting import take_apart
from rooflang.agent.state import State
from rooflang.agent.world import Placed, World

Primitive = Callable[[World, State, Action], State]


def apply(placed: Placed, action: Action) -> Placed:
    """The placed graph after an action. Raises `RefusedError` with the rule's code and reason where it does not
    apply."""
    if action.parts is not None:
        return take_apart(placed, action)
    if joins(placed, action):
        return join(placed, action)
    state = _PRIMITIVES[action.primitive](placed.world, placed.state, action)
    return placed.world.settled(state, placed)


def _kernel_or_read(kernel: Primitive) -> Primitive:
    """A primitive on a kernel that is, with a reader, one on what lies before it."""
    return lambda world, state, action: (put_between if action.reader else kernel)(world, state, action)


_PRIMITIVES: dict[str, Primitive] = {
    "set_compute": where.set_compute,
    "set_memory": where.set_memory,
    "add_control_edge": where.add_control_edge,
    "remove_control_edge": where.remove_control_edge,
    "insert_identity": where.insert_identity,
    "remove_identity": where.remove_identity,
    "fuse_kernels": kernels.fuse_kernels,
    "split_kernel": _kernel_or_read(kernels.split_kernel),
    "dup_kernel": kernels.dup_kernel,
    "dedup_kernel": _kernel_or_read(kernels.dedup_kernel),
    "merge_gather_scatter": merge,
    "merge_gather_broadcast": merge,
    "merge_reduce_scatter": merge,
    "merge_reduce_broadcast": merge,
}
