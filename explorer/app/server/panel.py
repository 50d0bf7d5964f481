"""A panel by its address, as one of the files that it leaves the app as:
`GET /panel/attention.head.json?text=...&layer=1`.

The words of the address are those of the app's own pages. Whoever asks is a reader: the text has
the same limit, a computation goes through the same queue, and a server without room for another
reader has none for them. What an answer holds follows from its address, the model's weights and
this version, and its ETag is a digest of these: a browser or a proxy that has it gets 304 without a
computation."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from math import inf

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from explorer.app.server.headers import FRAMES
from explorer.app.server.limits import RETRY_SECONDS, SlotCounter, reader_group, slots
from explorer.app.state import event_log, garbage_collection, models, scheduling
from explorer.app.state.scheduling import Cancelled, cancellable, heavy_models, memory_budget
from explorer.app.state.settings import settings
from explorer.components import bundle
from explorer.figures import html_export
from explorer.panels import address, lessons, link_words, spec, worksheet
from explorer.text import lesson
from explorer.wording.markdown_escape import well_formed
from explorer.wording.templates import sentences
from models.contract.cancellation import NoRoom, TimeLimit
from models.example_texts import DEFAULT_MODEL, OPENING_TEXT
from models.runtime import caching
from models.runtime.caching import loaded
from models.version import VERSION

WORDS = sentences("server", "panels")
MAX_AT_ONCE = 8  # requests that are computed or wait for it, of all readers
SECONDS = 3600  # for which a browser or a proxy need not ask again
LONGEST_REFUSAL = 300  # characters
PIECE = 2**18  # bytes of a file that are unpacked at a time
answering = SlotCounter(MAX_AT_ONCE, makes_way=False)  # what was begun goes on
_threads = CapacityLimiter(2 * MAX_AT_ONCE)
DRAWN = ("html", "svg", "pdf", "png")  # what the browser's code makes
# A document and a picture are pages of their own: they run their code apart from the app, and ask
# for nothing.
DOCUMENT = {
    "Content-Security-Policy": (
        f"{html_export.POLICY}; frame-ancestors {' '.join(FRAMES)}; "
        "sandbox allow-scripts allow-downloads"
    ),
    "Cross-Origin-Opener-Policy": "unsafe-none",  # no browser opens a sandbox under another one
}


class Refused(ValueError):
    """A request that is refused in a sentence, with its status."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class PanelFile:
    """A panel as a file: its name, and its bytes, gzipped. etag: the name of these bytes. size:
    their number, unpacked."""

    name: str
    packed: bytes
    etag: str
    size: int


@dataclass(frozen=True)
class PanelRequest:
    """Request of an address: a panel's name, the ending of its file, the words of the run, and
    those of the panel's choices, (name, word) in the order of the names. models: those that it
    runs. sheet: that of a picture."""

    name: str
    ending: str
    of_run: tuple[tuple[str, str], ...]
    choices: tuple[tuple[str, str], ...]
    models: tuple[str, ...]
    sheet: spec.Sheet = spec.WHOLE

    @property
    def key(self) -> tuple[object, ...]:
        """All that determines the answer. Its models are loaded."""
        code = bundle.folder() if self.ending in DRAWN else ""
        weights = (loaded(model).card.fingerprint for model in self.models)
        return ("panel file", VERSION, code, *weights, *vars(self).values())

    def make(self) -> tuple[str, bytes]:
        """The name of the file without its ending, and what it holds."""
        panel = address.from_words(self.name, address.run_of(dict(self.of_run)), dict(self.choices))
        return panel.file, spec.FILES[self.ending].make(panel, self.sheet)


PLACE = re.compile(r"[0-9]{1,6}")  # of a word in a text


@dataclass(frozen=True)
class WorksheetRequest(PanelRequest):
    """Request of the worksheet of a lesson that comes with the app, on a text and a model."""

    def make(self) -> tuple[str, bytes]:
        """As of a panel."""
        word = dict(self.choices)["lesson_word"]
        run = address.run_of(dict(self.of_run))
        on = lessons.on(run, self.name, int(word) if PLACE.fullmatch(word) else None)
        made = worksheet.within(on, settings().max_chars, models.has_every_visitor)
        return f"headlight-{self.name}", worksheet.document(made).encode()


