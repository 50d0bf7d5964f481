"""Preview of a shared link before anybody opens it: title, description and picture card, in the
head of its page. Sites that show a link read nothing else, and want whole addresses, so that only a
server says it that knows its own (`HEADLIGHT_ADDRESS`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from urllib.parse import parse_qsl, urlencode

from explorer.analysis.facts import RecordingFacts
from explorer.app.state import models, url_state
from explorer.components import bundle
from explorer.panels import address, link_words
from explorer.panels.choice import EVERY
from explorer.text import places
from explorer.wording.markdown_escape import well_formed
from explorer.wording.templates import sentences
from models import model_names
from models.example_texts import DEFAULT_MODEL
from models.runtime.caching import loaded
from models.runtime.run import Run

WORDS = sentences("server", "shared")
CARD = "panel/card.headline.png"  # below the app's address
AT_CARD = ("attention", "layer", "head", "token")  # what it takes of a link
OF_CARD = ("edits", "target", *AT_CARD)  # and of what is recorded
LONGEST_TITLE = 60  # letters of a text
LONGEST_QUERY = 6000  # letters of an address, as far as it is read
TITLE = re.compile(r"<title>[^<]*</title>")


def titled(page: str, path: str, query: str, address: str) -> str:
    """Streamlit's page with what a link to this path and query says of itself; the same page where
    this server does not know its address, ""."""
    if not address:
        return page
    return TITLE.sub(lambda _: _head(path, query, address.rstrip("/")), page, count=1)


def _head(path: str, query: str, root: str) -> str:
    """The title and the elements on it."""
    parameters = _parameters(query)
    place = path.strip("/") or places.FIRST
    tab = places.tab_in(place, parameters.get("tab", ""))
    text, model = url_state.text_and_model(parameters, tab)
    model = model if models.is_allowed(model) else DEFAULT_MODEL
    sentence = _line(parameters.get("text", ""))
    of = WORDS("text", text=sentence) if sentence else places.PLACES[place].title
    title = WORDS("title", of=_headline(model, text, parameters) or of)
    about = WORDS("about", model=model_names.title(model))
    words = {"text": text, "model": model}
    words |= {name: parameters[name] for name in OF_CARD if parameters.get(name)}
    own = f"{root}{'/' if place == places.FIRST else path}"
    size = bundle.card_layout()
    properties = {
        "og:type": "website",
        "og:site_name": WORDS("name"),
        "og:title": title,
        "og:description": about,
        "og:url": f"{own}?{urlencode(parameters)}" if parameters else own,
        "og:image": f"{root}/{CARD}?{urlencode(words)}",
        "og:image:type": "image/png",
        "og:image:width": size["wide"],
        "og:image:height": size["high"],
        "og:image:alt": title,
    }
    metas = [f'<meta property="{name}" content="{_safe(is_)}">' for name, is_ in properties.items()]
    named = {"description": about, "twitter:card": "summary_large_image"}
    metas += [f'<meta name="{name}" content="{_safe(is_)}">' for name, is_ in named.items()]
    return f"<title>{_safe(title)}</title>{''.join(metas)}"


def _headline(model: str, text: str, parameters: Mapping[str, str]) -> str:
    """Headline of the card of a link, with its number, where this server has read the text and all
    that it says; "" elsewhere, and of edits, which take passes of their own."""
    target = parameters.get("target") or None
    if parameters.get("edits") or not models.is_loaded(model):
        return ""
    if not loaded(model).has_recording(text, target):
        return ""
    run = Run(model, text, target=target)
    if not RecordingFacts(run.recording()).has_headline():
        return ""
    words = {name: parameters[name] for name in AT_CARD if parameters.get(name)}
    try:
        return address.from_words("card.headline", run, words).finding.removesuffix(".")
    except ValueError:  # of a head that is not there
        return ""


def _parameters(query: str) -> dict[str, str]:
    """The parameters of an address, of each the first one."""
    pairs = parse_qsl(query[:LONGEST_QUERY])
    named = {name: well_formed(value) for name, value in reversed(pairs)}
    return {name: word for name, word in link_words.in_todays_words(named).items() if word != EVERY}


def _line(text: str) -> str:
    """A text as one line that a title has room for."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= LONGEST_TITLE else f"{line[: LONGEST_TITLE - 1]}…"


def _safe(value: object) -> str:
    return escape(f"{value}", quote=True)
