"""The server: who is answered, what can be reached, what the pages hold. A real server, asked over a real socket."""

from __future__ import annotations

import html
import http.client
import json
import os
import socket
import struct
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import runs
from sample_case import sample_case

from flatout import store
from flatout.model.case import Case, Interval, Trial
from flatout.model.errors import FlatoutError
from flatout.observe.recorder import Recorder
from flatout.report.terminal import headline
from flatout.serve.server import make
from flatout.store import origin, saving
from flatout.tune.journal import Journal

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


class Client:
    def __init__(self, home: Path, port: int) -> None:
        self.home, self.port = home, port

    def ask(self, path: str, method: str = "GET", **headers: str) -> tuple[int, http.client.HTTPMessage, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.putrequest(method, path, skip_host="Host" in given)
        for name, value in given.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()

    def page(self, path: str) -> str:
        status, _, text = self.ask(path)
        assert status == 200, text
        return text


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.chdir(tmp_path)
    home = tmp_path / store.HOME
    (home / "cases").mkdir(parents=True)
    server = make(home, 0)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield Client(home, server.server_address[1])
    server.shutdown()
    server.server_close()


def keep(client: Client, median: float = 20.0, seed: int = 1) -> str:
    return runs.keep(client.home, runs.case(median, seed)).parent.name


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1", "", "127.0.0.1.evil.example:{port}"]
)
def test_other_hosts_are_refused(client: Client, host: str) -> None:
    keep(client)
    status, headers, text = client.ask("/", Host=host.format(port=client.port))
    assert status == 403
    assert "train" not in text
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}", "[::1]:{port}"])
def test_this_machine_is_answered(client: Client, host: str) -> None:
    assert client.ask("/", Host=host.format(port=client.port))[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "cors"},
        {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors"},
    ],
)
def test_other_sites_are_refused(client: Client, headers: dict[str, str]) -> None:
    given = {name: value.format(port=client.port) for name, value in headers.items()}
    assert client.ask("/", **given)[0] == 403


def test_our_own_pages_may_ask(client: Client) -> None:
    own = f"http://127.0.0.1:{client.port}"
    assert client.ask("/", Origin=own, Sec_Fetch_Site="same-origin", Sec_Fetch_Mode="cors")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_nothing_can_be_sent(client: Client, method: str) -> None:
    status, headers, _ = client.ask("/", method, Origin="http://evil.example")
    assert status == 501
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(
    "path",
    [
        "/case/../../../etc/passwd", "/case/..%2f..%2f..%2fetc%2fpasswd", "/case/%2e%2e", "/case/.", "/case/",
        "/case//etc/passwd", "/../etc/passwd", "/assets/..%2fserver.py", "/assets/server.py", "/case/link/case.json",
        "/follow/..", "/follow/..%2f..", "/case/{name}/facts.jsonl", "/case/{name}/..%2fcase.json", "/case/%00",
        "/compare?case=..%2f..%2fsecret&case={name}", "/nothing", "/case/" + "a" * 9000, "/case/link", "/case/file",
    ],
)  # fmt: skip
def test_paths_outside_are_refused(client: Client, path: str, tmp_path: Path) -> None:
    name = keep(client)
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "case.json").write_text(
        (client.home / "cases" / name / "case.json").read_text().replace("train", "SECRET")
    )
    (client.home / "cases" / "link").symlink_to(secret)
    (client.home / "cases" / "file").mkdir()
    (client.home / "cases" / "file" / "case.json").symlink_to(secret / "case.json")
    status, _, text = client.ask(path.format(name=name))
    assert status == 404
    assert "root:" not in text
    assert "SECRET" not in text


def test_too_many_questions_are_no_fault_of_a_case(client: Client, capfd: pytest.CaptureFixture[str]) -> None:
    assert client.ask("/compare?" + "&".join(f"a{number}=1" for number in range(40)))[0] == 404
    assert capfd.readouterr().err == ""


def test_every_answer_has_its_guards(client: Client) -> None:
    name = keep(client)
    for path in (
        "/",
        "/trends",
        f"/case/{name}",
        f"/follow/{name}",
        "/nothing",
        "/assets/script.js",
        f"/case/{name}/case.json",
    ):
        _, headers, _ = client.ask(path)
        policy = headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "http:" not in policy
        assert "*" not in policy
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert not [name for name in headers if name.lower().startswith("access-control")]


def test_only_the_loopback_address_is_listened_on(client: Client) -> None:
    server = make(client.home, 0)
    try:
        assert server.server_address[0] == "127.0.0.1"
        with pytest.raises(FlatoutError, match="--port"):
            make(client.home, server.server_address[1])
    finally:
        server.server_close()


def test_the_list(client: Client) -> None:
    names = [keep(client, seed=seed) for seed in range(3)]
    (client.home / "cases" / "damaged").mkdir()
    (client.home / "cases" / "damaged" / "case.json").write_text('{"kind": "run"')
    text = client.page("/")
    for name in names:
        assert f'href="/case/{name}"' in text
    assert "3 kept cases" in text
    assert client.ask("/", "HEAD")[2] == ""


def test_the_list_says_what_is_slow_in_words_for_people(client: Client) -> None:
    kept = json.loads((FIXTURES / "screens" / "run-slow.json").read_text(encoding="utf-8"))
    case = Case.from_json(kept)
    runs.keep(client.home, case)
    text = html.unescape(client.page("/"))
    assert headline(case) in text
    assert "one cause: the training step runs eagerly" in text
    assert "goes to eager-step" not in text


