"""A deployment to the local cloud, told as steps: each with its seconds."""

import re
from collections.abc import Callable

from rich.text import Text

from tickwheel.demo.narrator import Narrator

_STEPS = {
    "installing the CDK CLI, once": "Install the CDK CLI",
    "starting the local cloud": "Start the local cloud",
    "bootstrapping the local account": "cdk bootstrap",
    "deploying the stacks": "cdk deploy",
}
_RESOURCE = re.compile(r"(?P<stack>\S+) \| +(?P<count>\d+/\d+) \|.*\| (?P<kind>AWS::\S+)")


def following(narrator: Narrator) -> Callable[[str], None]:
    """Reads the progress of a deployment for its steps and its resources; the rest is for whoever looks for a fault."""

    def tell(line: str) -> None:
        if line in _STEPS:
            narrator.begin(_STEPS[line])
        elif line.startswith("the local cloud already runs"):
            narrator.show([Text(line)])
        elif line.startswith("Bundling asset"):
            narrator.tell("bundling the layer")
        elif resource := _RESOURCE.search(line):
            narrator.tell("{stack} {count} {kind}".format(**resource.groupdict()))

    return tell
