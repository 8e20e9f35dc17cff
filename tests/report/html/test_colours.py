"""Colours that mean something are told apart, also with a colour blindness, and stand out from what is behind them.

Matrices for full protanopia, deuteranopia and tritanopia, on linear RGB: Machado, Oliveira and Fernandes, "A
Physiologically-based Model for Simulation of Color Vision Deficiency" (2009), severity 1.0. Distances are ΔE of CIE
1976, of which 2.3 is just noticeable. Contrast is that of WCAG 2.2, whose criterion 1.4.11 asks for 3 : 1.
"""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import combinations

import numpy as np
import pytest

VISION = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
PARTS = ("attention", "ffn", "routing", "head", "other", "network")
BOUNDS = ("compute", "memory", "latency", "network")


def schemes() -> dict[str, dict[str, str]]:
    css = files("rooflang.report.html").joinpath("page.css").read_text(encoding="utf-8")
    roots = re.findall(r":root \{(.*?)\}", css, re.S)
    long = [re.sub(r"#([0-9a-f])([0-9a-f])([0-9a-f]);", r"#\1\1\2\2\3\3;", root) for root in roots]
    return dict(zip(("light", "dark", "print"), (dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", root)) for root in long)))


def linear(colour: str) -> np.ndarray:
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def contrast(one: str, other: str) -> float:
    low, high = sorted(float(linear(c) @ [0.2126, 0.7152, 0.0722]) for c in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
@pytest.mark.parametrize("vision", VISION)
def test_parts_and_bounds_are_told_apart(scheme: str, vision: str) -> None:
    colours = schemes()[scheme]
    for names in (PARTS, BOUNDS):
        for one, other in combinations(names, 2):
            seen = [lab(VISION[vision] @ linear(colours[name])) for name in (one, other)]
            assert np.linalg.norm(seen[0] - seen[1]) > 20, (one, other)


@pytest.mark.parametrize("scheme", ["light", "dark", "print"])
def test_contrast(scheme: str) -> None:
    colours = schemes()[scheme]
    assert all(contrast(colours[name], colours["card"]) >= 3 for name in (*PARTS, *BOUNDS, "accent"))
    assert all(contrast(colours[name], colours["card"]) >= 4.5 for name in ("ink", "soft"))
    assert contrast(colours["on"], colours["accent"]) >= 4.5
