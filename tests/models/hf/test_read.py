"""Reading config.json files: what is refused, and where; nested files; what nobody reads."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from rooflang.errors import ModelError, UnknownNameError
from rooflang.models import load
from rooflang.models.hf import FAMILIES, Decoder, UnknownKeysWarning, read

Fields = dict[str, Any]


def test_a_small_llama(llama: Fields) -> None:
    found = read(llama, "config.json")
    assert (found.layers, found.vocab, found.hidden, found.max_context) == (2, 1024, 256, 8192)
    assert found.attention_words == "2 × GQA (8 heads, 2 KV)"
    assert found.ffn_words == "2 × dense 512"


def test_a_file_of_ones_own(llama: Fields, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(llama), encoding="utf-8")
    model = load(path)
    assert model.name == tmp_path.name
    assert (
        model.describe().parameters
        == 2 * (2 * 256 * 256 + 2 * 256 * 64 + 3 * 256 * 512 + 2 * 256) + 2 * 1024 * 256 + 256
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"hidden_size": None}, "no $.hidden_size"),
        ({"hidden_size": "wide"}, "$.hidden_size is 'wide'"),
        ({"hidden_size": True}, "$.hidden_size is True"),
        ({"num_hidden_layers": 0}, "$.num_hidden_layers is 0"),
        ({"num_hidden_layers": 10**9}, "$.num_hidden_layers is 1000000000"),  # would take all memory
        ({"hidden_size": 2**62}, "$.hidden_size is 4611686018427387904"),
        ({"num_key_value_heads": 3}, "8 heads do not divide over num_key_value_heads = 3"),
        ({"attention_bias": "yes"}, "$.attention_bias is 'yes'"),
        ({"hidden_act": "swish2"}, "$.hidden_act is 'swish2'"),
        ({"model_type": None}, "no model_type"),
        ({"model_type": 7}, "no model_type"),
        ({"torch_dtype": "float4"}, "$.torch_dtype is 'float4'"),
    ],
)
def test_what_is_wrong_is_said_with_its_field(llama: Fields, changes: Fields, says: str) -> None:
    with pytest.raises(ModelError) as caught:
        read({**llama, **changes}, "my/config.json")
    assert says in caught.value.what
    assert caught.value.where == "my/config.json"


@pytest.mark.parametrize(("family", "near"), [("llama3", "llama"), ("qwen3moe", "qwen3_moe"), ("Gemma2", "gemma2")])
def test_an_unknown_architecture_is_refused_with_the_nearest(llama: Fields, family: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        read({**llama, "model_type": family}, "config.json")
    assert near in caught.value.hint
    assert caught.value.where == "config.json"


def test_fields_that_nobody_reads_are_listed_once(llama: Fields) -> None:
    with pytest.warns(UnknownKeysWarning) as caught:
        read({**llama, "zz_new": 1, "attention_sort": "odd", "rope_theta": 1e6, "bos_token_id": 1}, "config.json")
    assert len(caught) == 1
    assert str(caught[0].message).endswith("may matter: attention_sort, zz_new")


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[3] / "models" / "configs").glob("*.json")))
def test_the_registered_configs_have_no_unknown_fields(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnknownKeysWarning)
        load(path)


def test_the_language_model_of_a_multimodal_file(llama: Fields) -> None:
    outer = {
        "model_type": "mistral3",
        "vision_config": {"hidden_size": 1},
        "text_config": llama,
        "quantization_config": {"quant_method": "fp8"},
        "torch_dtype": "bfloat16",
    }
    found = read(outer, "config.json")
    assert found.model_type == "llama"
    assert found.formats.attention == "fp8"
    assert load("kimi-k2.5").config.model_type == "kimi_k2"


def test_every_family_has_a_registered_model_or_is_one_by_another_name() -> None:
    """What transformers splits in two where one reader serves."""
    from rooflang.models import model_names

    served = {load(name).config.model_type for name in model_names()}
    assert set(FAMILIES) - served <= {
        "gemma",
        "gemma3",
        "glm",
        "minimax",
        "qwen3_vl_text",
        "qwen3_vl_moe_text",
        "glm4_moe_lite",
    }


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("gpt-oss-20b", {"layer_types": ["full_attention"]}, "layer_types has 1 entries for 24 layers"),
        ("gpt-oss-20b", {"layer_types": ["odd"] * 24}, "$.layer_types"),
        ("gpt-oss-20b", {"num_experts_per_tok": 40}, "a token goes to 40 of 32 experts"),
        ("llama-4-scout", {"no_rope_layers": [1]}, "no_rope_layers has 1 entries for 48 layers"),
        ("minimax-m1", {"attn_type_list": [0, 1]}, "attn_type_list has 2 entries for 80 layers"),
        ("qwen3-next-80b-a3b", {"linear_num_key_heads": 5}, "32 value heads do not divide over 5 key heads"),
        ("qwen2.5-7b", {"use_sliding_window": True}, "use_sliding_window is true"),
        ("kimi-linear-48b-a3b", {"linear_attn_config": 3}, "$.linear_attn_config is 3"),
        ("kimi-linear-48b-a3b", {"linear_attn_config": {"num_heads": 0}}, "$.linear_attn_config.num_heads is 0"),
    ],
)
def test_schedules_and_parts_that_do_not_fit_are_refused(name: str, changes: Fields, says: str) -> None:
    path = Path(__file__).parents[3] / "models" / "configs" / f"{name}.json"
    fields = json.loads(path.read_text(encoding="utf-8"))
    fields = {**fields.get("text_config", fields), **changes}
    with pytest.raises(ModelError) as caught:
        read(fields, "config.json")
    assert says in caught.value.what


def test_layers_that_differ_in_a_dim_are_refused(llama: Fields) -> None:
    """One label has one size in a graph."""
    from dataclasses import replace

    from rooflang.models import Model, Workload

    config = read(llama, "config.json")
    assert isinstance(config, Decoder)
    first, second = config.stack
    odd = replace(second, attention=replace(first.attention, heads=16))
    model = Model(name="odd", config=replace(config, stack=(first, odd)))
    with pytest.raises(ModelError, match="layers differ in head: 8 and 16"):
        model.build(Workload(stage="decode", context=16, batch=1))
