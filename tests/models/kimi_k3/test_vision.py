"""Prompts with images: the encoder by hand, its place in the graph, what can see and what cannot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rooflang.assumptions import PAPER, PHYSICAL
from rooflang.errors import ModelError, ValueRangeError
from rooflang.ir import Graph, Role
from rooflang.ir.blocks import split_blocks
from rooflang.models import Workload, load

Build = Callable[..., Graph]
Flops = Callable[[Graph], dict[str, float]]

SEEING = replace(PHYSICAL, images=3, image_tokens=16)


def encoder(graph: Graph) -> Graph:
    return replace(graph, ops=tuple(op for op in graph.ops if op.block.startswith("vision.")))


def test_blocks(small: Build) -> None:
    blocks = split_blocks(small("prefill", SEEING, context=1024))
    assert blocks.sequence[:29] == ("vision.patches", *(f"vision.{n}" for n in range(27)), "vision.projector")
    assert blocks.counts()["vision.0"] == 27
    assert blocks.sequence[29] == "embed"


def test_parameters_by_hand(small: Build) -> None:
    """Kimi-VL's MoonViT with the widths of the config, and two norms and two products of the projector."""
    graph = encoder(small("prefill", SEEING, context=1024))
    found = sum(t.elements(graph.sizes) for t in graph.leaves if t.role is Role.WEIGHT)
    layer = 4 * 1024 * 1536 + 2 * 1024 * 4096 + 2 * 1024
    assert found == 588 * 1024 + 27 * layer + 2 * 1024 + 4096 * 4096 + 4096 * 7168


def test_flops_by_hand(small: Build, flops: Flops) -> None:
    """Every patch meets every weight, and the patches of its own image."""
    graph = encoder(small("prefill", SEEING, context=1024, batch=2))
    patches, of_image = 2 * 3 * 64, 64
    weights = 588 * 1024 + 27 * (4 * 1024 * 1536 + 2 * 1024 * 4096) + (4096 * 4096 + 4096 * 7168) / 4
    found = flops(graph)
    assert found.keys() == {"bf16"}
    products = 2 * patches * weights + 27 * 4 * patches * of_image * 1536
    assert found["bf16"] == pytest.approx(products, rel=2e-3)  # norms, sums and activations beside them
    assert found["bf16"] > products


def test_image_tokens_take_the_place_of_others(small: Build) -> None:
    graph = small("prefill", SEEING, context=1024)
    op = graph.op_by_name["embed.images"]
    assert [t.dims for t in op.operands] == [("batch", "seq", "hidden"), ("batch", "image_token", "hidden")]
    assert graph.sizes["image_token"] == 3 * 16 and graph.sizes["patch"] == 4 * 3 * 16
    assert next(user.name for user, _ in graph.consumers["embed.images"]) == "layers.0.attn_norm"
    text = small("prefill", PHYSICAL, context=1024)
    assert {op.name for op in text.ops} == {
        op.name for op in graph.ops if not op.block.startswith("vision.") and op.name != "embed.images"
    }


def test_both_profiles_encode_alike(small: Build, flops: Flops) -> None:
    graphs = [encoder(small("prefill", replace(base, images=2), context=8192)) for base in (PAPER, PHYSICAL)]
    assert flops(graphs[0]) == flops(graphs[1])


@pytest.mark.parametrize(
    ("model", "stage", "context", "says"),
    [
        ("kimi-k3", "decode", 8192, "a decode step encodes no images"),
        ("kimi-k3", "prefill", 1024, "images of 2,048 tokens in a prompt of 1,024"),
        ("glm-5.3", "prefill", 8192, "no vision encoder"),
    ],
)
def test_who_cannot_see_says_so(model: str, stage: Any, context: int, says: str) -> None:
    with pytest.raises(ValueRangeError, match=says) as caught:
        load(model).build(Workload(stage=stage, context=context, batch=1), replace(PHYSICAL, images=2))
    assert caught.value.where == "--images"


def test_a_file_without_an_encoder_is_blind(tmp_path: Any) -> None:
    import json
    from importlib.resources import files

    fields = json.loads((files("rooflang.models") / "configs" / "kimi-k3.json").read_text())
    wrong = {**fields, "vision_config": {**fields["vision_config"], "qkv_hidden_size": 1000}}
    del fields["vision_config"]
    (tmp_path / "blind.json").write_text(json.dumps(fields))
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    blind = load(tmp_path / "blind.json")
    assert blind.config.sees is False  # type: ignore[attr-defined]
    with pytest.raises(ValueRangeError, match="no vision encoder"):
        blind.build(Workload(stage="prefill", context=8192, batch=1), replace(PHYSICAL, images=1))
    with pytest.raises(ModelError, match="12 heads"):
        load(tmp_path / "wrong.json")
