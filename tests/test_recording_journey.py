"""A recording's file in a real browser: saved from Export, opened again, and drawn in the tabs that
it is enough for."""

from __future__ import annotations

from pathlib import Path

from conftest import read_once
from driver import GRID, MARKS, PICTURE, Visitor
from playwright.sync_api import expect

from models.contract.recording_file import from_npz, to_npz

pytestmark = MARKS
TEXT = "The animal was tired."


def choose(visitor: Visitor, file: Path) -> None:
    """Choose a file in the dialog, as a reader does."""
    page = visitor.page
    page.locator(".st-key-model_menu button").first.click()
    page.get_by_role("button", name="Open a recording …").click()
    page.get_by_role("dialog").locator("input[type=file]").set_input_files(file)


def test_what_was_saved_is_opened_and_drawn(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.visit("heads", f"{PICTURE}[data-token]", model="decoder", text=TEXT).page
    saved = visitor.export("All activations (NPZ)").read_bytes()
    assert from_npz(saved) == read_once("decoder").record(TEXT)
    (tmp_path / "it.npz").write_bytes(saved)
    (tmp_path / "none.npz").write_bytes(saved[:-9])
    page.goto(f"{visitor.server}/")
    page.wait_for_selector(f"{GRID}[data-token]")
    visitor.at_rest()

    choose(visitor, tmp_path / "none.npz")
    expect(page.get_by_role("dialog")).to_contain_text("no .npz file, or a damaged one")
    page.get_by_role("dialog").locator("input[type=file]").set_input_files(tmp_path / "it.npz")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(".st-key-model_menu")).to_contain_text("decoder (recording)")
    expect(page.locator(f"{PICTURE}[data-token]").first).to_be_visible()
    assert page.locator("textarea").first.input_value() == TEXT
    visitor.at_rest()
    assert from_npz(visitor.export("All activations (NPZ)").read_bytes()).text == TEXT

    page.get_by_role("tab", name="One head").click()
    page.wait_for_selector("[data-panel='anatomy.weight'][data-token]")
    assert page.locator(".st-key-rows").count() == 0, "a recording holds no weights of a head"
    page.get_by_role("link", name="Architecture").first.click()
    page.wait_for_selector("[data-panel='architecture.flow'][data-token]")
    page.get_by_role("tab", name="Residual stream").click()
    page.wait_for_selector("[data-panel='residual.updates'][data-token]")
    visitor.at_rest()
    page.reload()
    page.wait_for_selector("text=which is not here")  # it was of that visit
    assert not visitor.wrong()


def test_a_second_file_stands_beside_the_first(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.visit("heads", f"{GRID}[data-token]").page
    for name in ("encoder", "translator"):
        (tmp_path / f"{name}.npz").write_bytes(to_npz(read_once(name).record(TEXT)))
        choose(visitor, tmp_path / f"{name}.npz")
        expect(page.locator(".st-key-model_menu")).to_contain_text(f"{name} (recording)")
        visitor.at_rest()
    page.locator(".st-key-model_menu button").first.click()
    page.get_by_role("button", name="encoder (recording)").click()
    page.wait_for_selector(f"{GRID}[data-token]")
    expect(page.locator(".st-key-model_menu")).to_contain_text("encoder (recording)")
    assert not visitor.wrong()
