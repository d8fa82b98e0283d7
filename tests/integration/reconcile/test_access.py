"""Who may do what over the API: keys, roles, protected mode, and what is never logged."""

import asyncio
import itertools
import logging
import re
from types import SimpleNamespace

import httpx
import pytest

from fila.auth import failed_logins
from fila.reconcile.access.rights import PERMISSIONS, ROUTES, Permission, Role, permission_for
from fila.reconcile.config import Config
from fila.reconcile.service import Parts
from tests.helpers.reconcile import NOW, submission
from tests.helpers.reconcile_api import REPORT

ELSEWHERE = "203.0.113.9"
WRONG = f"fila_nobody-2222222_{'0' * 64}"


@pytest.fixture(autouse=True)
def no_waits(monkeypatch):
    """Failed logins are answered at once."""
    monkeypatch.setattr(failed_logins, "FIRST_S", 0.0)


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def key(api, role, affiliate=None, **given):
    return api.store.keys.create(role, affiliate, api.now_ms, **given)


def code(answer):
    return answer.status_code, answer.json()["error"]["code"]


def from_peer(api, address, path="/v1/status", host="localhost", headers=None):
    """The answer to a request that came from this address."""

    async def ask():
        transport = httpx.ASGITransport(api.app, client=(address, 50_000))
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as http:
            return await http.get(path, headers=headers)

    return asyncio.run(ask())


class TestTable:
    def test_every_route_has_a_row_and_every_row_a_route(self, bench):
        served = {
            (method, route.path)
            for route in bench().app.routes
            for method in getattr(route, "methods", {"websocket or mount"}) - {"HEAD"}
        }
        assert served == set(ROUTES)

    def test_every_role_has_a_row(self):
        assert set(PERMISSIONS) == set(Role)

    @pytest.mark.parametrize(
        "method, path",
        [
            ("DELETE", "/v1/reports"),
            ("GET", "/v1/reports/a/b"),
            ("GET", "/healthz/"),
            ("GET", "//healthz"),
            ("GET", "/"),
        ],
    )
    def test_what_has_no_row_has_no_permission(self, method, path):
        assert permission_for(method, path) is None

    def test_roles_by_routes(self, bench):
        """Each role on each route: served exactly where the table says."""
        api = bench()
        api.store.intake.submit([one := submission()], NOW)
        tokens = {role: key(api, role, "ada" if role is Role.AFFILIATE else None)[1] for role in Role}
        for (role, token), ((method, path), needed) in itertools.product(tokens.items(), ROUTES.items()):
            concrete = path.format(report_id=one.report.report_id, affiliate_id="ada")
            answer = api.http.request(method, concrete, headers=bearer(token))
            allowed = needed in PERMISSIONS[role]
            assert (answer.status_code != 403) is allowed, (role, method, path)
            if method == "GET" and allowed:
                assert answer.status_code == 200, (role, path)


