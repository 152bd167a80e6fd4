"""Who gets into the page, and what they cannot do there."""

import json
import re
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from ivypy.master.errors import PlanError
from ivypy.master.web.access import KEY_AGE_S, MOST_KEYS, WEBSOCKET, Keys, WebAccess, is_same_origin, secret_of
from ivypy.master.web.listen import ListenAddress, listening, own_name, parse_listen, tls_of
from ivypy.master.web.serve import HEADERS
from tests.support.small_run import write_run
from tests.support.web_page import Page, page_of

TOKEN, KEY = "{token}", "{key}"  # in the tables: the right ones
MINE, BROWSER = {"Authorization": f"Bearer {TOKEN}"}, {"Authorization": f"Bearer {KEY}"}
BODY = '{"action": "pause"}'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs"))


def filled(page: Page, headers: dict[str, str]) -> dict[str, str]:
    secrets = {TOKEN: page.access.token, KEY: page.access.keys.new(time.monotonic()), "{address}": page.address}

    def one(text: str) -> str:
        for name, secret in secrets.items():
            text = text.replace(name, secret)
        return text

    return {name: one(text) for name, text in headers.items()}


async def answer(page: Page, method: str, path: str, headers: dict[str, str], body: str | None = None) -> Any:
    """Status and text, of a client that sends nothing of its own."""
    sent = filled(page, headers)
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
    ({"Authorization": f"Bearer {KEY}x"}, 403),
    ({"Cookie": f"ivypy={KEY}; token={TOKEN}"}, 403),  # which a browser would send to every port
    ({"Sec-WebSocket-Protocol": f"other, {KEY}"}, 403),
    (MINE, 200),
    (BROWSER, 200),
    ({**MINE, "Host": "localhost:9000"}, 200),  # a port that ssh forwards
    ({**MINE, "Host": "LOCALHOST"}, 200),
    ({**MINE, "Host": "[::1]:8808"}, 200),
    ({**MINE, "Host": "evil.example"}, 403),
    ({**MINE, "Host": "127.0.0.1.evil.example:8808"}, 403),
    ({**MINE, "Host": "localhost@evil.example"}, 403),
    ({**MINE, "Host": ""}, 403),
    ({**MINE, "Host": "localhost:x"}, 403),
    ({**BROWSER, "Host": "localhost/../"}, 403),
]


@pytest.mark.parametrize(("headers", "status"), REQUESTS)
async def test_only_those_with_the_token_get_in_by_a_name_of_this_machine(
    folder: Path, headers: dict[str, str], status: int
) -> None:
    async with page_of(folder.parent) as page:
        for path in ("/api/runs", page.of(folder).removeprefix(page.address)):
            assert (await answer(page, "GET", path, headers))[0] == status
        for path in ("/", "/static/main.js"):  # which anybody may have, but by no other name
            assert (await answer(page, "GET", path, headers))[0] == (
                403 if "Host" in headers and status == 403 else 200
            )


SESSIONS = [  # method, headers, status
    ("POST", MINE, 200),
    ("POST", {**MINE, "Origin": "{address}"}, 200),
    ("GET", MINE, 405),
    ("POST", {}, 403),
    ("POST", BROWSER, 403),  # a key makes no other
    ("POST", {**MINE, "Origin": "http://evil.example"}, 403),
    ("POST", {**MINE, "Host": "evil.example"}, 403),
]


@pytest.mark.parametrize(("method", "headers", "status"), SESSIONS)
async def test_the_token_is_exchanged_for_a_key(
    folder: Path, method: str, headers: dict[str, str], status: int
) -> None:
    async with page_of(folder.parent) as page:
        found, text = await answer(page, method, "/api/session", headers)
        assert found == status and ("key" in json.loads(text)) == (status == 200)
        assert page.access.token not in text
        if status == 200:
            key = json.loads(text)["key"]
            assert (await answer(page, "GET", "/api/runs", {"Authorization": f"Bearer {key}"}))[0] == 200
            async with page_of(folder.parent) as later:  # which another start of the server does not know
                assert (await answer(later, "GET", "/api/runs", {"Authorization": f"Bearer {key}"}))[0] == 403


CHANGES = [  # headers beside the content type, status
    (BROWSER, 200),
    ({**BROWSER, "Origin": "null"}, 403),
    ({**BROWSER, "Origin": "http://evil.example"}, 403),
    ({**BROWSER, "Origin": "http://127.0.0.1:1"}, 403),  # another server of this machine
    ({**BROWSER, "Origin": "{address}"}, 200),
    ({**MINE, "Origin": "http://evil.example"}, 403),
    (MINE, 200),
    ({"Origin": "{address}"}, 403),
    ({}, 403),
]


