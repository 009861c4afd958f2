from typing import Any

import pytest

from functions.domain.errors import InvalidJob
from functions.domain.targets.options import (
    MAX_HEADERS,
    RESERVED_HEADERS,
    RESERVED_PREFIXES,
    STATUS_CODES,
    USUAL,
    Method,
    TargetOptions,
    check_header,
)


def test_the_usual_call_is_a_post_that_waits_for_any_success():
    assert TargetOptions() == USUAL
    assert (USUAL.method, USUAL.headers, USUAL.success_codes, USUAL.retry_codes) == (Method.POST, (), (), ())
    assert not USUAL.is_async


@pytest.mark.parametrize("name", ["X-Key", "authorization", "Content-Type", "User-Agent", "!#$%&'*+.^_`|~-9", "x" * 64])
def test_a_header_that_a_job_may_set_is_named_in_lower_case(name: str):
    assert check_header(name, "x") == name.lower()


@pytest.mark.parametrize("value", ["x", "Bearer a.b-c=", "a\tb c", "~", "x" * 512])
def test_a_printable_value_is_taken(value: str):
    assert TargetOptions(headers=(("X-Key", value),)).headers == (("X-Key", value),)


@pytest.mark.parametrize("value", ["", " x", "x ", "\tx", "a\nb", "a\rb", "a\x00b", "\x7f", "é", "x" * 513])
def test_a_value_that_could_break_out_of_its_line_is_refused_by_the_name_of_its_header(value: str):
    with pytest.raises(InvalidJob, match="must have a value of 1 to 512 printable ASCII characters") as refused:
        TargetOptions(headers=(("X-Key", value),))

    assert (refused.value.field, refused.value.value) == ("http.headers", "X-Key")


@pytest.mark.parametrize(
    "name", [*sorted(RESERVED_HEADERS), *(f"{prefix}x" for prefix in RESERVED_PREFIXES), "HOST", "Tickwheel-Fence"]
)
def test_a_header_that_tickwheel_or_the_connection_sets_is_refused(name: str):
    with pytest.raises(InvalidJob, match="sets itself") as refused:
        check_header(name, "x")

    assert refused.value.value == name


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("", "…"),
        ("Authorization: hush", "Authorization…"),
        ("X-Key\n", "X-Key…"),
        ("é", "…"),
        ("x" * 65, "x" * 64 + "…"),
    ],
)
def test_what_is_no_name_is_shown_as_far_as_it_could_be_one(name: str, shown: str):
    with pytest.raises(InvalidJob, match="is not the name of a header") as refused:
        check_header(name, "x")

    assert refused.value.value == shown


def test_a_header_is_set_once_whatever_the_case_of_its_name():
    with pytest.raises(InvalidJob, match="has a header twice"):
        TargetOptions(headers=(("X-Key", "1"), ("x-kEY", "2")))


def test_there_are_at_most_twenty_headers():
    headers = tuple((f"X-{number}", "x") for number in range(MAX_HEADERS + 1))

    assert len(TargetOptions(headers=headers[:-1]).headers) == MAX_HEADERS
    with pytest.raises(InvalidJob, match="has more than 20 headers"):
        TargetOptions(headers=headers)


def test_the_values_of_headers_are_in_no_text_and_in_no_refusal():
    options = TargetOptions(headers=(("X-Key", "hush"),))
    with pytest.raises(InvalidJob) as refused:
        TargetOptions(headers=(("X-Key", "hush\n"),))

    assert "hush" not in repr(options) + str(options) + repr(refused.value) + str(refused.value.value)


@pytest.mark.parametrize("code", [STATUS_CODES[0], STATUS_CODES[-1]])
def test_a_status_from_200_to_599_may_mean_success_or_another_attempt(code: int):
    assert TargetOptions(success_codes=(code,)).success_codes == (code,)
    assert TargetOptions(success_codes=(201,), retry_codes=(code,)).retry_codes == (code,)


@pytest.mark.parametrize("code", [199, 600, 0, -1])
@pytest.mark.parametrize(("field", "name"), [("success_codes", "http.success"), ("retry_codes", "http.retry_on")])
def test_any_other_number_is_no_status(field: str, name: str, code: int):
    options: dict[str, Any] = {field: (code,)}

    with pytest.raises(InvalidJob, match="must be HTTP statuses from 200 to 599") as refused:
        TargetOptions(**options)

    assert (refused.value.field, refused.value.value) == (name, code)


@pytest.mark.parametrize(("success", "retry_on", "both"), [((200, 404), (202, 404), 404), ((), (400, 204), 204)])
def test_a_status_means_one_thing(success: tuple[int, ...], retry_on: tuple[int, ...], both: int):
    with pytest.raises(InvalidJob, match="is a success: leave it out, or name the successes without it") as refused:
        TargetOptions(success_codes=success, retry_codes=retry_on)

    assert (refused.value.field, refused.value.value) == ("http.retry_on", both)
