"""Carries out what CloudFormation asks for: resources of Tickwheel in users' stacks."""

from __future__ import annotations

from functions.runtime import startup  # isort: skip

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from functions.adapters.operators_api import OperatorsApi, answer_cloudformation
from functions.domain.faults import fault_of
from functions.resources.provide import Asked, Provided, physical_id_of, provide
from functions.runtime.observability import PowertoolsJournal, logger
from functions.runtime.settings import ResourcesSettings
from functions.runtime.uncaught import without_texts

settings = ResourcesSettings.from_environment()
journal = PowertoolsJournal()

_TO_ANSWER_SECONDS = 10
"""What is kept to tell CloudFormation, which else waits for an hour or what the template says."""

_MOST_OF_A_REASON = 1_000
"""Of 4 KB that an answer may have: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-responses.html"""


@logger.inject_lambda_context
@without_texts
def handler(event: dict[str, Any], context: LambdaContext) -> None:
    """Entry point of the Lambda function. Whatever happens, CloudFormation is answered."""
    asked = Asked.read(event)
    provided = _provide(asked, context)
    what = f"{asked.what} {asked.kind}"
    answer: dict[str, Any] = {"Status": "SUCCESS", "PhysicalResourceId": provided.physical_id}
    if provided.reason:
        journal.event("resource_refused", what=what, resource=provided.physical_id)
        answer |= {"Status": "FAILED", "Reason": provided.reason[:_MOST_OF_A_REASON]}
    else:
        journal.event("resource_provided", what=what, resource=provided.physical_id)
        answer["Data"] = dict(provided.attributes)
    answer_cloudformation(event, answer)


def _provide(asked: Asked, context: LambdaContext) -> Provided:
    api = OperatorsApi(
        endpoint=settings.API_ENDPOINT,
        region=settings.AWS_REGION,
        role=settings.OPERATOR_ROLE,
        left=lambda: context.get_remaining_time_in_millis() / 1_000 - _TO_ANSWER_SECONDS,
    )
    try:
        return provide(asked, api)
    except Exception as error:  # noqa: BLE001  a stack that nobody answers hangs for as long as it may
        return Provided(physical_id=physical_id_of(asked), reason=f"Tickwheel has failed: {fault_of(error)}")


startup.is_over()
