"""The example of docs/spark-connector.md that parses payloads, as it stands: what does not parse goes aside, once."""

import json
import re

import pytest

pytest.importorskip("pyspark")

from tests.support.pages import ROOT

PAGE = ROOT / "docs" / "spark-connector.md"
GOOD = [json.dumps({"id": f"o{number}", "amount": f"{number}.50"}).encode() for number in range(20)]
BAD = [b"", b"no json", b"[1]", b'{"amount": 1}', b"\xff\xfe"]


def example(addr, queue, folder):
    """With the addresses and names of this test."""
    section = PAGE.read_text().partition("## Parse payloads")[2]
    code = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    assert '"/data/' in code
    code = code.replace("options(queue=", f'options(addr="{addr}", queue=').replace('"/data/', f'"{folder}/')
    return code.replace('"orders', f'"{queue}')


@pytest.mark.slow
def test_what_does_not_parse_is_put_aside_once(spark, broker, client, queue, tmp_path):
    client.enqueue_many(queue, [*GOOD, *BAD])
    exec(compile(example(broker.addr, queue, tmp_path), str(PAGE), "exec"), {"spark": spark})
    [query] = spark.streams.active
    try:
        query.processAllAvailable()
    finally:
        query.stop()
    orders = spark.read.format("delta").load(f"{tmp_path}/orders")
    assert sorted(row.id for row in orders.collect()) == sorted(json.loads(text)["id"] for text in GOOD)
    aside = client.peek(f"{queue}.dlq", payload_bytes=100).messages
    assert sorted(message.payload for message in aside) == sorted(BAD)
    assert {message.headers["reason"] for message in aside} == {"not an order"}
