import pytest

from functions.adapters.targets.allowed import AllowedCaller
from functions.domain.instants import SECOND
from functions.domain.targets.options import USUAL
from functions.domain.targets.targets import AllowedTargets
from functions.ports.targets import Failed, Outcome, Succeeded
from testkit.builders import an_invocation
from testkit.fakes import FakeClock, RecordingTargets

INVOCATION = an_invocation()


@pytest.fixture
def targets() -> RecordingTargets:
    return RecordingTargets(FakeClock())


def test_an_allowed_target_is_called(targets: RecordingTargets):
    assert call(targets, "https://a.example.com/hook") == Succeeded()

    ((_, target, payload, invocation),) = targets.effects
    assert (target, payload, invocation) == ("https://a.example.com/hook", "7", INVOCATION)


def test_a_target_that_is_not_allowed_any_more_is_not_called_and_fails_for_good(targets: RecordingTargets):
    outcome = call(targets, "https://example.org/hook")

    assert isinstance(outcome, Failed)
    assert (outcome.error_class, outcome.is_permanent, outcome.is_its_own) == ("not_allowed", True, False)
    assert outcome.error.startswith("NotAllowed: the target is not among the targets that this stage allows")
    assert targets.effects == []


def test_a_text_that_is_no_target_any_more_is_not_called_and_fails_for_good(targets: RecordingTargets):
    outcome = call(targets, "https://evil.example\\.example.com")

    assert isinstance(outcome, Failed)
    assert (outcome.error_class, outcome.is_permanent) == ("invalid", True)
    assert targets.effects == []


def call(targets: RecordingTargets, target: str) -> Outcome:
    caller = AllowedCaller(targets, allowed=AllowedTargets(("https://*.example.com",)))
    return caller.call(target, "7", INVOCATION, options=USUAL, timeout=10 * SECOND)
