"""Options that change what is taken for granted: what requests are like, and single switches of a profile."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin, get_type_hints

import click

from rooflang.cli.types import Amount, Count
from rooflang.errors import UnknownNameError, ValueRangeError

if TYPE_CHECKING:
    from rooflang.assumptions import Assumptions

#: Largest histogram file that is read: a number for each of some thousand experts.
_LARGEST_BYTES = 2**20

_SWITCH = {"on": True, "off": False}

#: In the order of the help text.
OPTIONS = (
    click.option(
        "--draft-tokens",
        type=Count(),
        help="Speculative decoding: tokens that a step drafts with the model's MTP layers, for the next one to check.",
    ),
    click.option(
        "--accepted-tokens",
        type=Amount(),
        help="With it: tokens that a step gains on average, the one that the check itself makes included: 1.8.",
    ),
    click.option(
        "--expert-zipf",
        type=Amount(),
        help="Skewed experts: exponent s of their popularity 1/iˢ.  [default: all alike]",
    ),
    click.option(
        "--expert-histogram",
        metavar="FILE",
        help="Skewed experts: a file with how often each one is chosen, by number, spaces or commas between.",
    ),
    click.option("--images", type=Count(), help="Images in each prompt, for the model's vision encoder."),
    click.option("--image-tokens", type=Count(), help="Tokens that an image takes.  [default: 1024]"),
    click.option(
        "--assume",
        multiple=True,
        metavar="NAME=VALUE",
        help="Change one assumption of the profile; may be repeated: kv_append=off, routed_dtype=fp8_block.",
    ),
)


def assumed(given: dict[str, Any]) -> str | Assumptions:
    """What is taken for granted, from the options given, which are taken out. A profile that nothing changes stays a
    name. Raises `ValueRangeError`, `UnknownNameError`."""
    profile_name = str(given.pop("assumptions"))
    changes = dict(_switched(text) for text in given.pop("assume"))
    histogram = given.pop("expert_histogram")
    if histogram is not None:
        changes["expert_histogram"] = read_histogram(histogram)
    for name in ("draft_tokens", "accepted_tokens", "expert_zipf", "images", "image_tokens"):
        value = given.pop(name)
        if value is not None:
            changes[name] = value
    if not changes:
        return profile_name
    if "draft_tokens" in changes and "accepted_tokens" not in changes:
        raise ValueRangeError(
            "how many of the drafted tokens are accepted depends on model and text",
            where="--accepted-tokens",
            expected=f"1 to {changes['draft_tokens'] + 1}: tokens that a step gains on average",
        )
    from dataclasses import replace

    from rooflang.assumptions import profile

    return replace(profile(profile_name), **changes)


def _switched(text: str) -> tuple[str, Any]:
    """A field of a profile and its value, from `kv_append=off`."""
    from rooflang.assumptions import Assumptions

    name, _, value = (part.strip() for part in text.partition("="))
    choices: dict[str, dict[str, Any]] = {}
    for field, kind in get_type_hints(Assumptions).items():
        if kind is bool:
            choices[field] = _SWITCH
        elif get_origin(kind) is Literal:
            choices[field] = {each: each for each in get_args(kind)}
    if name not in choices:
        raise UnknownNameError("assumption", name, choices, where="--assume")
    if value.lower() not in choices[name]:
        raise UnknownNameError(f"value of {name}", value, choices[name], where="--assume")
    return name, choices[name][value.lower()]


def read_histogram(file: str) -> tuple[float, ...]:
    """The numbers in a file. Raises `ValueRangeError`."""
    where = "--expert-histogram"
    try:
        if Path(file).stat().st_size > _LARGEST_BYTES:
            raise ValueRangeError(f"{file} is larger than {_LARGEST_BYTES:,} bytes", where=where)
        text = Path(file).read_text(encoding="utf-8-sig")
        return tuple(float(each) for each in text.replace(",", " ").split())
    except (OSError, ValueError) as error:
        raise ValueRangeError(
            f"{file}: {getattr(error, 'strerror', None) or error}", where=where, expected="a file of numbers"
        ) from error
