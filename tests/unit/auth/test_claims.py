"""What the claims of a token say."""

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.auth.callers import How
from fila.auth.claims import MAX_VALUES, TokenPolicy, TokenRefused, read_object
from fila.auth.records import Assignment

S = 1_000_000_000
NOW = 1_000 * S
ROLES = {"ops": (Assignment("operator"),), "shop": (Assignment("producer", "shop.**"), Assignment("viewer"))}
POLICY = TokenPolicy("issuer", "fila", roles_claim="groups", roles=ROLES, leeway=5 * S, max_age=3_600 * S)
GOOD = {"iss": "issuer", "aud": "fila", "sub": "alice", "iat": 990, "exp": 1_010}


def caller(policy=POLICY, **changed):
    claims = {name: value for name, value in (GOOD | changed).items() if value is not None}
    return policy.caller(claims, "kid", NOW)


def test_a_token_in_order():
    found = caller(groups=["shop", "ops", "shop", "unheard-of"])
    assert (found.principal, found.how, found.credential) == ("jwt:alice", How.TOKEN, "kid")
    assert set(found.roles) == {*ROLES["ops"], *ROLES["shop"]}
    assert found.expires_at == 1_015 * S


@pytest.mark.parametrize("given, roles", [("ops", 1), ("ops shop", 3), ("", 0), ([], 0), (None, 0)])
def test_a_claim_of_roles_is_a_list_or_a_text_with_spaces(given, roles):
    assert len(caller(groups=given).roles) == roles


@pytest.mark.parametrize("path", ["realm.roles", "https://acme.example/roles"])
def test_the_claim_of_roles_is_a_name_or_a_path(path):
    policy = TokenPolicy("issuer", "fila", roles_claim=path, roles=ROLES)
    claims = GOOD | {"realm": {"roles": ["ops"]}, "https://acme.example/roles": ["ops"]}
    assert policy.caller(claims, "kid", NOW).roles == ROLES["ops"]
    assert policy.caller(GOOD | {"realm": ["roles"]}, "kid", NOW).roles == ()


def test_without_a_claim_of_roles_a_token_brings_none():
    assert TokenPolicy("issuer", "fila", roles=ROLES).caller(GOOD | {"groups": ["ops"]}, "kid", NOW).roles == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"iss": "Issuer"}, {"iss": None}, {"iss": ["issuer"]}, {"aud": "fil"}, {"aud": ["x"]}, {"aud": None},
        {"aud": {}}, {"exp": None}, {"exp": "1010"}, {"exp": 994}, {"exp": -1}, {"exp": 1 << 60}, {"exp": True},
        {"exp": float("inf")}, {"exp": float("nan")}, {"iat": None}, {"iat": 1_006}, {"iat": []}, {"nbf": 1_006},
        {"nbf": "x"}, {"sub": None},
        {"sub": 7}, {"sub": ""}, {"sub": "a b|c"}, {"sub": "x" * 200}, {"groups": 7}, {"groups": [7]},
        {"groups": ["x"] * (MAX_VALUES + 1)},
    ],
)  # fmt: skip
def test_a_claim_that_is_not_in_order_refuses_the_token(changed):
    with pytest.raises(TokenRefused):
        caller(**changed)


def test_the_end_is_the_earlier_of_the_tokens_own_and_of_its_age():
    assert caller(exp=100_000).expires_at == (990 + 3_600 + 5) * S
    assert caller(TokenPolicy("issuer", "fila"), exp=100_000, iat=None).expires_at == 100_000 * S


def test_leeway_counts_at_both_ends():
    assert caller(exp=996)
    assert caller(nbf=1_005, iat=1_005)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)


@given(st.dictionaries(st.sampled_from([*GOOD, "nbf", "groups", "x"]), json_values))
def test_any_claims_are_accepted_or_refused(changed):
    """And the refusal says nothing of their values."""
    marked = {name: f"secret-{value}" if isinstance(value, str) else value for name, value in changed.items()}
    said = ""
    try:
        found = POLICY.caller(GOOD | marked, "kid", NOW)
    except TokenRefused as refused:
        said = str(refused)
    else:
        assert found.principal.startswith("jwt:")
        assert found.expires_at > NOW
    assert "secret-" not in said


@given(st.binary(max_size=100) | st.text(max_size=100).map(str.encode) | json_values.map(json.dumps).map(str.encode))
def test_any_bytes_are_an_object_or_refused(data):
    with suppress(TokenRefused):
        assert isinstance(read_object(data), dict)


@pytest.mark.parametrize(
    "data",
    [b'{"a":1,"a":1}', b'{"x":[{"a":1,"a":2}]}', b"[" * 100_000, b'{"a":' * 50_000, b'{"a":NaN}', b'{"a":-Infinity}',
     b'{"a":' + b"9" * 5_000 + b"}", b"\xff", b"", b"{}x", b"null"],
)  # fmt: skip
def test_json_that_could_be_read_in_two_ways_or_not_at_all_is_refused(data):
    with pytest.raises(TokenRefused):
        read_object(data)