class TestKeys:
    def test_from_the_first_key_on_every_request_needs_one(self, bench):
        api = bench()
        assert api.http.get("/v1/status").status_code == 200
        _, token = key(api, Role.OPERATOR)
        answer = api.http.get("/v1/status")
        assert (*code(answer), answer.headers["WWW-Authenticate"]) == (401, "unauthorised", "Bearer")
        assert api.post(headers=bearer(token)).status_code == 202
        assert api.http.get("/healthz").status_code == 200

    @pytest.mark.parametrize(
        "path", ["/v1/alerts", "/docs", "/redoc", "/openapi.json", "/nowhere", "/healthz/", "//healthz"]
    )
    def test_nothing_but_the_health_is_shown_without_one(self, bench, path):
        api = bench()
        key(api, Role.OPERATOR)
        assert code(api.http.get(path)) == (401, "unauthorised")

    @pytest.mark.parametrize("body", [b"{", b"x" * 2_000], ids=["no report", "too large"])
    def test_it_is_asked_for_before_anything_else_is_looked_at(self, bench, body):
        api = bench(max_body_bytes=1_000)
        key(api, Role.OPERATOR)
        headers = {"Content-Type": "application/json"}
        assert api.http.post("/v1/reports", content=body, headers=headers).status_code == 401

    @pytest.mark.parametrize("kind", ["expired", "revoked", "another secret", "no key", "basic", "empty", "huge"])
    def test_what_is_no_active_key_is_refused(self, bench, kind):
        api = bench()
        made, token = key(api, Role.OPERATOR, expires_at_ms=NOW + 1_000)
        if kind == "expired":
            assert api.http.get("/v1/status", headers=bearer(token)).status_code == 200
            api.now_ms += 1_000
        elif kind == "revoked":
            api.store.keys.revoke(made.id, NOW)
        given = {
            "another secret": f"Bearer {token[:-64]}{'0' * 64}",
            "no key": "Bearer s3cret",
            "basic": f"Basic {token}",
            "empty": "",
            "huge": f"Bearer {token * 100}",
        }.get(kind, f"Bearer {token}")
        assert code(api.http.get("/v1/status", headers={"Authorization": given})) == (401, "unauthorised")

    def test_when_the_last_key_is_revoked_the_api_stays_closed(self, bench):
        api = bench()
        made, _ = key(api, Role.OPERATOR)
        api.store.keys.revoke(made.id, NOW)
        assert api.http.get("/v1/status").status_code == 401

    def test_a_wrong_key_is_refused_even_while_there_are_none(self, bench):
        assert code(bench().http.get("/v1/status", headers=bearer(WRONG))) == (401, "unauthorised")

    def test_a_store_that_does_not_answer_lets_nobody_in(self, bench):
        api = bench()
        with api.store._database.writing() as session:
            session.connection().exec_driver_sql("DROP TABLE api_keys")
        assert code(api.http.get("/v1/status")) == (503, "unavailable")


class TestAffiliates:
    def test_one_sends_and_sees_its_own_reports_alone(self, bench):
        api = bench()
        ada, bob = (bearer(key(api, Role.AFFILIATE, name)[1]) for name in ("ada", "bob"))
        report_id = api.post(headers=ada).json()["report_id"]
        assert api.http.get(f"/v1/reports/{report_id}", headers=ada).json()["affiliate_id"] == "ada"
        others, unknown = (api.http.get(f"/v1/reports/{each}", headers=bob) for each in (report_id, "0" * 32))
        assert (others.status_code, others.text) == (404, unknown.text), "as if it did not exist"
        assert code(api.post(headers=bob)) == (403, "forbidden")

    def test_a_batch_with_one_report_of_another_is_refused_whole(self, bench):
        api = bench()
        ada = bearer(key(api, Role.AFFILIATE, "ada")[1])
        batch = {"reports": [REPORT, REPORT | {"affiliate_id": "bob", "post_id": "p-2"}]}
        assert code(api.http.post("/v1/reports/batch", json=batch, headers=ada)) == (403, "forbidden")
        assert api.store.views.outcomes() == {}

    @pytest.mark.parametrize("path", ["/v1/alerts", "/v1/affiliates", "/v1/affiliates/ada", "/v1/status"])
    def test_trust_and_alerts_are_not_shown_to_those_they_are_about(self, bench, path):
        api = bench()
        assert code(api.http.get(path, headers=bearer(key(api, Role.AFFILIATE, "ada")[1]))) == (403, "forbidden")

    def test_a_viewer_sees_all_and_sends_nothing(self, bench):
        api = bench()
        report_id = api.post().json()["report_id"]
        viewer = bearer(key(api, Role.VIEWER)[1])
        assert api.http.get(f"/v1/reports/{report_id}", headers=viewer).status_code == 200
        assert code(api.post(headers=viewer)) == (403, "forbidden")


