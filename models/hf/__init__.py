"""Decoder-only language models of the Hugging Face hub: one builder, assembled from the attention and feed-forward
kinds that a `config.json` asks for. No code that comes with a model is run."""

from rooflang.models.hf.build import build
from rooflang.models.hf.families import FAMILIES
from rooflang.models.hf.read import UnknownKeysWarning, read
from rooflang.models.hf.records import Decoder

__all__ = ["FAMILIES", "Decoder", "UnknownKeysWarning", "build", "read"]
