// @ts-check
// The pictures of a text that was sent just now, the two of the first page or the flow, before the
// page itself has run.

import { atRest } from "./class_snapshot.js";
import { isPrefetched, showSooner, takeBack } from "./mount.js";
import { decode } from "./codec.js";

const ROOT = new URL("../../", import.meta.url); // of the app, wherever a proxy put it

const GONE = ["text", "model", "token", "source", "weight_at", "flow_beam"]; // with a new text, or said by itself
const LONGEST = 4000; // characters: a longer one fills the models
const FIRST_MODEL = "encoder";
const LOOKS = 5; // at a page at rest
const PATIENT = 75; // the same, while the text is wanted: a busy server begins its run late
const REST = 30_000; // ms in which a server that had none is not asked again

let again = 0; // when the server is asked next

/**
 * Ask for the pictures of a text, and draw them if it is still `wanted` when they come.
 * @param {string} text
 * @param {string} model which is on screen
 * @param {() => boolean} wanted
 */
export async function prefetch(text, model, wanted) {
  const asked = choices(model);
  if (!asked || !text.trim() || text.length > LONGEST || Date.now() < again) return;
  const body = JSON.stringify({ text, model, ...asked });
  try {
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(new URL("ahead", ROOT), { method: "POST", headers, body });
    if (answer.status !== 200) return void (again = Date.now() + REST);
    const { blocks } = decode(new Uint8Array(await answer.arrayBuffer()));
    if (!wanted()) return;
    const all = Object.entries(blocks);
    for (const [name, data] of all) showSooner(name, data);
    await brought(all, wanted);
  } catch {
    // the page brings them
  }
}

const FLOW = { place: "architecture", tab: "flow" };

/** What the address asks of the pictures, and of which tab they are; undefined where there are none. @param {string} model */
function choices(model) {
  const { pathname, search } = window.location;
  const { tab, ...at } = Object.fromEntries(new URLSearchParams(search));
  const isFlow = pathname === ROOT.pathname + FLOW.place && (tab || FLOW.tab) === FLOW.tab;
  const isFirst = pathname === ROOT.pathname && !tab;
  // After a step back an address may say less than is on screen.
  if (!(isFlow || isFirst) || (at.model || FIRST_MODEL) !== model) return undefined;
  const kept = Object.entries(at).filter(([name]) => !GONE.includes(name));
  return { tab: isFlow ? FLOW.tab : "", choices: Object.fromEntries(kept) };
}

// Where the reader went back to the last text before this one's page came, nothing comes.
/** @param {[string, Uint8Array][]} all @param {() => boolean} wanted */
async function brought(all, wanted) {
  const open = () => all.some(([name, data]) => isPrefetched(name, data));
  while (open()) {
    const now = wanted();
    if (await atRest(() => open() && wanted() === now, now ? PATIENT : LOOKS))
      for (const [name] of all) takeBack(name);
  }
}
