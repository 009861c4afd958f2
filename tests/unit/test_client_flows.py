"""Flows as programs and the command line name them."""

import pytest

from tests.command_line import assert_wrong_usage
from tickwheel.client.flows import Flow
from tickwheel.errors import InvalidJob


def test_every_mistake_of_a_flow_is_named_at_once() -> None:
    with pytest.raises(InvalidJob) as refused:
        Flow("", rate="", burst=True, concurrency=1.5)  # type: ignore[arg-type]

    assert [problem.field for problem in refused.value.problems] == [
        *("flow.key", "flow.rate", "flow.burst", "flow.concurrency")
    ]


@pytest.mark.parametrize(
    ("text", "flow"),
    [
        ("stripe", Flow("stripe")),
        ("a:b.c", Flow("a:b.c")),
        ("stripe,rate=60/min", Flow("stripe", rate="60/min")),
        ("stripe,concurrency=5,burst=10,rate=60/min", Flow("stripe", rate="60/min", burst=10, concurrency=5)),
        ("smtp,scope=stage", Flow("smtp", scope="stage")),
    ],
)
def test_a_flow_is_read_from_one_text(text: str, flow: Flow) -> None:
    assert Flow.parse(text) == flow


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "key: is required"),
        ("stripe,60/min", "is not a flow: write stripe, or stripe,rate=60/min"),
        ("stripe,limit=5", "is not a flow: write stripe, or stripe,rate=60/min"),
        ("stripe,concurrency=many", "'many' is not a whole number"),
        ("stripe,burst=-1", "'-1' is not a whole number"),
        ("stripe,scope=world", "scope: is one of tenant, stage"),
    ],
)
def test_a_text_that_is_no_flow_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Flow.parse(text)


def test_the_command_refuses_an_option_that_is_no_flow() -> None:
    assert_wrong_usage("submit", "handler:echo", "--tenant", "acme", "--flow", "stripe,60/min", said="is not a flow")
