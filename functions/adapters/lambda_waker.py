"""Wake the executor of operations: a Lambda function of the stage."""

from __future__ import annotations

from typing import Any


class LambdaWaker:
    """Invokes the function, and does not wait for what it does. client: of Lambda."""

    def __init__(self, client: Any, function: str) -> None:
        self._client = client
        self._function = function

    def wake(self) -> None:
        """Raises what the client raises."""
        self._client.invoke(FunctionName=self._function, InvocationType="Event", Payload=b"{}")
