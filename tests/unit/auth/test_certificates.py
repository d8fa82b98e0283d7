"""Whose a client certificate is: names, patterns, and the first rule that matches."""

import fnmatch
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.auth.certificates import MAX_NAME, MAX_NAMES, CertificateRule, check_rule
from fila.auth.keys import new_key
from fila.auth.patterns import fits
from fila.auth.records import Assignment, Principal, read, write
from fila.auth.registry import MAX_RULES, Put, Registry, Remove

NOW = 1_000


def rule(field, pattern, principal="team", order=1):
    return CertificateRule(f"{principal}-{order}", field, pattern, principal, order, NOW)


def known(*rules):
    """One admin with a key, and these rules."""
    registry = Registry()
    key, _ = new_key("root", NOW)
    registry.apply([Put(Principal("root", (Assignment("admin"),), NOW)), Put(key)])
    for name in ("team", "other"):
        registry.apply([Put(Principal(name, (), NOW))])
    for each in rules:
        registry.check([Put(each)], NOW)
        registry.apply([Put(each)])
    return registry


@pytest.mark.parametrize(
    "field, pattern, name, matches",
    [
        ("cn", "billing", "billing", True),
        ("cn", "billing", "Billing", False),
        ("cn", "billing", "billing.eu", False),
        ("cn", "billing-*", "billing-7.eu/x", True),
        ("cn", "*", "anybody, really", True),
        ("dns", "*.acme.example", "billing.acme.example", True),
        ("dns", "*.acme.example", "BILLING.Acme.Example", True),
        ("dns", "*.acme.example", "a.b.acme.example", False),
        ("dns", "*.acme.example", "acme.example", False),
        ("dns", "billing.**", "billing.eu.example", True),
        ("uri", "spiffe://acme/ns/*/sa/billing", "spiffe://acme/ns/prod/sa/billing", True),
        ("uri", "spiffe://acme/ns/*/sa/billing", "spiffe://acme/ns/prod/x/sa/billing", False),
        ("uri", "spiffe://acme/*", "spiffe://acme.evil/x", False),
        ("uri", "spiffe://acme/**", "spiffe://acme/ns/prod", True),
        ("uri", "spiffe://acme/**", "spiffe://acme", False),
        ("uri", "spiffe://acme/**", "spiffe://acme-evil/ns", False),
        ("uri", "spiffe://acme/billing", "SPIFFE://acme/billing", False),
        ("email", "*@acme.example", "ann@acme.example", True),
        ("email", "*@acme.example", "ann@evil@acme.example", False),
        ("email", "*@acme.example", "ann@acme.example.evil", False),
        ("dn", "CN=billing,O=Acme", "CN=billing,O=Acme", True),
        ("dn", "cn=billing, o=Acme", "CN=billing,O=Acme", True),
        ("dn", "CN=billing,O=Acme", "CN=billing,O=ACME", False),
        ("dn", "CN=*,OU=payments,O=Acme", "CN=billing,OU=payments,O=Acme", True),
        ("dn", "CN=*,O=Acme", "CN=billing,OU=payments,O=Acme", False),
        ("dn", "CN=*,O=Acme", "CN=x\\,O=Acme", False),
        ("dn", "CN=*,O=Acme", "CN=x\\\\,O=Acme", True),
        ("dn", "CN=billing,**", "CN=billing,OU=payments,O=Acme", True),
        ("dn", "CN=*", "CN=Doe\\, John", True),
    ],
)
def test_what_a_pattern_matches(field, pattern, name, matches):
    check_rule(rule(field, pattern))
    assert rule(field, pattern).matches([(field, name)]) is matches


def test_a_name_of_another_field_does_not_match():
    others = [(field, "billing") for field in ("dns", "uri", "email", "dn")]
    assert not rule("cn", "billing").matches(others)
    assert rule("cn", "billing").matches([*others, ("cn", "billing")])


@pytest.mark.parametrize(
    "field, pattern",
    [
        ("ip", "10.0.0.1"),
        ("", "x"),
        ("cn", ""),
        ("cn", "x" * (MAX_NAME + 1)),
        ("cn", "a\nb"),
        ("cn", "a\0"),
        ("cn", "**"),
        ("uri", "**"),
        ("uri", "spiffe://**/x"),
        ("uri", "spiffe://acme/x**"),
        ("uri", "spiffe://acme/***"),
        ("dn", "**,O=Acme"),
    ],
)
def test_rules_that_make_no_sense_are_refused(field, pattern):
    with pytest.raises(ValueError):
        known(rule(field, pattern))


@given(st.text("ab*", max_size=12), st.text("ab", max_size=12))
def test_a_star_matches_as_in_a_shell(pattern, text):
    assert fits(pattern, text) is (re.fullmatch(fnmatch.translate(pattern), text) is not None)


def test_no_pattern_takes_long():
    """With a regular expression this would take longer than the universe has."""
    assert not fits("*a" * 250 + "b", "a" * MAX_NAME)


def test_the_first_rule_decides():
    names = (("cn", "billing"), ("uri", "spiffe://acme/billing"))
    registry = known(rule("cn", "*", order=2), rule("uri", "spiffe://acme/*", "other", order=1))
    assert registry.rule_of(names).principal == "other"
    registry.apply([Put(rule("cn", "billing", "team", order=0))])
    assert registry.rule_of(names).principal == "team"
    registry.apply([Remove(CertificateRule, "team-0"), Remove(CertificateRule, "other-1")])
    assert registry.rule_of(names).id == "team-2"
    assert registry.rule_of((("uri", "spiffe://evil/x"),)) is None


@pytest.mark.parametrize(
    "names",
    [
        (("cn", "billing"),) + (("dns", "x"),) * MAX_NAMES,
        (("cn", "billing"), ("dns", "x" * (MAX_NAME + 1))),
        (("cn", "billing"), ("uri", "a\0b")),
        (("cn", "billing"), ("uri", "a\u202eb")),
        (),
    ],
)
def test_a_certificate_with_too_many_or_odd_names_is_nobody(names):
    assert known(rule("cn", "*")).rule_of(names) is None


def test_rules_need_a_key_that_may_administer():
    registry = Registry()
    registry.apply([Put(Principal("team", (), NOW))])
    with pytest.raises(PermissionError):
        registry.check([Put(rule("cn", "x"))], NOW)


def test_a_rule_needs_its_principal():
    registry = known(rule("cn", "x"))
    with pytest.raises(ValueError, match="does not exist"):
        registry.check([Put(rule("cn", "x", "nobody"))], NOW)
    with pytest.raises(ValueError, match="does not exist"):
        registry.check([Remove(Principal, "team")], NOW)


def test_there_are_not_too_many_rules():
    registry = known()
    registry.apply([Put(replace(rule("cn", "x"), id=str(number))) for number in range(MAX_RULES)])
    with pytest.raises(ValueError, match="limit"):
        registry.check([Put(rule("cn", "x"))], NOW)


def test_a_rule_is_read_as_it_was_written():
    each = rule("dn", 'CN="*",O=Acme')
    assert read("certificate", each.id, write(each)) == each
