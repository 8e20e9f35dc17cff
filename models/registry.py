"""Registered models, and models from a `config.json` of one's own."""

from __future__ import annotations

import codecs
import importlib
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, cast

import msgspec

from rooflang.assumptions import PHYSICAL, Assumptions
from rooflang.errors import ModelError, UnknownNameError, ValueRangeError
from rooflang.ir.graph import Graph
from rooflang.models.extensions import check_extensions
from rooflang.models.workload import Workload

_CONFIGS = Path(__file__).parent / "configs"

#: `model_type` of a config.json → the package that reads it (`Config`) and builds its graphs (`build`).
#: Any other one is read and built by `rooflang.models.hf`.
_FAMILIES = {
    "deepseek_v4": "rooflang.models.deepseek_v4",
    "glm_moe_dsa": "rooflang.models.glm5",
    "kimi_k3": "rooflang.models.kimi_k3",
}

_HF = "rooflang.models.hf"

#: A model and how it is stored.
_STORED = re.compile(r"(?P<model>.+):(?P<changes>(weights|kv)=\w+(,(weights|kv)=\w+)?)", re.S)


class Config(Protocol):
    """What is common to the config records of all families."""

    @property
    def model_type(self) -> str: ...
    @property
    def layers(self) -> int: ...
    @property
    def max_context(self) -> int: ...
    @property
    def attention_words(self) -> str: ...
    @property
    def ffn_words(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A model in numbers and words.

    Parameters are counted in the graph of a decode step under the physical profile, without the multi-token-prediction
    layer; the active ones are those that a token meets, the whole embedding table among them. A request keeps
    `kv_bytes_per_token` for each token of its context, and `kept_bytes` whatever its context.
    """

    name: str
    layers: int
    max_context: int
    parameters: float
    active_parameters: float
    kv_bytes_per_token: float
    kept_bytes: float
    attention: str
    ffn: str
    formats: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model: its config, and the graphs that follow from it."""

    name: str
    config: Config

    @property
    def layers(self) -> int:
        """Number of layers, embedding and head not counted."""
        return self.config.layers

    @property
    def max_context(self) -> int:
        """Longest context in tokens."""
        return self.config.max_context

    def build(self, workload: Workload, assumptions: Assumptions = PHYSICAL) -> Graph:
        """The verified graph of one step. Raises `ValueRangeError` for a context above the model's longest, and for
        extensions (`Assumptions`) that the model has nothing for."""
        if workload.context > self.max_context:
            raise ValueRangeError(
                f"a context of {workload.context:,} tokens is more than {self.name} takes",
                where="--context",
                expected=f"at most {self.max_context:,}",
            )
        check_extensions(self.name, self.config, workload, assumptions)
        family = importlib.import_module(_FAMILIES.get(self.config.model_type, _HF))
        return cast(Graph, family.build(self.name, self.config, workload, assumptions))

    def stored(self, *, weights: str | None = None, kv: str | None = None) -> Model:
        """The model with its weights or its cache stored otherwise than the config says; its name tells so too, as
        `load` reads it.

        Raises `UnknownNameError` for a format that is not known, `ModelError` for a model whose config alone decides.
        """
        if weights is None and kv is None:
            return self
        from rooflang.models.hf import Decoder

        if not isinstance(self.config, Decoder):
            raise ModelError(
                f"the formats of {self.name} are those of its config.json",
                where="--weights" if weights is not None else "--kv",
                hint="change quantization_config in a copy of the file",
            )
        formats = self.config.formats.changed(weights=weights, cache=kv)
        changes = ",".join(f"{key}={value}" for key, value in (("weights", weights), ("kv", kv)) if value is not None)
        return replace(self, name=f"{self.name}:{changes}", config=replace(self.config, formats=formats))

    def describe(self) -> Description:
        """The model in numbers and words; it builds graphs to count parameters and bytes of cache."""
        from rooflang.models.counts import counts

        size = counts(self)
        return Description(
            name=self.name,
            layers=self.layers,
            max_context=self.max_context,
            parameters=size.parameters,
            active_parameters=size.active,
            kv_bytes_per_token=size.kv_bytes_per_token,
            kept_bytes=size.kept_bytes,
            attention=self.config.attention_words,
            ffn=self.config.ffn_words,
            formats=size.words,
        )


def model_names() -> tuple[str, ...]:
    """Names of the registered models, sorted."""
    return tuple(sorted(path.stem for path in _CONFIGS.glob("*.json")))


def load(name_or_path: str | Path) -> Model:
    """The model registered under a name, or the one that a `config.json` (or the folder that holds it) describes. After
    either may stand how it is stored: `llama-3.1-8b:weights=fp8,kv=fp8` (see `Model.stored`).

    Raises `UnknownNameError` for what is neither a registered name nor a file, `ModelError` for a path at which there
    is nothing, and for a file that is no usable config.
    """
    if not isinstance(name_or_path, (str, os.PathLike)):
        raise UnknownNameError("model", str(name_or_path), model_names(), where="model")
    stored = _STORED.fullmatch(str(name_or_path))
    if stored is not None:
        changes = dict(change.split("=") for change in stored["changes"].split(","))
        return load(stored["model"]).stored(**changes)
    path = _CONFIGS / f"{name_or_path}.json"
    if str(name_or_path) in model_names():
        return Model(name=str(name_or_path), config=_read(path))
    path = Path(name_or_path)
    if os.path.isdir(path):
        path /= "config.json"
    if not os.path.isfile(path):  # unlike those of `Path`, these say no to names that no file can have
        if re.search(r"[/\\]|\.js\w*$", str(name_or_path)):
            raise ModelError(
                f"there is no file or folder {str(name_or_path)[:200]!r}",
                where="model",
                expected="a config.json, the folder that holds one, or a name that `rooflang models` lists",
                hint="of a model on the Hugging Face hub the config.json is enough: download that file",
            )
        raise UnknownNameError("model", str(name_or_path), model_names(), where="model")
    name = path.resolve().parent.name if path.name == "config.json" else path.stem
    return Model(name=name, config=_read(path))


def _read(path: Path) -> Config:
    """The config record of the family that the file's `model_type` names."""
    fields = _json(path)
    if not isinstance(fields, dict):
        raise ModelError("no model_type", where=str(path), expected="the config.json of a published checkpoint")
    fields, family = _with_sidecar(fields, path), fields.get("model_type")
    if not isinstance(family, str) or family not in _FAMILIES:
        from rooflang.models.hf import read

        return read(fields, str(path), others=_FAMILIES)
    record: type[Any] = importlib.import_module(_FAMILIES[family]).Config
    try:
        return cast(Config, msgspec.convert(fields, record))
    except msgspec.ValidationError as error:
        raise ModelError(str(error), where=str(path)) from error
    except ModelError as error:  # of the quantization, which knows the field but not the file
        error.where = str(path)
        raise


def _json(path: Path) -> Any:
    """What a JSON file holds."""
    try:
        return msgspec.json.decode(path.read_bytes().removeprefix(codecs.BOM_UTF8))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelError(f"not JSON: {error}", where=str(path)) from error
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", where=str(path)) from error


def _with_sidecar(fields: dict[str, Any], path: Path) -> dict[str, Any]:
    """The fields, with the quantisation that NVIDIA's ModelOpt writes into a file of its own beside a config.json."""
    beside = path.with_name("hf_quant_config.json")
    if path.name != "config.json" or "quantization_config" in fields or not os.path.isfile(beside):
        return fields
    stated = _json(beside)
    if not isinstance(stated, dict) or not isinstance(stated.get("quantization"), dict):
        raise ModelError("no quantization", where=str(beside), expected="the hf_quant_config.json of a checkpoint")
    return {**fields, "quantization_config": {"quant_method": "modelopt", **stated["quantization"]}}
