"""The tutorial on Spark, command by command, with Spark programs of its own."""

import pytest

pytest.importorskip("pyspark")

from tests.support.pages import ROOT, follow

PATIENCE_S = 240


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_tutorial_does_what_it_says(tmp_path):
    follow(ROOT / "docs" / "tutorial-spark.md", tmp_path, patience_s=PATIENCE_S)
