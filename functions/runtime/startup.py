"""The start of a Lambda function's process, without garbage collection: each collection would walk over all that is imported so far.

A handler imports this before anything else. In a process that is no Lambda function it does nothing.
"""

import gc
import os

_IS_LAMBDA = "AWS_LAMBDA_FUNCTION_NAME" in os.environ
"""https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime"""

if _IS_LAMBDA:
    gc.disable()


def is_over() -> None:
    """Collect from now on, except what is there already: modules and what they are wired to stay for as long as the process."""
    if _IS_LAMBDA:
        gc.freeze()
        gc.enable()
