import aws_cdk as cdk

from functions.domain.targets.targets import OWN_PREFIX
from infra.scheduler import Tickwheel
from infra.stage import Stage
from scripts.synthesis import Templates

NAMED = {"AWS::SQS::Queue": "QueueName", "AWS::Lambda::Function": "FunctionName", "AWS::SNS::Topic": "TopicName"}


def test_queues_functions_and_topics_have_the_prefix_that_no_target_may_have(
    any_stage: Stage, templates: Templates
) -> None:
    tickwheel = Tickwheel(cdk.App(analytics_reporting=False), any_stage.name, stage=any_stage)

    # Without a name of its own a resource is named after its stack.
    assert tickwheel.scheduler.stack_name.startswith(OWN_PREFIX)
    for kind, name in NAMED.items():
        assert [resource for resource in templates.of_type(kind).values() if name in resource["Properties"]] == []
