// @ts-check
// What is known to change an answer, asked for once the page stands and drawn when it is there; nothing
// where nothing is known to.

import { make, mount, redraw, until } from "./mount.js";
import style from "./offers.css.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./mount.js").View} View */
const say = sentences("offers");

const ROOT = new URL("../../", import.meta.url); // of the app, wherever a proxy put it
const PAUSE = 400; // ms: while a text is typed only the last one is asked about
const MOST = 2; // offers on a page

export default mount("offers", style, (view) => {
  if (view.same) return;
  redraw(view, []);
  const gone = new AbortController();
  const timer = setTimeout(() => ask(view, gone.signal), PAUSE);
  until(view, "asked", () => {
    clearTimeout(timer);
    gone.abort();
  });
});

/** Ask the server, which may have measured it already. @param {View} view @param {AbortSignal} signal */
async function ask(view, signal) {
  let table;
  try {
    const answer = await fetch(new URL(view.header.panel, ROOT), { signal });
    if (answer.ok) ({ table } = await answer.json());
  } catch {
    // the page stands without them
  }
  if (signal.aborted) return;
  view.root.classList.toggle("none", !table?.kind.length);
  if (table) draw(view, table);
}

/** @param {View} view @param {Record<string, string[]>} table */
function draw(view, table) {
  const rows = table.kind.map((kind, at) => ({
    kind,
    label: table.try[at],
    result: table.result[at],
    address: table.address[at],
  }));
  const shown = rows.slice(0, MOST);
  if (!shown.length) return;
  const list = shown.map(({ kind, label, result, address }) =>
    make(
      "li",
      "",
      make(
        "button",
        { type: "button", class: "offer", onclick: () => view.send("select", { address }) },
        make("span", `sign ${kind}`),
        make("span", "what", label),
        make("span", "result", result),
      ),
    ),
  );
  redraw(view, [make("h3", "", say("title")), make("ol", "", ...list)]);
}
