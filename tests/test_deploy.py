"""Several processes behind one address: nginx with the project's own configuration, two real
processes, and readers who stay where they are."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields
from http.client import HTTPConnection
from pathlib import Path

import driver
import httpx2
import pytest
import yaml
from conftest import needs_smollm2
from driver import free_port
from packaging.requirements import Requirement
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.web.cli import main_run
from websockets.sync.client import connect

from explorer.app.state.settings import PREFIX, Settings, from_environment
from models import smollm2

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
CAPABILITIES = ("CHOWN", "SETGID", "SETUID", "NET_BIND_SERVICE")  # of nginx's first process
pytestmark = pytest.mark.slow


PROXY = (DEPLOY / "nginx.conf").read_text("utf-8")
PORTS = set(re.findall(r"server 127.0.0.1:(\d+)", PROXY))  # of the processes behind it


def services() -> dict[str, dict]:
    """The containers of compose.yaml."""
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]


def composed(port: int) -> tuple[list[str], dict[str, str]]:
    """What the first container of compose.yaml runs, and its environment, on another port."""
    service = services()["headlight-8601"]
    dockerfile = (ROOT / "Dockerfile").read_text("utf-8")
    entry = json.loads(re.search(r"^ENTRYPOINT (.*)$", dockerfile, re.MULTILINE)[1])
    assert entry[0] == "headlight", "the command of the installed project"
    command = [sys.executable, "-m", "explorer.cli", *entry[1:], *service["command"]]
    # Redis is not at the tests' machine; the tests of classes have their own.
    settings = service["environment"] | {"HEADLIGHT_REDIS": ""}
    return [each.replace("8601", str(port)) for each in command], settings


def unit() -> dict[str, list[str]]:
    """The settings of headlight@.service, each with what its lines say: one may stand twice."""
    said: dict[str, list[str]] = {}
    for line in (DEPLOY / "headlight@.service").read_text("utf-8").splitlines():
        name, is_set, value = line.partition("=")
        if is_set and not line.startswith("#"):
            said.setdefault(name, []).append(value)
    return said


def united(port: int) -> tuple[list[str], dict[str, str]]:
    """What headlight@.service runs, and its environment, on another port."""
    (command,), (folder,) = unit()["ExecStart"], unit()["WorkingDirectory"]
    environment = " ".join(unit()["Environment"]).split()
    command = command.replace(folder, str(ROOT)).replace("%i", str(port))
    return command.split(), dict(each.split("=") for each in environment)


def test_containers_units_and_proxy_are_at_the_same_ports() -> None:
    assert {name.partition("-")[2] for name in services()} - {""} == PORTS
    for port in PORTS:
        service = services()[f"headlight-{port}"]
        assert service["command"][-2:] == ["--port", port]
        assert f":{port}/healthz" in service["healthcheck"]["test"][-1]
    said = (DEPLOY / "README.md").read_text("utf-8")
    assert set(re.findall(r"headlight@(\d+)", said)) == PORTS
    source, inside, *_ = services()["nginx"]["volumes"][0].split(":")
    assert (DEPLOY / source).samefile(DEPLOY / "nginx.conf")
    assert inside == "/etc/nginx/conf.d/default.conf", "else the image's own server is there too"


def test_no_container_fills_the_disk_with_its_log() -> None:
    for name, each in services().items():
        assert each["logging"]["options"] == {"max-size": "10m", "max-file": "3"}, name


def test_containers_share_their_classes() -> None:
    redis = iter(services()["redis"]["command"][1:])
    told = dict(zip(redis, redis))
    apps = [each for name, each in services().items() if name.startswith("headlight-")]
    asked = {from_environment(each["environment"]).redis for each in apps}
    assert asked == {f"redis://{told['--bind']}:{told['--port']}/0"}
    assert told["--bind"] == "127.0.0.1" and told["--save"] == "" and told["--appendonly"] == "no"
    lines = (ROOT / "requirements-classes.txt").read_text("utf-8").splitlines()
    (asked,) = [Requirement(line) for line in lines if not line.startswith("#")]
    assert "-r requirements.lock" in (ROOT / "Dockerfile").read_text("utf-8")
    assert f"\n{asked.name}==" in (ROOT / "requirements.lock").read_text("utf-8")


def test_no_container_has_more_rights_than_it_needs() -> None:
    (tasks,) = unit()["TasksMax"]
    for name, each in services().items():
        assert each["read_only"] is True and each["cap_drop"] == ["ALL"], name
        assert each["security_opt"] == ["no-new-privileges:true"], name
        assert 0 < each["pids_limit"] <= int(tasks) and each["mem_limit"], name
        assert name == "nginx" or "cap_add" not in each, name
    assert services()["headlight-8601"]["pids_limit"] == int(tasks)
    assert set(services()["nginx"]["cap_add"]) == set(CAPABILITIES)
    # Where it writes is in memory: its process number, and what it has of requests and answers.
    assert {"/run", "/var/cache/nginx"} <= set(services()["nginx"]["tmpfs"])


@contextmanager
def proxying(
    folder: Path, http: str, first: str = "", before: Sequence[str] = ()
) -> Iterator[subprocess.Popen]:
    """nginx with what its http block says, its files in a folder, behind another command."""
    conf, errors = folder / "nginx.conf", folder / "errors"
    http = http.replace("/var/log/nginx", str(folder))
    conf.write_text(
        f"daemon off; {first} pid {folder}/pid; error_log {errors};\n"
        f"events {{}}\nhttp {{ {http} }}\n"
    )
    process = subprocess.Popen([*before, NGINX, "-p", str(folder), "-c", str(conf), "-e", errors])
    try:
        yield process
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.skipif(
    NGINX is None or shutil.which("setpriv") is None or os.geteuid() != 0,
    reason="nginx, setpriv or the rights to give rights away are not here",
)
def test_nginx_runs_with_these_capabilities_and_no_others(tmp_path: Path) -> None:
    port = free_port()
    http = f"proxy_temp_path {tmp_path}/proxy;\n{PROXY.replace('8600', str(port))}"
    kept = ",".join(f"+{each.lower()}" for each in CAPABILITIES)
    bounds = ["--no-new-privs", "--inh-caps", "-all", "--bounding-set", f"-all,{kept}"]
    with proxying(tmp_path, http, "user nobody nogroup;", ["setpriv", *bounds]):
        for _ in range(200):
            with suppress(httpx2.HTTPError):
                # Nobody stands behind it.
                assert httpx2.get(f"http://127.0.0.1:{port}").status_code == 502
                return
            time.sleep(0.05)
        pytest.fail((tmp_path / "errors").read_text())


def test_the_unit_runs_what_is_here_with_settings_that_are_known() -> None:
    (program, run, script, *options), environment = united(8601)
    assert program == f"{ROOT}/.venv/bin/streamlit" and run == "run" and (ROOT / script).is_file()
    assert re.search(r"^streamlit\b", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE)
    known = {name for option in main_run.params for name in option.opts}
    given = dict(zip(options[::2], options[1::2]))
    assert given == {"--server.address": "127.0.0.1", "--server.port": "8601"}
    assert given.keys() <= known
    ours = {name for name in environment if name.startswith(PREFIX)}
    assert ours <= {f"{PREFIX}{each.name.upper()}" for each in fields(Settings)}
    assert environment.keys() - ours == {"PYTHONDONTWRITEBYTECODE", "XDG_CACHE_HOME"}
    settings = from_environment(environment)
    assert settings.public and settings.max_sessions < Settings().max_sessions
    # Its cache and its readers' threads have room in what the unit allows.
    (memory,), (tasks,) = unit()["MemoryMax"], unit()["TasksMax"]
    assert memory == "3G" and settings.cache_bytes < 3 * 2**30 / 4
    assert int(tasks) >= 2 * settings.max_sessions
    # What a process starts may end without it, and a process itself comes again.
    said = unit()
    assert said["OOMPolicy"] == ["continue"] and said["Restart"] == ["always"]
    assert said["StartLimitIntervalSec"] == ["0"]


# With "$1", the folder in which what a deployment writes to lies under its own path "$2": all else
# is read-only for what follows, but a /tmp that is empty and in memory.
READ_ONLY = """set -e
mount --make-rprivate /
mount --bind "$1" /mnt
mount --bind "$1$2" "/mnt$2"
mount -o remount,bind,ro /mnt
mount -o remount,bind,ro /
mount -t tmpfs tmpfs /tmp
shift 2
exec "$@"
"""
UNSHARE = shutil.which("unshare") or ""


def read_only(folder: Path, path: str) -> list[str]:
    """What is put before a command, so that it may write below `path` alone: to `folder`."""
    (folder / path.lstrip("/")).mkdir(parents=True, exist_ok=True)
    return [UNSHARE, "--mount", "sh", "-c", READ_ONLY, "sh", str(folder), path]


def reads_smollm2(address: str) -> bool:
    """True where a stranger who asks for smollm2 gets its picture of a text."""
    asked = {"model": smollm2.NAME, "text": "The cat sat."}
    answer = httpx2.get(f"{address}/panel/attention.head.json", params=asked, timeout=300)
    return answer.status_code == 200


@needs_smollm2
@pytest.mark.skipif(
    not UNSHARE or os.geteuid() != 0 or ROOT.is_relative_to("/tmp"),
    reason="a view of the file system of one's own takes rights that are not here",
)
def test_smollm2_runs_where_each_deployment_can_write_and_nowhere_else(tmp_path: Path) -> None:
    """The unit converts it at its first use, and the image of the containers holds it."""
    port, folder = free_port(), tmp_path / "unit"
    command, settings = united(port)
    (cache,) = unit()["CacheDirectory"]
    path = f"/var/cache/{cache}"
    settings["XDG_CACHE_HOME"] = f"/mnt{settings['XDG_CACHE_HOME']}"
    settings["HOME"] = str(ROOT)  # of the user `headlight`, as README.md makes it
    serving = driver.running([*read_only(folder, path), *command], port, **settings)
    assert reads_smollm2(next(serving))
    next(serving, None)
    (made,) = (folder / path[1:] / "gguf").iterdir()

    port, containers = free_port(), tmp_path / "containers"
    command, settings = composed(port)
    (volume,) = services()["headlight-8601"]["volumes"]
    source, path = volume.split(":")
    declared = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["volumes"]
    assert source in declared, "by a name, so that it begins with what the image holds"
    home = path.removesuffix("/.cache/headlight")
    assert f"WORKDIR {home}\n" in (ROOT / "Dockerfile").read_text("utf-8")
    before = read_only(containers, path)
    shutil.move(made.parent, containers / path[1:] / "gguf")
    settings |= {"HOME": f"/mnt{home}", "XDG_CACHE_HOME": ""}
    serving = driver.running([*before, *command], port, **settings)
    assert reads_smollm2(next(serving))
    next(serving, None)

    # Where it can be neither read nor made it is on no list, and no sentence names a folder.
    port = free_port()
    command, settings = united(port)
    settings |= {"HOME": str(ROOT), "XDG_CACHE_HOME": "/var/cache"}
    wrapped = [*read_only(tmp_path / "nothing", "/nothing"), sys.executable, "-c"]
    asked = "from models.runtime import registry; print(registry.names(), registry.absent())"
    said = subprocess.run(
        [*wrapped, asked], cwd=ROOT, env=os.environ | settings, capture_output=True, text=True
    )
    assert said.returncode == 0 and f"'{smollm2.NAME}'" not in said.stdout, said.stderr
    assert "to 540 MB in /var/cache/headlight/gguf" in said.stdout


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
@pytest.mark.parametrize(
    "asked",
    [("verify",), ("security", "--offline=true", "--threshold=20")],
    ids=lambda each: each[0],
)
def test_systemd_takes_the_unit_and_calls_it_safe(tmp_path: Path, asked: tuple[str, ...]) -> None:
    written = (DEPLOY / "headlight@.service").read_text("utf-8")
    # Whoever runs the tests may have installed the project elsewhere than beside them.
    written = written.replace("/opt/headlight/.venv/bin/streamlit", "/bin/true")
    written = written.replace("/opt/headlight", str(ROOT))
    (tmp_path / "headlight@8601.service").write_text(written)
    said = subprocess.run(
        ["systemd-analyze", *asked, tmp_path / "headlight@8601.service"],
        capture_output=True,
        text=True,
    )
    about_it = [line for line in said.stderr.splitlines() if "headlight@" in line]
    assert said.returncode == 0 and not about_it, said.stdout + said.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the proxy keeps its files, its logs among them."""
    return tmp_path_factory.mktemp("nginx")


