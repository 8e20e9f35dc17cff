"""How a checkpoint stores its weights, from `quantization_config`, and what its cache entries are stored in."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Literal

from rooflang.errors import UnknownNameError
from rooflang.models.hf.fields import Fields

Part = Literal["attention", "dense", "shared", "experts", "head"]

#: Modules of a layer, as checkpoints name them, that stand for a part of it. Where any of them is left out of the
#: quantisation, the part is.
MODULES: Mapping[Part, tuple[str, ...]] = {
    "attention": (
        "self_attn.q_proj",
        "self_attn.q_b_proj",
        "self_attn.o_proj",
        "self_attn.qkv_proj",
        "linear_attn.out_proj",
    ),
    "dense": ("mlp.gate_proj", "mlp.down_proj", "mlp.gate_up_proj"),
    "shared": ("mlp.shared_experts.gate_proj", "mlp.shared_expert.gate_proj", "block_sparse_moe.shared_experts.w1"),
    "experts": ("mlp.experts.0.gate_proj", "mlp.experts.0.down_proj", "block_sparse_moe.experts.0.w1", "mlp.experts"),
}
PARTS: tuple[Part, ...] = ("attention", "dense", "shared", "experts")

#: Formats that `--weights` and `--kv` take, and the dtypes they are. Integer weights come in groups of 128.
WEIGHTS = {
    "bf16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8_block",
    "mxfp4": "mxfp4",
    "nvfp4": "nvfp4",
    "int4": "int4_g128",
    "int8": "int8",
}
CACHES = {"bf16": "bf16", "fp8": "fp8", "fp4": "nvfp4"}

_PLAIN = {"bfloat16": "bf16", "float16": "bf16", "float32": "fp32"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats:
    """Dtypes of the weights of every part of a layer, of the head, and of cache entries.

    `plain` is the dtype of what is not quantised: norms, routers, embedding. `own` are parts of single layers that have
    another dtype than that part of the others. 16-bit floats are called bf16, whichever they are: they have the same
    size and peak rate.
    """

    plain: str = "bf16"
    attention: str = "bf16"
    dense: str = "bf16"
    shared: str = "bf16"
    experts: str = "bf16"
    head: str = "bf16"
    cache: str = "bf16"
    own: Mapping[tuple[int, Part], str] = field(default_factory=dict, hash=False)

    def of(self, part: Part, layer: int) -> str:
        """Dtype of the weights of a part of a layer, counted from 0."""
        return self.own.get((layer, part)) or str(getattr(self, part))

    def changed(self, *, weights: str | None = None, cache: str | None = None) -> Formats:
        """The same with other formats. Weights: all products of the layers; routers, embedding and head stay.

        Raises `UnknownNameError` for a format that is none of `WEIGHTS` or `CACHES`.
        """
        new = self
        if weights is not None:
            dtype = _known("weight format", weights, WEIGHTS, "--weights")
            new = replace(new, attention=dtype, dense=dtype, shared=dtype, experts=dtype, own={})
        if cache is not None:
            new = replace(new, cache=_known("cache format", cache, CACHES, "--kv"))
        return new


def _known(kind: str, name: str, known: Mapping[str, str], where: str) -> str:
    if name not in known:
        raise UnknownNameError(kind, name, known, where=where)
    return known[name]


def read_formats(fields: Fields, layers: int) -> Formats:
    """The formats that a config states: `torch_dtype` (now `dtype`) and `quantization_config`.

    Raises `ModelError` for a method that is none of those below, or a width that none of them has.
    """
    plain = _PLAIN[fields.one_of(fields.first("dtype", "torch_dtype"), tuple(_PLAIN), "bfloat16")]
    formats = Formats(plain=plain, attention=plain, dense=plain, shared=plain, experts=plain, head=plain, cache=plain)
    if not fields.has("quantization_config"):
        return formats
    stated = fields.part("quantization_config")
    if _scheme_bits(stated) == 8:
        formats = replace(formats, cache="fp8")
    if stated.text("quant_algo", "") == "MIXED_PRECISION":
        return replace(formats, own=_listed_layers(stated, layers))
    method = stated.one_of("quant_method", tuple(_METHODS), "modelopt" if stated.has("quant_algo") else None)
    dtype, left_out = _METHODS[method](stated)
    own = {
        (layer, part): plain
        for layer in range(layers)
        for part in PARTS
        if any(_left_out(f"model.layers.{layer}.{module}", left_out) for module in MODULES[part])
    }
    return replace(formats, attention=dtype, dense=dtype, shared=dtype, experts=dtype, own=own)


def _listed_layers(fields: Fields, layers: int) -> dict[tuple[int, Part], str]:
    """ModelOpt's mixed precision: a list of modules with the algorithm of each. What it does not list is plain."""
    listed = fields.part("quantized_layers")
    algorithms: dict[str, str] = {}
    for name in listed.raw():
        algorithm = listed.part(name).one_of("quant_algo", tuple(_ALGORITHMS))
        algorithms[name.rpartition("layers.")[2]] = _ALGORITHMS[algorithm]
    found: dict[tuple[int, Part], str] = {}
    for layer in range(layers):
        for part in PARTS:
            own = next((algorithms[f"{layer}.{m}"] for m in MODULES[part] if f"{layer}.{m}" in algorithms), "")
            if own:
                found[layer, part] = own
    return found


