"""How the local cloud is spoken to: nothing here is a secret, and none of it means anything to AWS."""

from dataclasses import asdict, dataclass

LOCAL_REGION = "us-east-1"
LOCAL_ACCOUNT = "000000000000"
LOCAL_ACCESS_KEY = "test"
LOCAL_SECRET_KEY = "test"  # noqa: S105


@dataclass(frozen=True)
class AwsSettings:
    """What a boto3 or botocore client takes as keyword arguments: `boto3.client("sqs", **settings.as_kwargs())`."""

    endpoint_url: str
    region_name: str = LOCAL_REGION
    aws_access_key_id: str = LOCAL_ACCESS_KEY
    aws_secret_access_key: str = LOCAL_SECRET_KEY

    def as_kwargs(self) -> dict[str, str]:
        """The same as keyword arguments."""
        return asdict(self)

    def as_environment(self) -> dict[str, str]:
        """The same as environment variables, for a child process that must reach nothing but this cloud."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint_url,
            "AWS_REGION": self.region_name,
            "AWS_DEFAULT_REGION": self.region_name,
            "AWS_ACCESS_KEY_ID": self.aws_access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.aws_secret_access_key,
            "AWS_EC2_METADATA_DISABLED": "true",
        }
