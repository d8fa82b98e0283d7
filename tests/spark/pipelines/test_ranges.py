"""Of the owners of posts a run reads those near the posts that it names, by what Spark's scans say of themselves."""

import random

import pytest

pytest.importorskip("pyspark")

from fila.pipelines.lake.contract import POSTS
from fila.pipelines.lake.lake import Lake
from fila.pipelines.reconcile import ownership, ranges

DAYS, ROWS = 6, 6_000
PLATFORMS = ("clipshare", "vidbox")
COLUMNS = "platform string, post_id string"


def named(spark, posts):
    return spark.createDataFrame(list(posts), COLUMNS)


def growing(number, platform="clipshare"):
    """Ids as platforms give them: mostly time, and some bits that nobody can foresee."""
    return platform, str(10**18 + number * 2**32 + random.Random(number).getrandbits(22))


@pytest.fixture(scope="module")
def lake(spark, tmp_path_factory):
    """What a run a day has left of the owners of posts, on two platforms; the first day as runs left it before."""
    lake = Lake(spark, str(tmp_path_factory.mktemp("lake")))
    for day in range(DAYS):
        numbers = range(day * ROWS, (day + 1) * ROWS)
        rows = [(*growing(number, PLATFORMS[number % 2]), "ada", day + 1) for number in numbers]
        random.Random(day).shuffle(rows)
        frame = spark.createDataFrame(rows, f"{COLUMNS}, affiliate_id string, run bigint").coalesce(1)
        if day == 0:
            frame.write.format("delta").save(lake.path(POSTS))
        else:
            lake.append(POSTS, frame, day + 1)
    return lake


def scanned(frame):
    """Files and rows that a query has read of a table, and its own rows."""
    rows = frame.collect()
    found = []

    def visit(node):
        if node.nodeName().startswith("Scan parquet"):
            metrics = node.metrics()
            found.append((metrics.apply("numFiles").value(), metrics.apply("numOutputRows").value()))
        for at in range(node.children().size()):
            visit(node.children().apply(at))

    visit(frame._jdf.queryExecution().executedPlan())
    assert len(found) <= 1
    return *(found or [(0, 0)])[0], rows


def owners(lake, posts):
    return scanned(ownership.of_posts(lake.read(POSTS), named(lake.spark, posts).coalesce(1)))


def test_of_new_posts_with_growing_ids_no_owner_is_read(lake):
    files, read, rows = owners(lake, [growing(DAYS * ROWS + n) for n in range(1_000)])
    assert (files, read, rows) == (0, 0, [])


def test_of_older_posts_among_them_only_the_pages_are_read_that_they_are_in(lake):
    """Also when they are on another platform."""
    old = [growing(n, PLATFORMS[n % 2]) for n in (2 * ROWS, 2 * ROWS + 1, 4 * ROWS + 5_000)]
    files, read, rows = owners(lake, old + [growing(DAYS * ROWS + n) for n in range(1_000)])
    assert {(row.platform, row.post_id) for row in rows} == set(old)
    assert files == 2
    assert read <= 3 * 2_000


def test_whatever_the_posts_all_of_their_owners_are_found(lake):
    """Some thousand old posts are more than there are ranges, and more than gaps are looked for between."""
    every = [growing(n, PLATFORMS[n % 2]) for n in range(0, DAYS * ROWS, 3)]
    _, read, rows = owners(lake, every)
    assert {(row.platform, row.post_id) for row in rows} == set(every)
    assert read <= DAYS * ROWS
    assert owners(lake, [("elsewhere", "x")])[1:] == (0, [])
    assert owners(lake, []) == (0, 0, [])


def test_many_platforms_are_not_told_apart(lake):
    posts = [(f"platform-{n}", "x") for n in range(3 * ranges.MOST)] + [growing(0)]
    assert [row.platform for row in owners(lake, posts)[2]] == ["clipshare"]


def test_gaps_are_looked_for_behind_what_all_ids_begin_with():
    beginning = "https://videos.example/watch/" * 2
    posts = {("a", f"{beginning}{n:08d}") for n in (1, 2, 3, 5_000_000, 5_000_001)} | {("b", "x")}
    found = ranges.cuts({*posts, *(("a", f"{beginning}{n:08d}") for n in range(7_000_000, 7_000_000 + 200))})
    assert {("b", "x"), ("a", f"{beginning}05000000"), ("a", f"{beginning}07000000")} <= set(found)
    assert len(found) == ranges.MOST - 1
    assert found == sorted(found)
    assert ranges.cuts(set()) == ranges.cuts({("a", "x")}) == []
