"""Reading a `config.json`: the language model of a multimodal file, its family's reader, and what nobody read."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from typing import Any

from rooflang.errors import ModelError, UnknownNameError
from rooflang.models.hf.families import FAMILIES
from rooflang.models.hf.fields import Fields
from rooflang.models.hf.records import Decoder

#: Keys under which multimodal files keep their language model, and what they say outside of it that holds inside.
_NESTED = ("text_config", "llm_config", "language_config")
_OUTER = ("quantization_config", "tie_word_embeddings", "dtype", "torch_dtype")


class UnknownKeysWarning(UserWarning):
    """Fields of a config that no reader knows: they may change the architecture, or nothing."""


def text_fields(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of the language model: those of a nested object where there is one."""
    for key in _NESTED:
        inner = values.get(key)
        if isinstance(inner, dict):
            return {**{k: values[k] for k in _OUTER if k in values}, **inner}
    return values


def read(values: Mapping[str, Any], where: str, *, others: Collection[str] = ()) -> Decoder:
    """The decoder that the fields describe.

    Raises `UnknownNameError` for an architecture that no family has (`others` are known elsewhere), `ModelError` for a
    field that is missing or wrong. Warns once, with `UnknownKeysWarning`, of all fields that nobody has read.
    """
    text = text_fields(values)
    family = text.get("model_type")
    if not isinstance(family, str):
        raise ModelError("no model_type", where=where, expected="the config.json of a published checkpoint")
    if family not in FAMILIES:
        raise UnknownNameError("model_type", family, {*FAMILIES, *others}, where=where)
    fields = Fields(text, where)
    decoder = FAMILIES[family](fields)
    unread = fields.unread()
    if unread:
        warnings.warn(
            f"{where}: fields that are not known, and may matter: {', '.join(unread)}", UnknownKeysWarning, stacklevel=2
        )
    return decoder
