"""The page without a browser: well formed, all data there, nothing from elsewhere, names that do no harm."""

from __future__ import annotations

import hashlib
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflang.report.html.page import Origin, in_script, page, write_page
from rooflang.report.html.record import CloseUp
from tests.report.html.conftest import HOSTILE

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Reader(HTMLParser):
    """Checks that elements nest, and keeps their names, attributes and texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.seen if name == tag]


def data_of(html: str) -> Any:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    return json.loads(found)


def test_elements_nest_and_have_names_of_their_own(html: str) -> None:
    reader = Reader(html)
    names = [attributes["id"] for _, attributes in reader.seen if "id" in attributes]
    assert len(names) == len(set(names))
    for tag in ("title", "h1", "main", "noscript", "table"):
        assert reader.all(tag), tag
    assert reader.all("html") == [{"lang": "en"}]


def test_nothing_comes_from_elsewhere(html: str) -> None:
    reader = Reader(html)
    assert not [tag for tag, attributes in reader.seen if {"src", "srcset", "action", "data"} & set(attributes)]
    assert not reader.all("link") and not reader.all("img") and not reader.all("iframe")
    assert all(str(attributes["href"]).startswith("#") for attributes in reader.all("a"))
    assert set(re.findall(r"\b\w+://[^\s\"']+", html)) == {"http://www.w3.org/2000/svg"}  # a name, nothing to load
    for word in ("fetch(", "XMLHttpRequest", "import(", "innerHTML", "eval(", "@import", "url("):
        assert word not in html, word


def test_the_policy_allows_this_script_and_this_style_alone(html: str) -> None:
    reader = Reader(html)
    (policy,) = [str(m["content"]) for m in reader.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    for tag, pattern in (("style", r"<style>(.*?)</style>"), ("script", r"<script>(.*?)</script>")):
        (body,) = re.findall(pattern, html, re.S)
        digest = b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_names_are_text_wherever_they_stand(html: str) -> None:
    reader = Reader(html)
    assert "".join(reader.texts["h1"]) == HOSTILE
    assert HOSTILE in "".join(reader.texts["code"])
    assert HOSTILE in reader.texts["dt"] and HOSTILE in reader.texts["dd"] and HOSTILE in reader.texts["td"]
    assert HOSTILE in json.dumps(data_of(html)["points"][0]["plan"], ensure_ascii=False).encode().decode(
        "unicode_escape"
    )
    assert "<img" not in html


def test_all_data_is_there(html: str, points: list[dict[str, Any]], close: CloseUp, pipeline_close: CloseUp) -> None:
    data = data_of(html)
    assert [p["tok_s_gpu"] for p in data["points"]] == [p["tok_s_gpu"] for p in points]
    assert [p["plan_number"] for p in data["points"]] == [1, 1, 2]
    assert data["chart"] and data["first"] == 0
    for p, found in zip(data["points"], (close, close, pipeline_close)):
        told = p["close"]
        assert [len(block["rows"]) for block in told["blocks"]] == [len(block.rows) for block in found.blocks]
        assert [len(lane["spans"]) for lane in told["lanes"]] == [len(lane.spans) for lane in found.lanes]
        assert [w["change"] for w in told["explanation"]["what_if"]] == [w.change for w in found.explanation.what_if]
        assert sum(held["bytes"] for held in told["held"]) == sum(held.bytes for held in found.held)
    row = data["points"][0]["close"]["blocks"][0]["rows"][3]
    assert [data["words"][n] for n in row[:3]] == ["collective", "down", "all_reduce"]


def test_it_says_how_to_get_it_again(html: str, inputs: Mapping[str, Any]) -> None:
    reader = Reader(html)
    told = dict(zip(reader.texts["dt"], reader.texts["dd"]))
    assert told["hash of the inputs"] == inputs["hash"]
    assert told["RoofLang"] == inputs["version"]
    assert told["seed"] == "0"


def test_a_table_of_all_points_needs_no_script(html: str, points: list[dict[str, Any]]) -> None:
    rows = [attributes for attributes in Reader(html).all("tr") if "data-point" in attributes]
    assert [row["data-point"] for row in rows] == [str(n) for n in range(len(points))]


def test_a_page_is_small(html: str) -> None:
    assert len(html) < 150_000


def test_changed_assumptions_stand_out(inputs: Mapping[str, Any], points: list[dict[str, Any]], close: CloseUp) -> None:
    changed = {**inputs, "changed_assumptions": {"kv_append": False}}
    one = page(changed, points[:1], {0: close}, Origin(command="rooflang simulate x"))
    assert re.search(r'<tr class="changed"><td class="words">kv_append</td><td class="words">off</td>', one)
    assert "1 of them changed" in one
    assert not data_of(one)["chart"]


def test_points_that_were_not_looked_at_are_told_all_the_same(
    inputs: Mapping[str, Any], points: list[dict[str, Any]]
) -> None:
    assert [p["close"] for p in data_of(page(inputs, points, {}, Origin(command="x")))["points"]] == [None] * 3


def test_lanes_beyond_what_can_be_read_are_counted(
    inputs: Mapping[str, Any], points: list[dict[str, Any]], close: CloseUp
) -> None:
    many = replace(close, lanes=close.lanes * 50)
    told = data_of(page(inputs, points[:1], {0: many}, Origin(command="x")))["points"][0]["close"]
    assert (len(told["lanes"]), told["lanes_more"]) == (48, 2)


def test_equal_results_give_equal_files(
    tmp_path: Any, inputs: Mapping[str, Any], points: list[dict[str, Any]], close: CloseUp
) -> None:
    for name in "ab":
        write_page(tmp_path / name, inputs, points, {0: close}, Origin(command="x"), first=1)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert data_of((tmp_path / "a").read_text(encoding="utf-8"))["first"] == 1


@pytest.mark.parametrize("text", ["</script>", "<!--", "]]>", "\u2028", "&lt;", "é"])
def test_json_in_a_script(text: str) -> None:
    assert not set("<>&\u2028") & set(in_script({text: [text]}))
    assert json.loads(in_script({text: [text]})) == {text: [text]}


@settings(max_examples=40)
@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_json_in_a_script_is_the_same_data(data: Any) -> None:
    assert json.loads(in_script(data)) == data
    assert "<" not in in_script(data)
