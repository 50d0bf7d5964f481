"""A class over HTTP: what is answered to whom, to hostile senders too, and its line of server-sent
events."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack

import httpx2
import pytest

from explorer.app.classroom.codes import ALPHABET, CODE_LENGTH
from explorer.app.classroom.routes import parse_question
from explorer.app.classroom.service import MOST_LINES

pytestmark = pytest.mark.slow
SCRIPT = "<script>alert(1)</script>"
QUESTION = {"text": SCRIPT, "choices": ["a", SCRIPT, "c"], "right": 1, "says": SCRIPT, "to": "/"}


@pytest.fixture
def ask(server: str) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server, timeout=30) as client:
        yield client


def sent(ask: httpx2.Client, what: str, **said: object) -> httpx2.Response:
    return ask.post(f"/class/{what}", json=said)


def until(ask: httpx2.Client, made: dict, name: str, value: object) -> None:
    """Wait until the teacher sees this value."""
    for _ in range(200):
        if (seen := first(ask, made["code"], made["watch"])[name]) == value:
            return
        time.sleep(0.02)
    raise AssertionError(f"{name} is {seen}, not {value}")


def first(ask: httpx2.Client, code: str, word: str) -> dict:
    """The first thing said on a line."""
    with ask.stream("GET", "/class/news", params={"code": code, "as": word}) as line:
        assert line.headers["content-type"].startswith("text/event-stream")
        assert line.headers["x-accel-buffering"] == "no" and "content-encoding" not in line.headers
        for said in line.iter_lines():
            if said.startswith("data: "):
                return json.loads(said[6:])
    raise AssertionError("nothing was said")


def test_a_class_from_start_to_end(ask: httpx2.Client) -> None:
    made = sent(ask, "start").json()
    assert re.fullmatch(f"[{ALPHABET}]{{{CODE_LENGTH}}}", made["code"])
    student = sent(ask, "join", code=made["code"].lower()).json()
    assert student["at"] == "/" and "key" not in student and "watch" not in student
    rule = {"code": made["code"], "key": made["key"]}
    assert sent(ask, "move", **rule, at="/architecture?text=a%20b").status_code == 200
    number = sent(ask, "ask", **rule, question=QUESTION).json()["number"]
    seen = first(ask, made["code"], student["student"])
    assert seen["at"] == "/architecture?text=a%20b" and seen["question"]["text"] == SCRIPT
    assert "right" not in seen["question"]
    answer = {"code": made["code"], "student": student["student"], "number": number}
    assert sent(ask, "answer", **answer, choice=1).status_code == 200
    # It counts while the student is connected; the line above is closed, which takes a moment.
    until(ask, made, "tally", [0, 0, 0])
    part = {"code": made["code"], "as": student["student"]}
    with ask.stream("GET", "/class/news", params=part):
        until(ask, made, "tally", [0, 1, 0])
    until(ask, made, "tally", [0, 0, 0])
    assert sent(ask, "end", **rule).status_code == 200
    assert first(ask, made["code"], student["student"]) == {"over": True}
    assert sent(ask, "move", **rule, at="/").status_code == 404


def test_a_picture_is_passed_on_as_it_came_and_is_bounded(ask: httpx2.Client) -> None:
    made = sent(ask, "start").json()
    student = sent(ask, "join", code=made["code"]).json()["student"]
    kind = {"content-type": "application/octet-stream"}
    headers = {"x-headlight-key": made["key"], **kind}
    at = {"code": made["code"], "at": "/lens"}
    assert ask.post("/class/show", params=at, headers=headers, content=b"x").status_code == 400
    at["at"] = "/learn?text=a"
    for refused, more, content in (
        (404, kind, b"x"),
        (404, {**kind, "x-headlight-key": made["watch"]}, b"x"),
        (400, {**headers, "content-type": "text/plain"}, b"x"),
        (400, headers, b"x" * 600_000),
    ):
        told = ask.post("/class/show", params=at, headers=more, content=content)
        assert told.status_code == refused and told.json()["problem"]
    picture = SCRIPT.encode() + bytes(range(256))
    assert ask.post("/class/show", params=at, headers=headers, content=picture).is_success
    name = first(ask, made["code"], student)["picture"]
    part = {"code": made["code"], "as": student, "name": name}
    got = ask.get("/class/picture", params=part)
    assert got.content == picture and got.headers["content-type"] == "application/octet-stream"
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["cache-control"] == "no-store"
    assert ask.get("/class/picture", params={**part, "as": "x"}).status_code == 404
    assert ask.get("/class/picture", params={**part, "name": "x"}).status_code == 204
    assert ask.get("/class/show").status_code == ask.post("/class/picture").status_code == 405


LED_NOWHERE = (
    *("//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)"),
    *("/nothing", "/join", "/architecture/../x", "/architecture/", "/architecture#x"),
    *("/?text=" + "a" * 6000, "/?text=a\nb", "", None, 7, ["/"]),
)


def test_a_class_is_led_to_pages_of_the_app_alone(ask: httpx2.Client) -> None:
    made = sent(ask, "start").json()
    rule = {"code": made["code"], "key": made["key"]}
    for at in LED_NOWHERE:
        assert sent(ask, "move", **rule, at=at).status_code == 400, at
    assert first(ask, made["code"], made["watch"])["at"] == "/"
    sent(ask, "end", **rule)


NO_QUESTION: tuple[dict[str, object], ...] = (
    *({"text": text} for text in ("x" * 601, None)),
    *({"choices": each} for each in (["a"], ["a"] * 7, ["a", "x" * 161], "ab", [1, 2])),
    *({"right": right} for right in (3, -1, "1", True)),
    *({"model": model} for model in (1, "ab", {"a": 1}, [1], [["a"]], [["a", 0.5, 1]])),
    *({"model": [["a", p]]} for p in ("0.5", True, None, 1.5, -0.1, 10**400)),
    {"model": [[1, 0.5]]},
    {"model": [["a", 0.1]] * 7},
    {"says": {}},
    {"to": "//evil.example"},
)


def test_a_question_is_one_or_it_is_refused() -> None:
    assert parse_question(QUESTION) == QUESTION
    for change in NO_QUESTION:
        with pytest.raises(ValueError, match=r"^[A-Z].*\.$"):
            parse_question(QUESTION | change)
    assert parse_question(QUESTION | {"head": "90/09"})["head"] == "90/09"
    for head in (["90/09"], "<svg>", "9" * 500, 9):
        with pytest.raises(ValueError, match=r"\.$"):
            parse_question(QUESTION | {"head": head})
    said = parse_question(QUESTION | {"model": [["a", 1], ["b", 0.25]]})
    assert said["model"] == [("a", 1.0), ("b", 0.25)]


def test_what_is_no_message_is_refused_and_nothing_breaks(ask: httpx2.Client) -> None:
    made = sent(ask, "start").json()
    plain = {"content-type": "application/json"}
    for body in (b"", b"[]", b"1", b"{", b"\xff\xfe", b"[" * 9000, b'{"code": ' + b'"a"' * 9000):
        assert ask.post("/class/join", content=body, headers=plain).status_code == 400
    # A page of another site can send forms and plain text, and no JSON.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        said = ask.post("/class/start", content=b"{}", headers={"content-type": kind})
        assert said.status_code == 400
    for wrong in ({"number": "1"}, {"number": True}, {"choice": 1.0}, {"choice": None}):
        said = {"code": made["code"], "student": "x", "number": 1, "choice": 0, **wrong}
        assert sent(ask, "answer", **said).status_code == 400
    assert sent(ask, "answer", code=made["code"], student={}, number=1, choice=0).status_code == 404
    for method in ("GET", "PUT", "DELETE"):
        assert ask.request(method, "/class/start").status_code == 405
    for name in ("nothing", "code.svg.png", "__class__"):
        assert ask.post(f"/class/{name}", json={}).status_code == 404
    huge = f'{{"model": [["a", 1{"0" * 400}]], "choices": ["a", "b"], "right": 0, "text": ""}}'
    body = f'{{"code": "{made["code"]}", "key": "{made["key"]}", "question": {huge}}}'
    refused = ask.post("/class/ask", content=body, headers=plain)
    assert refused.status_code == 400 and refused.json() == {"problem": "This is no question."}
    assert ask.post("/class/news", json={}).status_code == 405
    sent(ask, "end", code=made["code"], key=made["key"])


def test_a_code_is_told_from_none_by_joining_alone(ask: httpx2.Client) -> None:
    made = sent(ask, "start").json()
    other = "2222222" if made["code"] != "2222222" else "3333333"
    for path in ("/join/{}", "/class/news?code={}&as=x", "/class/code.svg?at=http://x/join/{}"):
        here, none = (ask.get(path.format(code)) for code in (made["code"], other))
        assert here.status_code == none.status_code and len(here.content) == len(none.content)
    wrong = [sent(ask, act, code=made["code"], key="x", at="/").json() for act in ("move", "end")]
    assert wrong == [sent(ask, act, code=other, key="x", at="/").json() for act in ("move", "end")]
    sent(ask, "end", code=made["code"], key=made["key"])


def test_the_page_to_join_on_is_light_and_takes_no_markup(ask: httpx2.Client) -> None:
    said = ask.get("/join/ABC-DEFG")
    assert 'value="ABC-DEFG"' in said.text and len(said.content) < 5000
    assert said.headers["cache-control"] == "no-store"
    assert 'value=""' in ask.get("/join/ABCDEF0").text
    assert ask.get("/join/%22%3E%3Cscript%3E").status_code == 404
    host = ask.base_url.netloc.decode()
    drawn = ask.get("/class/code.svg", params={"at": f"http://{host}/join/ABC-DEFG"})
    assert drawn.headers["content-type"].startswith("image/svg") and b"<path" in drawn.content
    for wrong in ("http://evil.example/", "javascript:1", "", f"http://{host}/" + "a" * 400):
        assert ask.get("/class/code.svg", params={"at": wrong}).status_code == 400


def test_one_student_holds_so_many_lines_and_counts_for_no_more(ask: httpx2.Client) -> None:
    made = sent(ask, "start").json()
    words = [sent(ask, "join", code=made["code"]).json()["student"] for _ in range(2)]
    with ExitStack() as stay:

        def open_line(word: str) -> Iterator[str]:
            asked = {"code": made["code"], "as": word}
            line = stay.enter_context(ask.stream("GET", "/class/news", params=asked)).iter_lines()
            next(said for said in line if said.startswith("data: "))
            return line

        one, *others = [open_line(words[0]) for _ in range(MOST_LINES)]
        other = open_line(words[1])
        newest = open_line(words[0])
        assert not [said for said in one if said.startswith("data: ")], "the oldest ends unsaid"
        until(ask, made, "here", 2)  # students, however many windows they have
        sent(ask, "move", code=made["code"], key=made["key"], at="/experiment")
        for line in (*others, other, newest):
            assert "/experiment" in next(said for said in line if said.startswith("data: "))


def steps(n: int, note: str = "for me alone") -> dict:
    item = {"address": "/?layer=1", "heading": "H", "says": "S", "note": note}
    return {"title": "T", "items": [{**item, "question": "Why so?", "answer": "So."}] * n}


def test_students_get_the_lesson_of_the_class_without_what_is_for_its_speaker(
    ask: httpx2.Client,
) -> None:
    made = sent(ask, "start").json()
    student = sent(ask, "join", code=made["code"]).json()["student"]
    part, rule = {"code": made["code"], "as": student}, {k: made[k] for k in ("code", "key")}
    at = "/?layer=1&lesson=~packed&lesson_step=2&lesson_word=3"
    sent(ask, "move", **rule, at=at)
    assert first(ask, made["code"], student)["at"] == "/?layer=1", "none is held yet"
    assert ask.get("/class/lesson", params=part).status_code == 204
    assert sent(ask, "hold", **rule, lesson=steps(2)).status_code == 200
    seen = first(ask, made["code"], student)
    assert seen["at"] == "/?layer=1&lesson=class&lesson_step=2"
    assert first(ask, made["code"], made["watch"])["at"] == at
    assert sent(ask, "join", code=made["code"]).json()["at"] == seen["at"]
    got = ask.get("/class/lesson", params=part)
    assert got.json() == {
        "title": "T",
        "items": [{"address": "/?layer=1", "heading": "H", "says": "S"}] * 2,
    }
    held = seen["held"]
    sent(ask, "hold", **rule, lesson=steps(3))
    assert first(ask, made["code"], student)["held"] not in ("", held)


def test_students_have_no_step_that_tells_what_the_class_is_not_to_know_yet(
    ask: httpx2.Client,
) -> None:
    """A step that says the covered word, and all after it, come when the class comes there."""
    made = sent(ask, "start").json()
    student = sent(ask, "join", code=made["code"]).json()["student"]
    part, rule = {"code": made["code"], "as": student}, {k: made[k] for k in ("code", "key")}
    covered = {"address": "/architecture?text=Hi&covered=2&token=2", "says": "Which word?"}
    items = [covered, covered, {"address": "/architecture?text=Hi", "says": "It is soup."}]
    items += [{"address": "/?text=Hi", "says": "soup reads it"}]
    sent(ask, "hold", **rule, lesson={"title": "T", "items": items})
    held = []
    for step, known in ((1, 2), (2, 2), (3, 4), (4, 4), (1, 2)):
        sent(ask, "move", **rule, at=f"/?lesson=lecture&lesson_step={step}")
        got = ask.get("/class/lesson", params=part).json()["items"]
        assert [each and each["says"] for each in got] == [
            each["says"] if at < known else None for at, each in enumerate(items)
        ]
        held.append(first(ask, made["code"], student)["held"])
    assert held[0] == held[1] == held[4] != held[2] == held[3], "a window asks for it again"


@pytest.mark.parametrize(
    "lesson",
    [
        None,
        [],
        {"title": "x"},
        {"title": "x", "items": [{"address": "https://elsewhere.example/"}]},
        {"title": "x", "items": [{"address": "/", "says": "x" * 5000}]},
        {"title": "x", "items": [{"address": "/"}] * 61},
        {"title": "x", "items": [{"address": "/", "says": "x" * 3900}] * 60},
    ],
)
def test_what_is_no_lesson_or_too_long_is_not_held(ask: httpx2.Client, lesson: object) -> None:
    made = sent(ask, "start").json()
    answer = sent(ask, "hold", code=made["code"], key=made["key"], lesson=lesson)
    assert answer.status_code == 400 and re.fullmatch(r"[A-Z][^\n]+\.", answer.json()["problem"])
    assert sent(ask, "hold", code=made["code"], key="no", lesson=steps(1)).status_code == 404
    stranger = {"code": made["code"], "as": made["watch"]}
    assert ask.get("/class/lesson", params=stranger).status_code == 404


def test_a_hostile_lesson_of_a_class_stays_words(ask: httpx2.Client) -> None:
    made = sent(ask, "start").json()
    student = sent(ask, "join", code=made["code"]).json()["student"]
    hostile = {"title": SCRIPT, "items": [{"address": "/", "says": SCRIPT + "\ud800"}]}
    body = json.dumps({"code": made["code"], "key": made["key"], "lesson": hostile})
    headers = {"Content-Type": "application/json"}
    assert ask.post("/class/hold", content=body, headers=headers).status_code == 200
    got = ask.get("/class/lesson", params={"code": made["code"], "as": student})
    assert got.headers["content-type"] == "application/json"
    assert got.json()["title"] == SCRIPT and got.json()["items"][0]["says"].startswith(SCRIPT)
