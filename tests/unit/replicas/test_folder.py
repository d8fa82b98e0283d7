"""Whose data directory it is."""

import pytest

from fila.core.errors import StoreUnusable
from fila.replicas.folder import check_none, claim, cluster_of


def test_an_empty_folder_is_claimed_and_stays_the_clusters(tmp_path):
    path = tmp_path / "data"
    check_none(path)
    claim(path, "orders")
    claim(path, "orders")
    assert cluster_of(path) == "orders"


def test_that_of_another_cluster_is_refused(tmp_path):
    claim(tmp_path / "data", "orders")
    with pytest.raises(StoreUnusable, match="belongs to the cluster 'orders', not to 'mails'"):
        claim(tmp_path / "data", "mails")


def test_one_with_a_store_is_refused(tmp_path):
    (tmp_path / "CURRENT").touch()
    with pytest.raises(StoreUnusable, match="without a cluster"):
        claim(tmp_path, "orders")
    assert cluster_of(tmp_path) is None


def test_what_a_file_system_puts_there_does_not_count(tmp_path):
    (tmp_path / "lost+found").mkdir()
    claim(tmp_path, "orders")


def test_a_server_without_a_cluster_is_refused_where_one_is(tmp_path):
    claim(tmp_path, "orders")
    with pytest.raises(StoreUnusable, match=r"belongs to the cluster 'orders': start it with the section \[cluster\]"):
        check_none(tmp_path)
