"""What every operator kind computes, in NumPy: the meaning that cuts and plans are held to."""

from rooflang.ir.reference.base import Fold, Reference, Summary, Where, reference, references, whole

__all__ = ["Fold", "Reference", "Summary", "Where", "reference", "references", "whole"]