class TestProtectedMode:
    @pytest.mark.parametrize("peer", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1"])
    def test_without_keys_this_machine_is_served(self, bench, peer):
        assert from_peer(bench(), peer).status_code == 200

    @pytest.mark.parametrize("peer", [ELSEWHERE, "10.0.0.1", "2001:db8::1", "::ffff:10.0.0.1", "testclient", ""])
    def test_others_are_told_in_one_sentence_what_to_set(self, bench, peer):
        answer = from_peer(bench(), peer)
        assert code(answer) == (403, "protected")
        assert re.search("fila reconcile key create.*insecure = true", answer.json()["error"]["message"])

    def test_a_page_whose_name_was_made_to_lead_here_is_not_served(self, bench):
        """DNS rebinding: the browser of an operator connects from this machine, with the name of the page."""
        api = bench()
        assert code(from_peer(api, "127.0.0.1", host="evil.example")) == (403, "protected")
        for host in ("localhost:8080", "127.0.0.1:8080", "[::1]:8080", "192.168.0.7"):
            assert from_peer(api, "127.0.0.1", host=host).status_code == 200

    def test_the_health_is_shown_to_all_and_a_key_works_from_everywhere(self, bench):
        api = bench()
        assert from_peer(api, ELSEWHERE, "/healthz").status_code == 200
        _, token = key(api, Role.VIEWER)
        assert from_peer(api, ELSEWHERE, headers=bearer(token)).status_code == 200

    def test_insecure_opens_it_until_there_is_a_key(self, bench):
        api = bench(insecure=True)
        assert from_peer(api, ELSEWHERE).status_code == 200
        key(api, Role.VIEWER)
        assert code(from_peer(api, ELSEWHERE)) == (401, "unauthorised")

    @pytest.mark.parametrize("insecure, level", [(True, logging.WARNING), (False, logging.INFO)])
    def test_each_start_says_who_is_served(self, tmp_path, caplog, insecure, level):
        caplog.set_level(logging.INFO, "fila")
        tables = {"store": {"url": f"sqlite:///{tmp_path}/reconcile.db"}, "api": {"insecure": insecure}}
        for _ in range(2):
            parts = Parts.open(Config.from_mapping(tables))
            parts.api()
            parts.close()
        said = [each.levelno for each in caplog.records if "insecure = true" in each.getMessage()]
        assert said == [level, level]


def test_failed_logins_of_an_address_wait_longer_and_good_ones_do_not(bench, monkeypatch):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    monkeypatch.setattr(failed_logins, "FIRST_S", 0.05)
    monkeypatch.setattr("fila.reconcile.api.access.asyncio", SimpleNamespace(sleep=sleep))
    api = bench()
    _, token = key(api, Role.VIEWER)
    for _ in range(4):
        from_peer(api, ELSEWHERE, headers=bearer(WRONG))
    assert waits == [0.05, 0.1, 0.2, 0.4]
    assert from_peer(api, ELSEWHERE, headers=bearer(token)).status_code == 200
    assert len(waits) == 4
    from_peer(api, "203.0.113.10", headers=bearer(WRONG))
    assert waits[-1] == 0.05


def test_neither_secrets_nor_claims_are_logged(bench, caplog):
    """At every level, third-party loggers included. SQLAlchemy tells statements at INFO, and at DEBUG rows: `configure`
    hears it from WARNING on.
    """
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.INFO, "sqlalchemy.engine")
    api = bench()
    made, token = key(api, Role.OPERATOR)
    wrong = token[:-64] + "abcd" * 16
    assert api.post(views=987_654_321, campaign_id="payload-1", headers=bearer(token)).status_code == 202
    assert api.post(views=987_654_321, likes="payload-2", headers=bearer(token)).status_code == 422
    assert api.post(campaign_id="payload-3", headers=bearer(wrong)).status_code == 401
    assert "login failed" in caplog.text
    assert "sqlalchemy" in {record.name.partition(".")[0] for record in caplog.records}
    shown = caplog.text + "".join(repr(vars(record)) for record in caplog.records)
    for hidden in (token[-64:], wrong[-64:], made.hash, made.salt, "987654321", "payload-"):
        assert hidden not in shown


def test_permissions_that_no_route_needs_do_not_exist():
    assert set(ROUTES.values()) == set(Permission)