@pytest.mark.parametrize(("headers", "status"), CHANGES)
async def test_only_the_page_itself_and_scripts_with_the_token_change_anything(
    folder: Path, headers: dict[str, str], status: int
) -> None:
    async with page_of(folder.parent, control=True) as page:
        path = page.of(folder).removeprefix(page.address)
        as_json = {**headers, "Content-Type": "application/json"}
        found, text = await answer(page, "POST", f"{path}/act", as_json, BODY)
        assert found == status and ("the run has ended" in text) == (status == 200)
        upgrade = {**headers, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                   "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}  # fmt: skip
        expected = 101 if status == 200 else 403
        assert (await _status(page, f"{path}/live", upgrade)) == expected
        if "Authorization" in headers:  # as browsers have to
            spoken = upgrade.pop("Authorization").replace("Bearer", f"{WEBSOCKET},")
            assert (await _status(page, f"{path}/live", {**upgrade, "Sec-WebSocket-Protocol": spoken})) == expected


async def _status(page: Page, path: str, headers: dict[str, str]) -> int:
    sent = filled(page, headers)
    spoken = [one.strip() for one in sent.pop("Sec-WebSocket-Protocol", "").split(",") if one]
    async with aiohttp.ClientSession() as client:
        try:
            async with client.ws_connect(page.address + path, headers=sent, protocols=spoken) as socket:
                assert socket.protocol == (WEBSOCKET if spoken else None)
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
def test_no_text_but_the_secret_is_admitted(authorization: str, host: str) -> None:
    access = WebAccess(frozenset())
    access.keys.new(0.0)
    assert not access.admits(secret_of(authorization), 0.0) and not access.admits(authorization, 0.0)
    assert not access.is_here(host) or not any(one.isalpha() and not one.isascii() for one in host)
    assert not is_same_origin(authorization, host) or authorization.endswith(host)


def test_a_key_ends_when_it_was_not_used_for_a_week() -> None:
    keys = Keys()
    used, unused = keys.new(0.0), keys.new(0.0)
    for week in range(1, 4):
        assert keys.admits(used, week * KEY_AGE_S)
    assert not keys.admits(unused, KEY_AGE_S + 1) and not keys.admits(unused, 0.0)


def test_of_very_many_keys_those_that_were_used_last_are_kept() -> None:
    keys = Keys()
    first, second = keys.new(0.0), keys.new(1.0)
    assert keys.admits(first, 2.0)
    for at in range(MOST_KEYS - 1):
        keys.new(3.0 + at)
    assert keys.admits(first, 5.0) and not keys.admits(second, 5.0)


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
        with taken(ListenAddress(host, 0), encrypted, insecure) as sockets:
            assert len(sockets) == 1 and own_name(ListenAddress(host, 0), encrypted) == ""


@contextmanager
def taken(address: ListenAddress, encrypted: bool = False, insecure: bool = False, **more: bool) -> Iterator[list[int]]:
    """The ports of the sockets that listen."""
    with ExitStack() as stack:
        sockets = listening(address, encrypted, insecure, **more)
        for one in sockets:
            stack.enter_context(one)
        yield [one.getsockname()[1] for one in sockets]


def is_free(family: socket.AddressFamily, host: str, port: int) -> bool:
    with socket.socket(family) as one:
        try:
            one.bind((host, port))
        except OSError:
            return False
        return True


def test_a_port_in_use_says_what_to_do() -> None:
    with taken(ListenAddress("127.0.0.1", 0)) as (port, *_):
        with pytest.raises(PlanError, match=r"another program listens there.*--listen 127\.0\.0\.1:0"):
            listening(ListenAddress("127.0.0.1", port), False, False)
        with taken(ListenAddress("127.0.0.1", port), or_any_port=True) as (other, *_):
            assert other != port, "a page beside a run"


@pytest.mark.skipif(not is_free(socket.AF_INET6, "::1", 0), reason="this machine has no IPv6")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_nobody_else_gets_the_other_loopback_address(host: str) -> None:
    """Names below `localhost` stand for both."""
    with taken(ListenAddress(host, 0)) as ports:
        assert len(ports) == 2 and len(set(ports)) == 1
        assert not is_free(socket.AF_INET, "127.0.0.1", ports[0])
        assert not is_free(socket.AF_INET6, "::1", ports[0])
    with socket.socket(socket.AF_INET6) as other:
        other.bind(("::1", 0))
        other.listen()
        with pytest.raises(PlanError, match="another program listens there"):
            listening(ListenAddress("127.0.0.1", other.getsockname()[1]), False, False)


def test_each_start_has_a_name_of_its_own() -> None:
    names = {own_name(ListenAddress("127.0.0.1", 0), encrypted=False) for _ in range(2)}
    assert len(names) == 2 and all(re.fullmatch(r"ivypy-[0-9a-f]{16}\.localhost", name) for name in names)
    assert own_name(ListenAddress("127.0.0.1", 0), encrypted=True) == "", "the certificate's is another"


async def test_the_page_is_there_by_its_own_name_and_not_by_another_starts(folder: Path) -> None:
    async with page_of(folder, names=frozenset({"ivypy-1.localhost"})) as page:
        assert (await answer(page, "GET", "/api/runs", {**MINE, "Host": "ivypy-1.localhost:8808"}))[0] == 200
        status, said = await answer(page, "GET", "/api/runs", {**MINE, "Host": "ivypy-2.localhost:8808"})
        assert status == 403 and "Open the address that `ivypy web` printed last" in said


async def test_no_browser_keeps_what_runs_hold(folder: Path) -> None:
    async with page_of(folder) as page:
        for path in ("/api/runs", "/api/runs/none", "/api/session", "/none"):
            async with page.client.get(page.address + path) as response:
                assert response.headers["Cache-Control"] == "no-store", path
        async with page.client.get(page.of(folder)) as response:
            assert response.headers["Cache-Control"] == "no-store"
        async with page.client.get(f"{page.address}/static/main.js") as response:
            assert response.headers["Cache-Control"] == "no-cache"


def test_files_of_tls_are_both_needed_and_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("no certificate")
    assert tls_of(None, None) is None
    for cert, key in ((tmp_path / "x", None), (None, tmp_path / "x"), (tmp_path / "x", tmp_path / "x"),
                      (tmp_path / "gone", tmp_path / "x")):  # fmt: skip
        with pytest.raises(PlanError, match=r"--tls-cert"):
            tls_of(cert, key)
