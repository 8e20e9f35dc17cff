"""Serving stacks: which layouts each can run, and the flags that ask for them."""

from rooflang.stacks.nearest import Nearest, nearest_plans
from rooflang.stacks.shape import Shape
from rooflang.stacks.stack import STACKS, Stack

__all__ = ["STACKS", "Nearest", "Shape", "Stack", "nearest_plans"]