def test_two_cases_are_compared(client: Client) -> None:
    fast, slow = keep(client, 20.0, 1), keep(client, 30.0, 2)
    os.utime(client.home / "cases" / fast / "case.json", (1, 1))
    text = client.page(f"/compare?case={slow}&case={fast}")
    assert "Slower: a step takes" in text, "the older one is the one before"
    assert "Faster: a step takes" in client.page(f"/compare?before={slow}&after={fast}")
    assert client.ask(f"/compare?case={fast}")[0] == 422
    assert client.ask("/compare")[0] == 422


def test_a_report_opens(client: Client) -> None:
    name = keep(client)
    text = client.page(f"/case/{name}")
    assert sample_case().verdict[:30] in text
    status, headers, told = client.ask(f"/case/{name}/case.json")
    assert status == 200
    assert json.loads(told)["kind"] == "run"
    assert headers["Content-Disposition"].startswith("attachment")


def test_the_trends(client: Client) -> None:
    for seed, commit in enumerate("aabb"):
        runs.keep(client.home, runs.case(20.0, seed, environment=runs.source(commit * 40)))
    text = client.page("/trends")
    assert "4 runs of 2 states" in text
    assert "states · <" not in text
    assert "main bbbbbbb" in text


def begun(client: Client, title: str = "train") -> Path:
    return store.new_directory(title, client.home)


def test_a_running_run_is_followed(client: Client) -> None:
    directory = begun(client)
    address = f"/follow/{directory.name}/progress.json"
    assert f'href="/follow/{directory.name}"' in client.page("/")
    assert json.loads(client.page(address))["phase"] == "starting"
    recorder = Recorder(str(directory))
    recorder.fact("start", pid=1, at=0.0, python="3.11")
    assert json.loads(client.page(address))["phase"] == "importing TensorFlow"
    recorder.fact("import", package="tensorflow", seconds=1.0, version="2.21.0")
    recorder.fact("stream", id=0, of="fit", name="fit", stack=[])
    for number in range(30):
        recorder.extend((0, 1, 0.1 * number, 0.1 * number + 0.05, 0, 0, 0, 0))
    recorder.flush()
    with open(directory / "ticks.bin", "ab") as stream:
        stream.write(struct.pack("d", 1.0))  # half a row, as a reader may find it
    told = json.loads(client.page(address))
    assert told["running"] is True
    assert told["steps"] == 30
    assert told["median_ms"] == pytest.approx(100)
    assert len(told["times_ms"]) == 30
    assert "data-live=" in client.page(f"/follow/{directory.name}")
    saving.save(runs.case(), directory)
    told = json.loads(client.page(address))
    assert told["done"] is True
    assert told["running"] is False


def test_a_running_tune_is_followed(client: Client) -> None:
    directory = begun(client, "tune-train")
    journal = Journal(directory)
    journal.begin(["python", "train.py"], "/home/ada")
    address = f"/follow/{directory.name}/progress.json"
    assert json.loads(client.page(address))["phase"] == "observing the unmodified program"
    journal.keep_scouted(sample_case(), {})
    journal.keep(Trial(("xla",), "won", Interval(1.4, 1.3, 1.5), "exact"))
    journal.keep(Trial((HOSTILE,), "failed", None, note=HOSTILE))
    journal.keep(Trial(("bf16",), "noise", Interval(1.0, 0.5, float("inf"))))
    with open(journal.path, "a") as stream:
        stream.write('{"trial": {"levers"')
    told = json.loads(client.page(address))
    assert told["kind"] == "tune"
    assert [trial["status"] for trial in told["trials"]] == ["won", "failed", "noise"]
    assert told["trials"][0]["speedup"] == [1.3, 1.4, 1.5]
    assert told["trials"][2]["speedup"] == [0.5, 1.0, None]


def test_a_run_whose_process_is_gone_was_cut_short(client: Client) -> None:
    directory = begun(client)
    facts = origin.read(directory) | {"born": "1"}
    (directory / origin.FILE).write_text(json.dumps(facts))
    text = client.page("/")
    assert "1 interrupted" in text
    assert "Running now" not in text
    assert "interrupted" in client.page(f"/follow/{directory.name}")


def test_hostile_text_is_escaped_on_every_page(client: Client) -> None:
    case = runs.case(20.0, 1, command=("python", HOSTILE), environment={"cpu": {"model": HOSTILE}}, verdict=HOSTILE)
    names = [runs.keep(client.home, replace(case, program=replace(case.program, error=HOSTILE))).parent.name]
    names.append(runs.keep(client.home, runs.case(21.0, 2, command=("python", HOSTILE, HOSTILE))).parent.name)
    for path in (
        "/",
        "/trends",
        f"/compare?before={names[0]}&after={names[1]}",
        f"/follow/{names[0]}",
        f"/case/{names[0]}",
    ):
        text = client.page(path)
        assert "<script>alert" not in text
        assert "<img src=x" not in text


def test_requests_that_are_none_do_not_stop_it(client: Client) -> None:
    for nonsense in (
        b"\x00\xff\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /%zz%00 HTTP/1.1\r\nHost: x\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", client.port), timeout=5) as connection:
            connection.sendall(nonsense)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(4096)
    assert client.ask("/")[0] == 200


def test_an_old_case_still_opens(client: Client) -> None:
    directory = begun(client, "old")
    old = Path(__file__).parent.parent / "fixtures" / "cases" / "schema-1-first.json"
    (directory / store.FILE).write_text(old.read_text())
    assert f'href="/case/{directory.name}"' in client.page("/")
    assert "waits" in client.page(f"/case/{directory.name}")
