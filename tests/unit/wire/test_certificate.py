"""The names in a certificate as one text that cannot be forged by a value."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fila.wire.certificate import PeerCertificate


def named(*subject):
    return PeerCertificate(subject, (), (), "01", 0.0, "").distinguished_name


def test_the_most_specific_name_comes_first():
    subject = (("countryName", "SE"), ("organizationName", "Acme"), ("commonName", "billing"), ("1.2.3", "x"))
    assert named(*subject) == "1.2.3=x,CN=billing,O=Acme,C=SE"


@pytest.mark.parametrize(
    "value, written",
    [("a,b", "a\\,b"), ("a+b=c", "a\\+b\\=c"), ("a\\", "a\\\\"), (" a ", "\\ a\\ "), ("#a#", "\\#a#"), ('"', '\\"')],
)
def test_what_could_end_a_part_is_escaped(value, written):
    assert named(("commonName", value)) == f"CN={written}"


@given(st.lists(st.tuples(st.sampled_from(["commonName", "organizationName"]), st.text(max_size=20)), max_size=4))
def test_two_subjects_are_never_written_alike(subject):
    """Reading it back gives the subject: so no other has the same text."""
    text, parts = named(*subject), [""]
    escaped = False
    for character in text:
        if character == "," and not escaped:
            parts.append("")
        elif character == "\\" and not escaped:
            escaped = True
            continue
        else:
            parts[-1] += character
        escaped = False
    short = {"commonName": "CN", "organizationName": "O"}
    assert parts == [f"{short[name]}={value}" for name, value in reversed(subject)] or (not subject and parts == [""])
