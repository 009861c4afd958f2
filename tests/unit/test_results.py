"""What is kept of results, whatever targets answer."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.domain.jobs.results import WHOLE_LIMIT, KeptResult, beginning, beginning_of, is_short, within_limit
from functions.domain.targets.http_answers import RESULT_LIMIT, result_of

EMOJI = "\U0001f600"
ENDLESS = [
    json.dumps({"n": list(range(100_000))}).encode(),
    b"[" * 300_000,
    b"9" * 300_000,
    (EMOJI * 100_000).encode(),
    b"\x00" * 300_000,
    b'"' * 300_000,
    b"\xff" * 300_000,
]


@pytest.mark.parametrize("body", ENDLESS)
@pytest.mark.parametrize("size", [300, RESULT_LIMIT, WHOLE_LIMIT])
def test_an_answer_that_does_not_fit_is_cut_as_late_as_can_be(body: bytes, size: int):
    result = beginning(result_of(200, body, is_whole=True), size=size)
    answer = json.loads(result)

    assert size - 12 < len(result.encode()) <= size
    assert (answer["status"], answer["truncated"]) == (200, True)
    kept = answer["body"]
    # JSON was read and written again: without spaces.
    assert body.decode(errors="replace").replace(" ", "").startswith(kept)


@given(st.integers(100, 999), st.binary(max_size=2_000) | st.text(max_size=2_000).map(str.encode), st.booleans())
def test_the_row_of_every_answer_has_short_json_that_says_its_status(status: int, body: bytes, is_whole: bool):
    result = result_of(status, body, is_whole=is_whole)
    kept = KeptResult(result) if is_short(result) else beginning_of(result)

    assert len(kept.text.encode()) + len(kept.pointer) <= RESULT_LIMIT
    assert json.loads(kept.text)["status"] == status
    assert json.loads(result)["status"] == status


@given(
    st.text(max_size=1_000).map(lambda text: json.dumps(text, ensure_ascii=False).encode("utf-8", "ignore").decode())
)
def test_any_json_has_a_beginning_that_is_json(text: str):
    cut = beginning(text, size=100)

    assert len(cut.encode()) <= 100
    assert json.loads(cut)["truncated"] is True


def test_what_is_no_answer_begins_with_its_own_json():
    text = json.dumps({"status": "ok", "rows": ["x" * 500]})

    cut = json.loads(beginning(text, size=80))

    assert cut.keys() == {"body", "truncated"}
    assert text.startswith(cut["body"])
    assert cut["body"].startswith('{"status": "ok", "rows": ["x')


def test_a_result_of_256_kb_is_kept_whole_and_one_of_a_byte_more_is_cut():
    text = json.dumps("x" * (WHOLE_LIMIT - 2))
    more = json.dumps("x" * (WHOLE_LIMIT - 1))

    assert within_limit(text) == text
    assert len(within_limit(more)) <= WHOLE_LIMIT
    assert json.loads(within_limit(more))["truncated"] is True


def test_bytes_count_and_not_characters():
    assert is_short("x" * RESULT_LIMIT)
    assert not is_short("é" * (RESULT_LIMIT // 2) + "x")
    assert within_limit(json.dumps("é" * (WHOLE_LIMIT // 2), ensure_ascii=False)) != json.dumps(
        "é" * (WHOLE_LIMIT // 2)
    )


@pytest.mark.parametrize("value", ["half \ud800", {"n": [1, "é"]}, "x" * 500])
def test_a_long_answer_can_be_stored_whatever_it_says(value: Any):
    body = json.dumps([value, "y" * 500]).encode()

    result = result_of(200, body, is_whole=True)

    assert json.loads(result.encode()) == {"status": 200, "body": [value, "y" * 500]}


def test_a_pointer_says_how_large_the_result_is():
    whole = json.dumps("é" * 1_000, ensure_ascii=False)

    assert beginning_of(whole).size == len(whole.encode()) == 2_002
    assert KeptResult("1").size == 0


def test_different_results_have_different_pointers():
    assert beginning_of("1" * 500).pointer != beginning_of("2" * 500).pointer
    assert beginning_of("1" * 500) == beginning_of("1" * 500)