def parse_worksheet(name: str, parameters: list[tuple[str, str]]) -> PanelRequest:
    """Request of a worksheet by the name of its lesson, on the text that the app opens on where the
    address has none: it can be typed off a wall. Raises as `parse`."""
    if name not in lessons.written():
        raise Refused(404, lesson.REFUSALS("unknown", name=name))
    words = {key: well_formed(word) for key, word in parameters}
    if any(len(word) > (most := settings().max_chars) for word in words.values()):
        raise Refused(414, WORDS("too_long", name="text", n=len(words.get("text", "")), most=most))
    model = _offered(words.get("model") or DEFAULT_MODEL)
    of_run = tuple(sorted({"text": words.get("text", OPENING_TEXT), "model": model}.items()))
    chosen = (("lesson_word", words.get("lesson_word", "")),)
    return WorksheetRequest(name, "html", of_run, chosen, (model,))


def etag_of(key: tuple[object, ...]) -> str:
    """A name of an answer, weak: its bytes are packed or not."""
    return f'W/"{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}"'


def parse(file: str, parameters: list[tuple[str, str]]) -> PanelRequest:
    """Request that the name of a file and the parameters of an address make. Raises Refused for a
    file that is not there, for a text that is too long, and for a model that not every visitor has;
    ValueError for a choice that is not there."""
    name, _, ending = file.rpartition(".")
    if ending not in spec.FILES:
        raise Refused(404, WORDS("no_ending", names=", ".join(spec.FILES), ending=ending))
    if name not in spec.panel_names():
        raise Refused(404, WORDS("no_panel", name=name))
    words: dict[str, str] = {}
    for parameter, word in parameters:
        if parameter in words:
            raise Refused(400, WORDS("repeated", name=parameter))
        if len(word) > (most := settings().max_chars):
            raise Refused(414, WORDS("too_long", name=parameter, n=len(word), most=most))
        words[parameter] = well_formed(word)
    of_run = {each: words.pop(each) for each in address.OF_RUN if each in words}
    sheet = spec.Sheet.of_words(words) if spec.FILES[ending].is_picture else spec.WHOLE
    words = link_words.with_key(words)
    address.expect_words(name, words)
    of_run["model"] = _offered(of_run.get("model") or DEFAULT_MODEL)
    others = [each for each in address.other_models(name) if words.get(each)]
    words |= {each: _offered(words[each]) for each in others}
    return PanelRequest(
        name,
        ending,
        tuple(sorted(of_run.items())),
        tuple(sorted(words.items())),
        (of_run["model"], *(words[each] for each in others)),
        sheet,
    )


def _offered(model: str) -> str:
    """A model's name in the one way that `load` uses. Raises Refused for one that not every visitor
    has."""
    model = models.canonical_name(model)
    if not models.has_every_visitor(model):
        raise Refused(404, WORDS("not_offered", model=model))
    return model


Parse = Callable[[str, list[tuple[str, str]]], PanelRequest]


async def file(request: Request, parse: Parse) -> Response:
    """A panel or a worksheet as a file, 304 where the client has it, or a sentence that says why
    there is none."""
    start = time.perf_counter()
    try:
        query = parse(request.path_params["file"], request.query_params.multi_items())
        return await _answer(request, query)
    except Cancelled:  # nobody reads it
        return Response(status_code=400)
    except ValueError as why:
        status = why.status if isinstance(why, Refused) else 400
        if isinstance(why, NoRoom):
            event_log.log_refusal("memory", page=address.PATH)
            status = 503 if why.passing else 413
        headers = {"Retry-After": str(RETRY_SECONDS)} if status in (429, 503) else {}
        return PlainTextResponse(_line(str(why)), status, {"Cache-Control": "no-store", **headers})
    # Any fault of ours. It is logged by its kind and place alone, since the server's own traceback
    # may hold the text.
    except Exception as error:
        event_log.log_exception(error)
        return PlainTextResponse(WORDS("failed"), 500, {"Cache-Control": "no-store"})
    finally:
        event_log.count_seconds("panel", time.perf_counter() - start)


