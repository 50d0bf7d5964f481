"""The entry of a bibliography: what it names, and that CITATION.cff says the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from conftest import read_once

import headlight
from explorer import citation


def test_it_names_version_model_weights_and_panel() -> None:
    encoder = read_once("encoder")
    recording = encoder.record("Ram pushed Hari")
    panel = headlight.panels.attention.head(recording, layer=1, head=2)
    plain, of_model, of_panel = (headlight.cite(each) for each in (None, encoder, panel))
    weights = f"model encoder, weights {encoder.card.fingerprint}"
    assert headlight.cite(recording) == headlight.cite("encoder") == of_model
    assert weights in of_model and f"panel attention.head; {weights}" in of_panel
    keys = ("headlight", "headlight-encoder", "headlight-encoder-attention.head")
    for each, key in zip((plain, of_model, of_panel), keys):
        assert each.startswith(f"@misc{{{key},\n") and each.count("{") == each.count("}")
        assert f"howpublished = {{Software, version {headlight.__version__}}}" in each
    assert "note" not in plain
    with pytest.raises(TypeError, match="a recording is what"):
        headlight.cite(5)


def test_signs_of_latex_are_spelled_out() -> None:
    assert citation._in_latex("hub:a_b 100% {x}") == r"hub:a\_b 100\% \{x\}"
    assert re.fullmatch(r"\\textbackslash\{\}", citation._in_latex("\\"))


def test_it_says_what_the_citation_file_says() -> None:
    file = yaml.safe_load((Path(__file__).parent.parent / "CITATION.cff").read_text("utf-8"))
    assert (file["title"], file["authors"][0]["name"]) == (citation.TITLE, citation.AUTHOR)
    assert str(file["date-released"]) == citation.RELEASED


def test_a_text_in_the_place_of_an_id_is_told_how_to_get_the_id() -> None:
    decoder = read_once("decoder")
    recording = decoder.record("My sister said that")
    with pytest.raises(TypeError, match=r"a word is its id here.*first_token\(' she'\)\[0\]"):
        decoder.attribute(recording, "decoder", -1, " she")
    ids, donor = recording.streams[0].ids, decoder.record("My brother said that").streams[0].ids
    he, she = decoder.first_token(" he")[0], decoder.first_token(" she")[0]
    by_ids, by_text = (
        decoder.patch_heads(*texts, "self", -1, he, she).donor
        for texts in ((ids, donor), ("My sister said that", "My brother said that"))
    )
    assert by_ids == by_text
