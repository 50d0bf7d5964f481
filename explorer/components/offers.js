// @ts-check
// What is known to change an answer, asked for once the page stands and drawn when it is there; where
// nothing is, that, and a sentence on which something does.

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
  let table, finding;
  try {
    const answer = await fetch(new URL(view.header.panel, ROOT), { signal });
    if (answer.ok) ({ table, finding } = await answer.json());
  } catch {
    // the page stands without them
  }
  if (signal.aborted) return;
  view.root.classList.toggle("none", !table?.kind.length);
  if (table?.kind.length) return draw(view, table);
  const { works } = view.header;
  if (!table || !works) return;
  const lead = make(
    "button",
    { type: "button", class: "offer" },
    make("span", "what", say("works")),
  );
  lead.onclick = () => view.send("select", { address: works });
  redraw(view, [
    make("h2", "", say("title")),
    make("p", "", finding),
    make("ol", "", make("li", "", lead)),
  ]);
}

/** @param {View} view @param {Record<string, string[]>} table */
function draw(view, table) {
  const rows = table.kind.map((kind, at) => ({
    kind,
    label: table.try[at],
    result: table.result[at],
    address: table.address[at],
  }));
  const list = rows
    .slice(0, MOST)
    .map(({ kind, label, result, address }) =>
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
  redraw(view, [make("h2", "", say("title")), make("ol", "", ...list)]);
}
