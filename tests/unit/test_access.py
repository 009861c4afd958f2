"""Who may act for whom: ARNs, patterns of them, and tokens."""

import re

import pytest

from functions.domain.errors import InvalidInput
from functions.domain.tenants.access import (
    Caller,
    caller_by_arn,
    caller_by_token,
    check_pattern,
    is_operator,
    matches_name,
    may_act,
    principal_of,
)
from functions.domain.tenants.plan import MAX_PRINCIPAL_LENGTH

ROLE = "arn:aws:iam::123456789012:role/billing"
SESSION = "arn:aws:sts::123456789012:assumed-role/billing/i-0abc"


def may(caller: Caller, *principals: str, tenant: str = "acme", operators: tuple[str, ...] = ()) -> bool:
    return may_act(caller, tenant, principals=principals, operators=operators)


@pytest.mark.parametrize(
    ("arn", "principal"),
    [
        (SESSION, ROLE),
        ("arn:aws-cn:sts::123456789012:assumed-role/a+=,.@_-b/me@x", "arn:aws-cn:iam::123456789012:role/a+=,.@_-b"),
        ("arn:aws:iam::123456789012:user/ann", "arn:aws:iam::123456789012:user/ann"),
        ("arn:aws:iam::123456789012:user/team/eu/ann", "arn:aws:iam::123456789012:user/ann"),
        ("arn:aws:iam::123456789012:root", "None"),
        ("arn:aws:sts::123456789012:federated-user/ann", "None"),
        ("arn:aws:sts::123456789012:assumed-role/billing", "None"),
        ("arn:aws:sts::123456789012:assumed-role/a/b/c/" + "d" * 65, "None"),
        (ROLE, "None"),
        ("unknown", "None"),
        ("", "None"),
        (f"x{SESSION}", "None"),
        (f"{SESSION}\n", "None"),
        (f"{SESSION}/x", "None"),
    ],
)
def test_a_signature_names_the_role_or_the_user_behind_it(arn: str, principal: str):
    assert str(principal_of(arn)) == principal


@pytest.mark.parametrize(
    ("pattern", "is_allowed"),
    [
        (ROLE, True),
        ("arn:aws:iam::123456789012:role/team/eu/billing", True),
        ("arn:aws:iam::123456789012:role/bill*", True),
        ("arn:aws:iam::123456789012:role/*", True),
        ("*", True),
        ("arn:aws:iam::123456789012:role/Billing", False),
        ("arn:aws:iam::123456789012:role/billing2", False),
        ("arn:aws:iam::123456789012:role/illing", False),
        ("arn:aws:iam::123456789012:user/billing", False),
        ("arn:aws:iam::210987654321:role/billing", False),
        ("arn:aws-cn:iam::123456789012:role/billing", False),
    ],
)
def test_a_role_acts_for_a_tenant_whose_patterns_have_its_name(pattern: str, is_allowed: bool):
    assert check_pattern(pattern) == pattern
    assert may(caller_by_arn(SESSION), "arn:aws:iam::123456789012:user/else", pattern) is is_allowed


def test_a_tenant_without_patterns_is_its_operators_alone():
    assert not may(caller_by_arn(SESSION))
    assert may(caller_by_arn(SESSION), operators=(ROLE,))


def test_an_operator_acts_for_everybody():
    assert is_operator(caller_by_arn(SESSION), (ROLE,))
    assert not is_operator(caller_by_arn(SESSION.replace("billing", "other")), (ROLE,))
    assert may(caller_by_arn("arn:aws:iam::123456789012:user/ann"), operators=("*",))


def test_who_is_no_role_and_no_user_is_matched_by_the_pattern_of_everybody_alone():
    root = caller_by_arn("arn:aws:iam::123456789012:root")

    assert may(root, "*")
    assert not may(root, "arn:aws:iam::123456789012:role/*", "arn:aws:iam::123456789012:user/*")


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "billing",
        "**",
        "arn:*",
        "arn:aws:iam::*:role/billing",
        "arn:aws:iam::12345:role/billing",
        "arn:aws:iam::123456789012:role/",
        "arn:aws:iam::123456789012:group/billing",
        "arn:aws:iam::123456789012:root",
        "arn:*:iam::123456789012:role/billing",
        SESSION,
        f"{ROLE}\n",
        f"{ROLE} ",
        "arn:aws:iam::123456789012:role/bülling",
        "arn:aws:iam::123456789012:role/" + "a" * 65,
        "arn:aws:iam::123456789012:role/" + "a/" * (MAX_PRINCIPAL_LENGTH // 2) + "b",
    ],
)
def test_a_pattern_that_is_none_is_refused(pattern: str):
    with pytest.raises(InvalidInput, match=re.escape(f"{pattern[:80]!r} is no pattern of a role or a user")):
        check_pattern(pattern)


def test_a_path_before_a_star_would_allow_roles_elsewhere_and_is_refused():
    with pytest.raises(InvalidInput, match=r"has a path before a \*: .* leave the path out"):
        check_pattern("arn:aws:iam::123456789012:role/team/*")


@pytest.mark.parametrize(
    ("name", "pattern", "is_match"),
    [
        ("billing", "billing", True),
        ("billing", "*", True),
        ("billing", "**", True),
        ("billing", "b*g", True),
        ("billing", "b*l*g", True),
        ("billing", "*ill*", True),
        ("billing", "*l*l*i*", True),
        ("billing", "*l*l*l*", False),
        ("billing", "b*gg", False),
        ("aba", "ab*ba", False),
        ("abba", "ab*ba", True),
        ("ab", "a*b*b", False),
        ("", "*", True),
        ("", "a*", False),
        ("axbxc", "a*b*c", True),
        ("axc", "a*b*c", False),
        ("a.b", "a?b", False),
    ],
)
def test_a_star_stands_for_any_text(name: str, pattern: str, is_match: bool):
    assert matches_name(name, pattern) is is_match


def test_a_pattern_means_what_a_regular_expression_would_mean():
    names = [a + b + c + d for a in "ab" for b in "ab" for c in ("", "a", "b") for d in ("", "a", "b")]
    patterns = [a + b + c + d for a in "a*" for b in "ab*" for c in ("", "a", "*") for d in ("", "b", "*")]

    for pattern in patterns:
        expected = re.compile(".*".join(map(re.escape, pattern.split("*"))))
        for name in names:
            assert matches_name(name, pattern) is bool(expected.fullmatch(name)), (name, pattern)


def test_a_token_acts_for_the_tenant_that_it_names():
    token = caller_by_token("ann", "acme")

    assert may(token)
    assert not may(token, tenant="Acme")
    assert not may(token, tenant="globex")


def test_a_token_is_never_an_operator_and_no_pattern_names_it():
    token = caller_by_token("ann", "acme")

    assert not is_operator(token, ("*",))
    assert not may(token, "*", tenant="globex", operators=("*",))


@pytest.mark.parametrize(
    "claim", [None, "", "a b", "acme,globex", "[acme globex]", ["acme"], 7, True, "x" * 65, "acme\n"]
)
def test_a_token_that_names_no_tenant_acts_for_nobody(claim: object):
    token = caller_by_token("ann", claim)

    assert token.tenant == ""
    assert not may(token, "*", tenant=str(claim), operators=("*",))
    assert not may(token, "*", tenant="", operators=("*",))
