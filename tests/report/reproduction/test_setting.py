"""The scope of the evaluation: what is in it, and how it is called."""

from __future__ import annotations

from rooflang.report.reproduction.setting import Scope, Setting


def test_the_whole_evaluation_has_every_curve_once() -> None:
    settings = list(Scope().settings())
    assert len(settings) == len(set(settings)) == 4 * 2 * 2 * 2 * 4
    assert len({setting.stem for setting in settings}) == len(settings)


def test_a_part_is_not_whole_and_knows_what_it_has() -> None:
    scope = Scope(models=("kimi-k3",), gpus=(8,))
    assert Scope().whole
    assert not scope.whole
    assert scope.has(model="kimi-k3", gpus=8, hardware="h200")
    assert not scope.has(model="glm-5.3")
    assert not scope.has(model="kimi-k3", gpus=64)


def test_a_setting_says_its_command() -> None:
    setting = Setting(model="glm-5.3", stage="decode", context=2**20, hardware="gb300", gpus=64)
    assert setting.command("--pp", "2") == (
        "rooflang optimize glm-5.3 --hardware gb300 --gpus 64 --stage decode --context 1m --pp 2"
    )
    assert str(setting) == "glm-5.3 decode 1m, 64 gb300"
