"""What the pages say of AWS's own behaviour carries a link to AWS's page: on a page once for each service."""

import re
from pathlib import Path

import pytest

from tests.pages import DOCS, words_of

PAGES = (DOCS.parent / "README.md", *sorted(DOCS.glob("*.md")))

AWS_LINK = re.compile(r"\]\((https://(?:docs\.)?aws\.amazon\.com/[^)\s]+)\)")

WAYS = {
    "API Gateway": ("/apigateway/", "/api-gateway/"),
    "Athena": ("/athena/",),
    "CloudWatch": ("/AmazonCloudWatch", "/cloudwatch/"),
    "DynamoDB": ("/amazondynamodb/", "/dynamodb/", "services-dynamodb"),
    "EventBridge": ("/eventbridge/", "/scheduler/"),
    "Firehose": ("/firehose/",),
    "KMS": ("/kms/",),
    "Lambda": ("/lambda/",),
    "S3": ("/AmazonS3/", "/s3/"),
    "SNS": ("/sns/",),
    "SQS": ("/AWSSimpleQueueService/", "/sqs/", "services-sqs"),
    "X-Ray": ("/xray/", "awsx-ray"),
}
"""By service, what the address of a page about it contains."""

DOES = (
    "accepts|adds|archives|asks|begins|caches|charges|computes|counts|delays|deletes|doubles|drops|invokes|keeps|limits|names|passes"
    "|polls|promises|reads|refuses|rejects|removes|retries|rotates|stops|stores|takes|waits"
)

CLAIM = re.compile(rf"\b({'|'.join(WAYS)}) (?:{DOES})\b")


def claims_of(text: str) -> set[str]:
    """The services of which a page says what they do."""
    return set(CLAIM.findall(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_says_that_a_service_does_has_a_link_to_aws(page: Path) -> None:
    text = words_of(page.read_text())
    links = AWS_LINK.findall(text)
    unlinked = {
        service for service in claims_of(text) if not any(way in link for way in WAYS[service] for link in links)
    }
    assert unlinked == set()


def test_links_lead_to_the_english_pages_of_aws() -> None:
    links = {link for page in PAGES for link in AWS_LINK.findall(page.read_text())}
    assert len(links) > 50
    assert {link for link in links if re.search(r"amazon\.com/[a-z]{2}_[a-z]{2}/|\.md$", link)} == set()
    assert {link for link in links if "//docs." in link and not link.endswith(".html")} == set()


def test_a_claim_is_recognised_by_what_it_says() -> None:
    assert claims_of("DynamoDB removes rows late, and SQS keeps a message; Lambda functions are ours.") == {
        "DynamoDB",
        "SQS",
    }
