"""Who gets into the page, and what they cannot do there."""

from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from ivypy.master.errors import PlanError
from ivypy.master.web.access import Access, is_same_origin, kept_key
from ivypy.master.web.guard import HEADERS
from ivypy.master.web.listen import ListenAddress, listening, parse_listen, tls_of
from tests.support.small_run import write_run
from tests.support.web_page import KEY, Page, page_of

TOKEN = "{token}"  # in the table: the right one
MINE = {"Authorization": f"Bearer {TOKEN}"}
COOKIE = {"Cookie": f"ivypy_0={KEY}"}
BODY = '{"action": "pause"}'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs"))


async def answer(page: Page, method: str, path: str, headers: dict[str, str], body: str | None = None) -> Any:
    """Status and text, of a client that sends nothing of its own."""
    sent = {name: text.replace(TOKEN, page.access.token) for name, text in headers.items()}
    path = path.replace(TOKEN, page.access.token)
    async with (
        aiohttp.ClientSession() as client,
        client.request(method, page.address + path, headers=sent, data=body, allow_redirects=False) as response,
    ):
        assert {name: response.headers.get(name) for name in HEADERS} == HEADERS
        return response.status, await response.text()


REQUESTS = [  # headers, status
    ({}, 403),
    ({"Authorization": "Bearer "}, 403),
    ({"Authorization": "Bearer wrong"}, 403),
    ({"Authorization": "Basic {token}"}, 403),
    ({"Authorization": f"Bearer {TOKEN}x"}, 403),
    ({"Cookie": f"ivypy_0={TOKEN}"}, 403),  # the token is no cookie
    ({"Cookie": f"ivypy_8808={KEY}"}, 403),  # another server's
    ({"Cookie": "ivypy_0="}, 403),
    (MINE, 200),
    (COOKIE, 200),
    ({**MINE, "Host": "localhost:9000"}, 200),  # a port that ssh forwards
    ({**MINE, "Host": "LOCALHOST"}, 200),
    ({**MINE, "Host": "[::1]:8808"}, 200),
    ({**MINE, "Host": "evil.example"}, 403),
    ({**MINE, "Host": "127.0.0.1.evil.example:8808"}, 403),
    ({**MINE, "Host": "localhost@evil.example"}, 403),
    ({**MINE, "Host": ""}, 403),
    ({**MINE, "Host": "localhost:x"}, 403),
    ({**COOKIE, "Host": "localhost/../"}, 403),
]


@pytest.mark.parametrize(("headers", "status"), REQUESTS)
async def test_only_those_with_the_token_get_in_by_a_name_of_this_machine(
    folder: Path, headers: dict[str, str], status: int
) -> None:
    async with page_of(folder.parent) as page:
        for path in ("/api/runs", "/static/plotly.min.js", page.of(folder).removeprefix(page.address)):
            assert (await answer(page, "GET", path, headers))[0] == status


async def test_the_token_is_exchanged_for_a_cookie_and_leaves_the_address(folder: Path) -> None:
    async with page_of(folder.parent) as page, aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as one:
        for wrong in ("", "wrong"):
            async with one.get(f"{page.address}/?token={wrong}") as refused:
                assert refused.status == 403 and "not that of this server" in await refused.text()
        async with one.get(f"{page.address}/?token={page.access.token}", allow_redirects=False) as let_in:
            assert (let_in.status, let_in.headers["Location"]) == (303, "/")
            cookie = let_in.headers["Set-Cookie"]
            assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and page.access.token not in cookie
        async with one.get(f"{page.address}/api/runs") as runs:
            assert runs.status == 200


CHANGES = [  # headers beside the content type, status
    (COOKIE, 403),  # a browser always sends an Origin
    ({**COOKIE, "Origin": "null"}, 403),
    ({**COOKIE, "Origin": "http://evil.example"}, 403),
    ({**COOKIE, "Origin": "http://127.0.0.1:1"}, 403),  # another server of this machine
    ({**COOKIE, "Origin": "{address}"}, 200),
    ({**MINE, "Origin": "http://evil.example"}, 403),
    (MINE, 200),
    ({"Origin": "{address}"}, 403),
]


