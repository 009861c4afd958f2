"""The client does not import the scheduler: that it offers the same words is held here."""

import copy
import json
import pickle
from enum import StrEnum
from typing import Any, get_args

import pytest

from functions.api.schedules.standing import PutKind
from functions.domain.jobs.job import Delivery, Precision
from functions.domain.jobs.overlap import Overlap
from functions.domain.jobs.retry import Strategy
from functions.domain.operations.operation import OperationKind, OperationState
from functions.domain.schedules.rules import Fold, Gap
from functions.domain.schedules.schedule import Misfire, Roll, WindowMode
from functions.domain.stage.health import HealthStatus
from functions.domain.targets.flows import FlowScope
from functions.domain.targets.options import Method
from functions.domain.wheel import Ring
from tests.api_server import Answer, ApiServer
from tests.command_line import run
from tickwheel.client import flows, jobs, schedule_parts, schedules, words
from tickwheel.errors import InvalidJob


@pytest.mark.parametrize(
    ("offered", "known"),
    [
        (words.HealthStatus, HealthStatus),
        (flows.Scope, FlowScope),
        (jobs.DeliveryText, Delivery),
        (jobs.Method, Method),
        (jobs.Precision, Precision),
        (words.Ring, Ring),
        (jobs.Strategy, Strategy),
        (words.Action, OperationKind),
        (words.OperationState, OperationState),
        (words.ScheduleChange, PutKind),
        (schedule_parts.Roll, Roll),
        (schedules.Fold, Fold),
        (schedules.Gap, Gap),
        (schedules.Misfire, Misfire),
        (schedules.Overlap, Overlap),
        (schedules.WindowMode, WindowMode),
    ],
)
def test_the_client_offers_the_words_that_the_scheduler_takes(offered: Any, known: type[StrEnum]):
    assert list(get_args(offered) or offered) == [word.value for word in known]


@pytest.mark.parametrize(("text", "word"), [(jobs.PriorityText, words.Priority), (jobs.DeliveryText, words.Delivery)])
def test_what_may_be_said_as_a_text_is_what_there_is_a_word_for(text: Any, word: type[words.Word]):
    assert get_args(text) == tuple(word)


def test_a_word_is_its_text() -> None:
    state = words.JobState("succeeded")

    assert state is words.JobState.SUCCEEDED
    assert state == "succeeded"
    assert state in {"succeeded", "failed"}
    assert f"{state} {state!s}" == "succeeded succeeded"
    assert json.dumps({state: state}) == '{"succeeded": "succeeded"}'
    assert copy.deepcopy(state) is pickle.loads(pickle.dumps(state)) is state


def test_a_word_of_a_newer_scheduler_is_read_as_it_is() -> None:
    body = {"id": "x", "tenant": "acme", "state": "levitating", "due_at": "2030-01-31T09:00:00Z", "priority": "utmost"}

    job = jobs.Job.from_json(body)

    assert isinstance(job.state, words.JobState)
    assert job.state == "levitating"
    assert (job.state.value, f"{job.state}", json.dumps(job.state)) == ("levitating", "levitating", '"levitating"')
    assert not job.state.is_known
    assert job.state not in list(words.JobState)
    assert copy.deepcopy(job) == pickle.loads(pickle.dumps(job)) == job
    assert words.JobState.FAILED.is_known


@pytest.mark.parametrize("value", [7, True, ["running"], {"state": "running"}])
def test_what_is_no_word_at_all_is_not_taken_for_one(value: Any) -> None:
    with pytest.raises(ValueError, match="is not a valid JobState"):
        jobs.Job.from_json({"id": "x", "tenant": "a", "state": value, "due_at": "2030-01-31T09:00:00Z"})


def test_an_answer_with_a_word_that_is_new_goes_through_the_command() -> None:
    body = {"id": "j1~acme~x", "tenant": "acme", "state": "levitating", "due_at": "2030-01-31T09:00:00Z"}
    with ApiServer(Answer(200, body), Answer(200, body)) as server:
        assert "levitating" in run("get", "j1~acme~x", server=server).stdout
        assert json.loads(run("get", "j1~acme~x", "--json", server=server).stdout)["state"] == "levitating"


def test_a_word_may_be_said_as_it_was_answered() -> None:
    job = jobs.NewJob("handler:echo", tenant="acme", priority=words.Priority.HIGH, delivery=words.Delivery.AT_MOST_ONCE)

    assert json.loads(json.dumps(job.as_json()))["priority"] == "high"
    with pytest.raises(InvalidJob, match="priority: is one of critical, high, normal, low"):
        jobs.NewJob("handler:echo", tenant="acme", priority=words.Priority("utmost"))
