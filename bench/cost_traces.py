"""How many traces X-Ray keeps, and bills: arithmetic alone.

Of a function that begins its traces Lambda keeps the first of each second, and five percent of the others, which nobody can
change: https://docs.aws.amazon.com/lambda/latest/dg/services-xray.html,
https://docs.aws.amazon.com/xray/latest/devguide/xray-console-sampling.html.
"""

import math


def traces(invocations: float, *, seconds: float, sampled: float) -> float:
    """Of so many invocations of one function, at instants that have nothing to do with each other.

    sampled: the share of those that are not the first of their second.
    """
    firsts = -math.expm1(-invocations / seconds) * seconds
    return firsts + sampled * (invocations - firsts)
