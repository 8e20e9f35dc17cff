"""From the fields of a `config.json` to what the decoder is made of: one reader for each `model_type`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rooflang.models.hf.families import deepseek, gemma, glm, gpt_oss, kimi, llama, minimax, qwen
from rooflang.models.hf.fields import Fields
from rooflang.models.hf.records import Decoder

#: Readers by `model_type`. They raise `ModelError` for a field that is missing or wrong.
FAMILIES: Mapping[str, Callable[[Fields], Decoder]] = {
    **llama.READERS,
    **qwen.READERS,
    **gemma.READERS,
    **gpt_oss.READERS,
    **deepseek.READERS,
    **glm.READERS,
    **kimi.READERS,
    **minimax.READERS,
}
