"""The table of dims: sizes from the config, words for people."""

from __future__ import annotations

from rooflang.models import Workload, load
from rooflang.models.deepseek_v4 import Config
from rooflang.models.deepseek_v4.scope import context_label, dim_table, has_indexer


def test_sizes_follow_the_config_and_the_workload() -> None:
    config = load("deepseek-v4-pro").config
    assert isinstance(config, Config)
    table = dim_table(config, Workload(stage="prefill", context=8192, batch=3))
    sizes = {label: dim.size for label, dim in table.items()}
    assert sizes["batch"] == 3
    assert sizes["seq"] == 8192
    assert (sizes["group"], sizes["head"], sizes["head_dim"]) == (16, 8, 512)
    assert (sizes["ctx4"], sizes["ctx128"], sizes["window"]) == (2048, 64, 128)
    assert (sizes["expert"], sizes["route"], sizes["ffn"]) == (384, 6, 3072)
    assert (sizes["copy"], sizes["mix"]) == (4, 24)


def test_labels_are_lower_case_and_words_are_not_codes() -> None:
    config = load("deepseek-v4-pro").config
    assert isinstance(config, Config)
    table = dim_table(config, Workload(stage="decode", context=65536, batch=1))
    assert all(label == label.lower() == dim.label for label, dim in table.items())
    assert table[context_label(4)].word == table[context_label(128)].word == "context"
    assert not [dim for dim in table.values() if "_" in dim.word]


def test_only_ratio_4_has_an_indexer() -> None:
    assert [has_indexer(ratio) for ratio in (0, 4, 128)] == [False, True, False]