def _left_out(module: str, patterns: Sequence[str]) -> bool:
    """Does one of the patterns name this module, or one that it is part of? They are names, parts of names, globs, or
    regular expressions after `re:`."""
    return any(_names(pattern, module) for pattern in patterns)


def _names(pattern: str, module: str) -> bool:
    if pattern.startswith("re:"):
        try:
            return re.match(pattern[3:], module) is not None
        except re.error:
            return False
    if "*" in pattern:
        return fnmatchcase(module, pattern) or fnmatchcase(module, f"{pattern}.*")
    bare = pattern.removeprefix("model.language_model.").removeprefix("language_model.")
    return f".{bare.removeprefix('model.')}." in f".{module}."


def _listed(fields: Fields, *keys: str) -> tuple[str, ...]:
    """The strings in the lists under these keys."""
    found: list[str] = []
    for key in keys:
        fields.skip(key)
        value = fields.raw().get(key, ())
        if not isinstance(value, (list, tuple)) or any(not isinstance(each, str) for each in value):
            raise fields.fail(f"quantization_config.{key} is {value!r}", expected="a list of names")
        found.extend(value)
    return tuple(found)


def _fp8(fields: Fields) -> tuple[str, tuple[str, ...]]:
    """FP8 with a scale per 128 × 128 block (DeepSeek), per output channel (FBGEMM) or per tensor."""
    block = fields.counts("weight_block_size", ())
    if block not in ((), (128, 128)):
        raise fields.fail(f"weight_block_size is {list(block)}", expected="[128, 128]")
    return "fp8_block" if block else "fp8", _listed(fields, "modules_to_not_convert", "ignored_layers")


def _mxfp4(fields: Fields) -> tuple[str, tuple[str, ...]]:
    return "mxfp4", _listed(fields, "modules_to_not_convert")


def _integer(fields: Fields) -> tuple[str, tuple[str, ...]]:
    """AWQ and GPTQ: groups of weights with a 16-bit scale and a zero point."""
    bits = fields.count(fields.first("bits", "w_bit"))
    group = fields.count(fields.first("group_size", "q_group_size"), 128, least=-1)
    return _integer_dtype(fields, bits, group, zeros=True), _listed(fields, "modules_to_not_convert")


def _integer_dtype(fields: Fields, bits: int, group: int, *, zeros: bool) -> str:
    if bits == 8:
        return "int8"
    if bits != 4 or group not in (32, 64, 128):
        raise fields.fail(f"integers of {bits} bits in groups of {group}", expected="8 bits, or 4 in 32, 64 or 128")
    return f"int4_g{group}z" if zeros else f"int4_g{group}"


def _compressed(fields: Fields) -> tuple[str, tuple[str, ...]]:
    """compressed-tensors, and modelopt in its form: groups of modules with the bits and type of their weights."""
    groups = fields.part("config_groups")
    names = sorted(groups.raw())
    if not names:
        raise fields.fail("quantization_config has no config_groups", expected="one with the format of the weights")
    weights = groups.part(names[0]).part("weights")
    bits, sort = weights.count("num_bits"), weights.one_of("type", ("float", "int"), "int")
    group = weights.count("group_size", 128, least=-1)
    if sort == "int":
        dtype = _integer_dtype(fields, bits, group, zeros=not weights.flag("symmetric", True))
    elif bits == 4:
        dtype = "nvfp4" if group == 16 else "mxfp4"
    else:
        dtype = "fp8_block" if weights.text("strategy", "tensor") == "block" else "fp8"
    return dtype, _listed(fields, "ignore")


def _modelopt(fields: Fields) -> tuple[str, tuple[str, ...]]:
    """NVIDIA's ModelOpt: FP8, or NVFP4 with an FP8 scale per 16 elements."""
    left_out = _listed(fields, "ignore", "exclude_modules")
    if not fields.has("quant_algo"):
        dtype, more = _compressed(fields)
        return dtype, (*left_out, *more)
    return _ALGORITHMS[fields.one_of("quant_algo", tuple(_ALGORITHMS))], left_out


def _scheme_bits(fields: Fields) -> int:
    """Bits of a cache entry's element where the config states them, else 0."""
    if isinstance(fields.raw().get("kv_cache_scheme"), dict):
        return fields.part("kv_cache_scheme").count("num_bits")
    return 8 if fields.text(fields.first("kv_cache_quant_algo", "kv_cache_scheme"), "none").upper() == "FP8" else 0


#: ModelOpt's algorithms.
_ALGORITHMS = {
    "FP8": "fp8",
    "FP8_PB_WO": "fp8_block",
    "NVFP4": "nvfp4",
    "W4A16_NVFP4": "nvfp4",
    "W4A8_MXFP4_FP8": "mxfp4",
    "W4A16_AWQ": "int4_g128z",
}

_METHODS = {
    "fp8": _fp8,
    "fbgemm_fp8": _fp8,
    "mxfp4": _mxfp4,
    "awq": _integer,
    "gptq": _integer,
    "compressed-tensors": _compressed,
    "modelopt": _modelopt,
    "modelopt_fp4": _modelopt,
}
