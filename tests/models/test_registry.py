"""Loading models by name and from files; what they say of themselves; how fast and light that is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rooflang.models
from rooflang.errors import ModelError, RooflangError, UnknownNameError, ValueRangeError
from rooflang.models import Workload, load, model_names
from tests.counted import calls

FLASH = Path(rooflang.models.__file__).parent / "configs" / "deepseek-v4-flash.json"


def write(path: Path, **changes: Any) -> Path:
    """Flash's config.json with fields changed; None removes one."""
    fields = {**json.loads(FLASH.read_text(encoding="utf-8")), **changes}
    path.write_text(json.dumps({k: v for k, v in fields.items() if v is not None}), encoding="utf-8")
    return path


def test_registered_names() -> None:
    assert {"deepseek-v4-flash", "deepseek-v4-pro"} <= set(model_names())


@pytest.mark.parametrize("name", model_names())
def test_every_registered_model_builds_both_stages(name: str) -> None:
    model = load(name)
    assert model.name == name
    for stage in ("prefill", "decode"):
        graph = model.build(Workload(stage=stage, context=4096, batch=4))  # type: ignore[arg-type]
        assert graph.name == f"{name} {stage}"
        assert len({op.block for op in graph.ops}) == model.layers + 2


def test_layers_and_longest_context() -> None:
    flash, pro = load("deepseek-v4-flash"), load("deepseek-v4-pro")
    assert (flash.layers, pro.layers) == (43, 61)
    assert flash.max_context == pro.max_context == 1048576


def test_a_folder_a_config_in_it_and_a_file_of_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    config = write(folder / "config.json", num_hidden_layers=5)
    other = write(tmp_path / "variant.json", num_hidden_layers=5)
    loaded = [load(folder), load(str(config)), load(other)]
    assert [m.name for m in loaded] == ["my-model", "my-model", "variant"]
    assert [m.layers for m in loaded] == [5, 5, 5]


def test_keys_that_move_no_shape_are_ignored(tmp_path: Path) -> None:
    path = write(tmp_path / "flash.json", rope_theta=1, some_new_key={"a": 1}, initializer_range=7)
    assert load(path).config == load("deepseek-v4-flash").config


@pytest.mark.parametrize(("name", "hint"), [("deepseek-v4-fash", "deepseek-v4-flash"), ("DeepSeek-V4-Pro", "-pro")])
def test_unknown_model_names_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        load(name)
    assert hint in caught.value.hint


@pytest.mark.parametrize("name", ["name" * 100, "zero\0"])
def test_what_no_file_can_be_called_is_an_unknown_model(name: str) -> None:
    with pytest.raises(UnknownNameError):
        load(name)


def test_a_path_to_nothing_says_so(tmp_path: Path) -> None:
    for path in (tmp_path / "config.json", "config.jsn", "meta-llama/Llama-3.1-8B"):
        with pytest.raises(ModelError, match="no file or folder"):
            load(path)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"hidden_size": None}, "hidden_size"),
        ({"hidden_size": "wide"}, "$.hidden_size"),
        ({"hidden_size": 0}, "$.hidden_size"),
        ({"compress_ratios": [4, 128]}, "2 entries for 43 layers"),
        ({"compress_ratios": [-4] * 44}, "compress_ratios"),
        ({"o_groups": 7}, "64 heads do not divide into o_groups = 7"),
        ({"num_experts_per_tok": 300}, "300 of 256 experts"),
        ({"num_key_value_heads": 8}, "$.num_key_value_heads"),
        ({"quantization_config": {"quant_method": "awq"}}, "$.quantization_config.quant_method"),
        ({"quantization_config": {"quant_method": "fp8", "weight_block_size": [64, 64]}}, "weight_block_size"),
        ({"model_type": None}, "no model_type"),
    ],
)
def test_unusable_configs_are_refused_with_the_field(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    path = write(tmp_path / "flash.json", **changes)
    with pytest.raises(ModelError) as caught:
        load(path)
    assert says in str(caught.value)
    assert caught.value.where == str(path)


def test_other_families_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown model_type 'deepseek_v33'"):
        load(write(tmp_path / "v3.json", model_type="deepseek_v33"))


@pytest.mark.parametrize("text", [b"{", b"\xff\xfe", b"[1]", b'"deepseek_v4"', b"[" * 100_000])
def test_files_that_are_no_config_are_refused(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(text)
    with pytest.raises(RooflangError) as caught:
        load(path)
    assert isinstance(caught.value, ModelError)


def test_context_above_the_longest_is_refused() -> None:
    model = load("deepseek-v4-pro")
    model.build(Workload(stage="decode", context=1048576, batch=1))
    with pytest.raises(ValueRangeError) as caught:
        model.build(Workload(stage="decode", context=1048577, batch=1))
    assert caught.value.where == "--context"
    assert "1,048,576" in caught.value.expected


# Totals of the checkpoints' tensors without the MTP layer, from their published configs and tensor lists; the RoofLang
# paper's Table 3 rounds them to 284B, 13B active and 1.6T, 49B active.
@pytest.mark.parametrize(
    ("name", "parameters", "active"),
    [("deepseek-v4-flash", 284.332e9, 13.7996e9), ("deepseek-v4-pro", 1572.997e9, 49.7791e9)],
)
def test_parameters_of_the_description(name: str, parameters: float, active: float) -> None:
    found = load(name).describe()
    assert found.parameters == pytest.approx(parameters, rel=1e-4)
    assert found.active_parameters == pytest.approx(active, rel=1e-3)


def test_words_of_the_description() -> None:
    found = load("deepseek-v4-flash").describe()
    assert found.layers == 43
    assert found.attention == ("2 × window 128, 21 × window 128 + top-512 of context/4, 20 × window 128 + context/128")
    assert found.ffn == "top-6 of 256 experts + 1 shared, the first 3 layers by token id"


def test_building_needs_no_heavy_import() -> None:
    program = (
        "import sys\n"
        "from rooflang.models import Workload, load\n"
        "load('deepseek-v4-flash').build(Workload(stage='decode', context=65536, batch=8))\n"
        "print([n for n in ('numpy', 'networkx', 'egglog', 'rich') if n in sys.modules])\n"
    )
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert outcome.stdout.strip() == "[]"


def test_building_pro_takes_few_calls() -> None:
    """A tenth of a second or two: some 70 calls for each operator of the whole model."""
    model = load("deepseek-v4-pro")
    model.build(Workload(stage="decode", context=65536, batch=8))  # loads the operator table
    assert calls(lambda: model.build(Workload(stage="prefill", context=65536, batch=8))) < 200_000