def _line(why: str) -> str:
    """A sentence as one line of a bounded length: it may repeat what was asked."""
    line = "".join(each if each.isprintable() else "?" for each in " ".join(why.split()))
    return line if len(line) <= LONGEST_REFUSAL else f"{line[:LONGEST_REFUSAL]}…"


async def _answer(request: Request, query: PanelRequest) -> Response:
    file = None
    if all(map(models.is_loaded, query.models)):
        if _has(request, etag := etag_of(query.key)):
            return Response(status_code=304, headers=_headers(etag))
        file = caching.cache.peek(query.key)
    file = file or await _new_file(request, query)
    headers = _headers(file.etag)
    if _has(request, file.etag):
        return Response(status_code=304, headers=headers)
    headers["Content-Disposition"] = f'inline; filename="{file.name}"'
    headers |= DOCUMENT if query.ending in ("html", "svg") else {}
    media_type = spec.FILES[query.ending].media_type
    if "gzip" in request.headers.get("accept-encoding", ""):
        headers["Content-Encoding"] = "gzip"
        return Response(file.packed, headers=headers, media_type=media_type)
    headers["Content-Length"] = str(file.size)
    return StreamingResponse(_unpacked(file.packed), headers=headers, media_type=media_type)


def _unpacked(packed: bytes) -> Iterator[bytes]:
    """The bytes that were packed, piece by piece: whoever reads slowly holds no more."""
    with gzip.open(BytesIO(packed)) as file:
        while piece := file.read(PIECE):
            yield piece


def _has(request: Request, etag: str) -> bool:
    """True for a client that has this answer."""
    return etag.removeprefix("W/") in request.headers.get("if-none-match", "")


def _headers(etag: str) -> dict[str, str]:
    # Before a server for a few may stand a proxy that asks who one is: it must not hand this on.
    caching_rule = f"{'public' if settings().public else 'private'}, max-age={SECONDS}"
    return {"ETag": etag, "Cache-Control": caching_rule, "Vary": "Accept-Encoding"}


async def _new_file(request: Request, query: PanelRequest) -> PanelFile:
    """The file, made in a thread of its own as long as its reader is there. Raises Refused where
    there is no room, Cancelled where the reader has gone."""
    group = reader_group(request.scope)
    if not (slots.serves(group) or slots.admits(group)):
        event_log.log_refusal("full", page=address.PATH)
        raise Refused(503, sentences("server", "pages")("full", n=slots.limit))
    if not answering.admits(group):
        event_log.log_refusal(address.PATH)
        raise Refused(429, WORDS("busy"))
    answering.activate(slot := answering.take(group))
    gone = threading.Event()
    watch = asyncio.create_task(_until_gone(request, gone))
    try:
        return await to_thread.run_sync(_computed, query, gone, limiter=_threads)
    finally:
        watch.cancel()
        answering.leave(slot)


async def _until_gone(request: Request, gone: threading.Event) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    gone.set()


def _computed(query: PanelRequest, gone: threading.Event) -> PanelFile:
    """The file, made as in a reader's run: in their queue, and kept."""
    began = inf

    def check() -> None:
        if gone.is_set():
            raise Cancelled
        if time.monotonic() - began > (seconds := settings().max_seconds):
            raise TimeLimit(scheduling.WORDS("too_long", seconds=seconds))

    run = scheduling.script_queue.run(bool(heavy_models & {*query.models}), lambda n: check())
    with cancellable(check), models.of_all_visitors(), run, memory_budget.work():
        began = time.monotonic()
        garbage_collection.mark_served()
        return caching.get(key := query.key, lambda: _packed(query, etag_of(key)))


def _packed(query: PanelRequest, etag: str) -> PanelFile:
    own, data = query.make()
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{own}.{query.ending}")
    return PanelFile(name, gzip.compress(data, 6, mtime=0), etag, len(data))


async def panel(request: Request) -> Response:
    """A panel as a file."""
    return await file(request, parse)


async def sheet(request: Request) -> Response:
    """A worksheet as a document."""
    return await file(request, parse_worksheet)


ROUTES = [Route(f"/{address.PATH}/{{file}}", panel), Route("/worksheet/{file}", sheet)]