@pytest.fixture(scope="module")
def behind(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The proxy's address and those of two processes behind it, as the container's command and the
    unit's start them, each with room for one reader and no home to write to."""
    if NGINX is None:
        pytest.skip("nginx is not installed on this machine")
    serving = []
    for how in (composed, united):
        port = free_port()
        command, settings = how(port)
        settings = settings | {"HEADLIGHT_MAX_SESSIONS": "1", "HOME": "/proc/no home"}
        serving.append(driver.running(command, port, **settings))
    servers = [next(each) for each in serving]
    proxy = free_port()
    # A busy machine asks more slowly than the proxy allows in the long run; the burst is as it is.
    said = PROXY.replace("8600", str(proxy)).replace("rate=50r/s", "rate=5r/s")
    for port, server in zip(("8601", "8602"), servers):
        said = said.replace(port, server.rpartition(":")[2])
    temporary = "".join(
        f"{each}_temp_path {folder}/{each};\n"
        for each in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    address = f"http://127.0.0.1:{proxy}"
    with proxying(folder, f"access_log off;\n{temporary}{said}"):
        assert driver.answers(address)
        yield address, servers
    for each in serving:
        next(each, None)


def place(answer: httpx2.Response) -> str:
    """The process that a reader was sent to, as the cookie names it."""
    return re.search(r"headlight_place=(\d+)", answer.headers["set-cookie"]).group(1)


def stay_at(address: str, port: str, stay: ExitStack) -> None:
    """A reader's websocket through the proxy, with the cookie of their process, that asks for a
    page."""
    line = connect(
        f"{address.replace('http', 'ws')}/_stcore/stream",
        subprotocols=["streamlit", "xsrf"],
        additional_headers={"Cookie": f"headlight_place={port}"},
        max_size=None,
        max_queue=None,  # one who goes without reading on goes at once
    )
    stay.enter_context(line).send(BackMsg(rerun_script={}).SerializeToString())


def readers_at(server: str, n: int) -> bool:
    """True once a server says that it has so many readers, False where it does not within 30 s."""
    for _ in range(600):
        said = httpx2.get(f"{server}/metrics", timeout=30).text
        if f"\nheadlight_readers {n}\n" in said:
            return True
        time.sleep(0.05)
    return False


def test_a_reader_stays_at_one_process_and_a_full_one_is_passed_over(
    behind: tuple[str, list[str]],
) -> None:
    address, servers = behind
    ports = {server.rpartition(":")[2]: server for server in servers}
    assert all(readers_at(server, 0) for server in servers), "of a test before"
    with ExitStack() as stay:
        one = place(httpx2.get(address))
        (other,) = ports.keys() - {one}
        known = {"Cookie": f"headlight_place={one}"}
        for _ in range(4):
            assert place(httpx2.get(f"{address}/_stcore/health", headers=known)) == one
        stay_at(address, one, stay)
        assert readers_at(ports[one], 1) and readers_at(ports[other], 0)
        # That process has no room for another; the proxy gives the newcomer to the one that has.
        come = httpx2.get(address, headers=known)
        assert come.status_code == 200 and place(come) == other
        stay_at(address, other, stay)
        assert readers_at(ports[other], 1)
        assert httpx2.get(address).status_code == 503


def test_a_figure_is_the_same_from_every_process_and_anyone_may_keep_it(
    behind: tuple[str, list[str]],
) -> None:
    address, servers = behind
    assert all(readers_at(each, 0) for each in servers), "both have room"
    figure = "/panel/attention.head.json?text=The+cat+sat."
    said = [httpx2.get(f"{each}{figure}", timeout=60) for each in (address, *servers)]
    assert {each.status_code for each in said} == {200}
    assert len({(each.content, each.headers["etag"]) for each in said}) == 1
    assert "set-cookie" not in said[0].headers
    assert "public" in said[0].headers["cache-control"]


def test_the_proxy_writes_down_who_came_and_no_text(
    behind: tuple[str, list[str]], folder: Path
) -> None:
    address, _ = behind
    link = {"text": "nobody else reads this sentence"}
    httpx2.get(
        f"{address}/positions", params=link, headers={"Referer": f"{address}/?text=sentence"}
    )
    for _ in range(100):
        if "/positions" in (written := (folder / "access.log").read_text()):
            break
        time.sleep(0.05)
    assert "GET /positions " in written and written.startswith("127.0.0.1")
    assert "sentence" not in written and "text=" not in written
    # An error of one request is told with the whole of it.
    assert "/error.log crit;" in PROXY


def test_the_proxy_bounds_what_one_client_asks_and_lets_a_school_in(
    behind: tuple[str, list[str]],
) -> None:
    """A class of 60 opens a page and its addresses at once; one that goes on and on is refused."""
    address, _ = behind
    at_once = 60 * 8  # the page, the server's health, its settings, the session, the class
    client = HTTPConnection(address.removeprefix("http://"), timeout=30)

    def status(path: str) -> int:
        client.request("GET", path)
        with client.getresponse() as answer:
            answer.read()
        return answer.status

    assert 429 not in [status("/class/news") for _ in range(at_once)]
    assert 429 in (status("/class/news") for _ in range(6000)), "nothing bounds one client"
    # What a browser keeps is not counted.
    assert status("/static/nothing.js") == 404
    client.close()


def test_the_proxy_bounds_the_open_lines_of_a_client_and_an_ipv6_network_is_one() -> None:
    (bound,) = re.findall(r"^    limit_conn headlight_connections (\d+);", PROXY, re.MULTILINE)
    assert 2 * 60 < int(bound) <= 2000, "two lines of each of a class, and no end without a bound"
    assert "limit_conn_zone $headlight_client zone=headlight_connections" in PROXY
    (pattern,) = re.findall(r'"~(\^\(\?<net>.*?)"', PROXY)
    net = re.compile(pattern.replace("?<", "?P<"))
    one, other = "2001:db8:1:2:3:4:5:6", "2001:db8:1:ff::9"
    assert net.match(one)["net"] == net.match(other)["net"] == net.match("2001:db8:1::9")["net"]
    assert net.match("2001:db8::1")["net"] == net.match("2001:db8::ffff:9")["net"]
    for single in ("192.0.2.1", "::1", "::ffff:192.0.2.1"):
        assert not net.match(single), "it counts by itself"
