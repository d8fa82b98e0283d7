"""Benchmarks that share a page."""

from benchmarks import sections


def test_each_replaces_its_own_section_and_leaves_the_rest(tmp_path):
    page = tmp_path / "page.md"
    sections.replace(page, "a", "alpha")
    sections.replace(page, "b", "beta")
    page.write_text(page.read_text() + "\nby hand\n")
    sections.replace(page, "a", "gamma")
    text = page.read_text()
    assert "alpha" not in text
    assert text.index("# Benchmarks on Spark") < text.index("gamma") < text.index("beta") < text.index("by hand")
    sections.replace(page, "a", "gamma")
    assert page.read_text() == text
