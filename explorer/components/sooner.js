// @ts-check
// The first page's two pictures of a text that was sent just now, before the page itself has run.

import { showSooner } from "./mount.js";
import { decode } from "./wire.js";

const ROOT = new URL("../../", import.meta.url); // of the app, wherever a proxy put it

const PAGES = ["/", "/attention"];
// What an address may hold beside these is a choice that the pictures are not made with ahead.
const MEANT = ["layer", "head", "view", "scale", "tone"];
const GONE = ["text", "model", "token", "source", "anatomy_cell"]; // with a new text, or said by itself
const LONGEST = 1000; // characters: a longer text takes as long as its page
const FIRST_MODEL = "encoder";

/**
 * Ask for the pictures of a text, and draw them if it is still `wanted` when they come.
 * @param {string} text
 * @param {() => boolean} wanted
 */
export async function sooner(text, wanted) {
  const { pathname, search } = window.location;
  const at = Object.fromEntries(new URLSearchParams(search));
  const known = Object.keys(at).every((name) => MEANT.includes(name) || GONE.includes(name));
  if (!PAGES.includes(pathname) || !known || !text.trim() || text.length > LONGEST) return;
  const asked = Object.fromEntries(Object.entries(at).filter(([name]) => MEANT.includes(name)));
  const body = JSON.stringify({ text, model: at.model || FIRST_MODEL, asked });
  try {
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(new URL("ahead", ROOT), { method: "POST", headers, body });
    if (answer.status !== 200) return;
    const { blocks } = decode(new Uint8Array(await answer.arrayBuffer()));
    if (!wanted()) return;
    for (const [name, data] of Object.entries(blocks)) showSooner(name, data);
  } catch {
    // the page brings them
  }
}