@pytest.mark.parametrize(("headers", "status"), CHANGES)
async def test_only_the_page_itself_and_scripts_with_the_token_change_anything(
    folder: Path, headers: dict[str, str], status: int
) -> None:
    async with page_of(folder.parent, control=True) as page:
        sent = {name: text.replace("{address}", page.address) for name, text in headers.items()}
        path = page.of(folder).removeprefix(page.address)
        as_json = {**sent, "Content-Type": "application/json"}
        found, text = await answer(page, "POST", f"{path}/act", as_json, BODY)
        assert found == status and ("the run has ended" in text) == (status == 200)
        upgrade = {**sent, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                   "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}  # fmt: skip
        expected = 101 if status == 200 else 403
        assert (await _status(page, f"{path}/live", upgrade)) == expected


async def _status(page: Page, path: str, headers: dict[str, str]) -> int:
    sent = {name: text.replace(TOKEN, page.access.token) for name, text in headers.items()}
    async with aiohttp.ClientSession() as client:
        try:
            async with client.ws_connect(page.address + path, headers=sent):
                return 101
        except aiohttp.WSServerHandshakeError as error:
            return error.status


ODD_REQUESTS = [  # method, path below the run, body, content type, status
    ("GET", "/act", None, "", 405),
    ("PUT", "/act", BODY, "application/json", 405),
    ("POST", "", BODY, "application/json", 405),
    ("POST", "/act", BODY, "text/plain", 415),
    ("POST", "/act", "x" * 70_000, "application/json", 413),
    ("POST", "/act", "{", "application/json", 400),
    ("POST", "/act", '{"action": "destroy"}', "application/json", 400),
    ("POST", "/act", '{"action": "edit", "words": "all=all"}', "application/json", 400),
    ("POST", "/act", '{"action": "mark", "words": ["%s"]}' % ("x" * 1001), "application/json", 400),
    ("POST", "/act", '{"action": "pause", "who": "root"}', "application/json", 400),
    ("GET", "/steps/1/series?from=-1", None, "", 400),
    ("GET", "/steps/1/series?from=9999999999", None, "", 400),
    ("GET", "/steps/1/series?folder=/etc", None, "", 400),
    ("GET", "/steps/x/series", None, "", 404),
    ("GET", "/steps/99/series", None, "", 404),
    ("GET", "/steps/0/series?by=../..&instance=passwd", None, "", 404),
    ("GET", "/steps/0/instances?by=../../x", None, "", 404),
    ("GET", "/steps/0/distribution?by=host&instance=%00", None, "", 404),
    ("GET", "/plan.yaml", None, "", 404),
    ("GET", "/" + "x" * 9000, None, "", 400),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body", "kind", "status"), ODD_REQUESTS)
async def test_odd_requests_are_answered_with_a_sentence(
    folder: Path, method: str, path: str, body: str | None, kind: str, status: int
) -> None:
    async with page_of(folder.parent, control=True) as page:
        headers = {"Content-Type": kind} if kind else {}
        async with page.client.request(method, page.of(folder) + path, data=body, headers=headers) as response:
            assert response.status == status
            if len(path) < 1000:  # else the line is refused before anybody knows what it asks for
                assert len((await response.json())["error"]) > 10


@pytest.mark.parametrize(
    "run", ["..", ".", "%2e%2e", "..%2f..%2fetc", "%2fetc", "x", "two_20hosts", "%00", "a" * 500, "\udcff"]
)
async def test_an_id_that_is_no_runs_leads_nowhere(folder: Path, run: str) -> None:
    (folder.parent.parent / "run.json").write_text((folder / "run.json").read_text())  # a run outside the root
    async with page_of(folder.parent) as page:
        for end in ("", "/steps/0/series", "/live", "/events"):
            url = f"{page.address}/api/runs/{quote(run, safe='%', errors='surrogateescape')}{end}"
            async with page.client.get(URL(url, encoded=True)) as response:
                assert response.status == 404


@pytest.mark.parametrize("name", ["..%2frun_data.py", "%2e%2e", "run_data.py", "..", "nothing.js", "%2fetc%2fpasswd"])
async def test_of_the_page_only_its_own_files_are_sent(folder: Path, name: str) -> None:
    async with page_of(folder.parent) as page:
        async with page.client.get(URL(f"{page.address}/static/{name}", encoded=True)) as response:
            assert response.status in (403, 404) and "import" not in await response.text()


async def test_without_permission_nothing_is_changed(folder: Path) -> None:
    async with page_of(folder.parent) as page:
        async with page.client.get(f"{page.address}/api/runs") as runs:
            assert (await runs.json())["control"] is False
        async with page.client.post(f"{page.of(folder)}/act", json={"action": "stop"}) as response:
            assert response.status == 403 and "--allow-control" in (await response.json())["error"]


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_but_the_secret_is_admitted(cookie: str, authorization: str) -> None:
    access = Access(1, frozenset(), KEY)
    assert not access.admits(cookie, authorization) or cookie == KEY
    assert not access.is_here(cookie) or not any(one.isalpha() and not one.isascii() for one in cookie)
    assert not is_same_origin(authorization, cookie) or authorization.endswith(cookie)


def test_a_browser_stays_let_in_over_a_restart_and_the_key_is_its_users(runtime_folder: Path) -> None:
    key = kept_key(8808)
    assert kept_key(8808) == key != kept_key(8809)
    (kept,) = (runtime_folder / "ivypy").glob("web-8808*")
    assert kept.stat().st_mode & 0o777 == 0o600
    kept.write_text("")  # by a server that was just killed
    assert len(kept_key(8808)) == len(key)
    (runtime_folder / "ivypy").chmod(0o777)  # others may write there
    assert kept_key(8809) != kept_key(8809)


ADDRESSES = [
    ("127.0.0.1:8808", ("127.0.0.1", 8808)),
    ("9000", ("127.0.0.1", 9000)),
    ("localhost:0", ("localhost", 0)),
    ("[::1]:80", ("::1", 80)),
    (":8808", ("", 8808)),
    ("lab", None),
    ("lab:x", None),
    ("lab:70000", None),
    ("http://lab:80", None),
    ("user@lab:80", None),
    ("lab:80/x", None),
    ("", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ADDRESSES)
def test_an_address_to_listen_at_is_read(text: str, expected: tuple[str, int] | None) -> None:
    if expected is None:
        with pytest.raises(PlanError, match=r"write ADDRESS:PORT"):
            parse_listen(text)
    else:
        assert parse_listen(text) == ListenAddress(*expected)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::"])
def test_beyond_this_machine_it_takes_tls_or_the_users_word(host: str) -> None:
    with pytest.raises(PlanError, match=r"--tls-cert FILE --tls-key FILE, or --insecure"):
        listening(ListenAddress(host, 0), encrypted=False, insecure=False)
    for encrypted, insecure in ((True, False), (False, True)):
        listening(ListenAddress(host, 0), encrypted, insecure).close()


def test_a_port_in_use_says_what_to_do() -> None:
    with listening(ListenAddress("127.0.0.1", 0), False, False) as first:
        port = first.getsockname()[1]
        with pytest.raises(PlanError, match=r"another program listens there.*--listen 127\.0\.0\.1:0"):
            listening(ListenAddress("127.0.0.1", port), False, False)


def test_files_of_tls_are_both_needed_and_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no certificate")
    assert tls_of(None, None) is None
    for cert, key in ((tmp_path / "x", None), (None, tmp_path / "x"), (tmp_path / "x", tmp_path / "x"),
                      (tmp_path / "gone", tmp_path / "x")):  # fmt: skip
        with pytest.raises(PlanError, match=r"--tls-cert"):
            tls_of(cert, key)
