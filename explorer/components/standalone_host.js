// @ts-check
// A file that stands alone: the views that Streamlit would mount, from what lies in the file itself.
// A choice in one of them sets names of a small state, and what depends on these is drawn again.

import { called, make } from "./mount.js";
import { files, offered } from "./svg_export.js";
import { decode, encode } from "./codec.js";

/**
 * A piece of the file. A view has a header and blocks for each value of the names in `by`; the
 * names in `sets` stand in its header as they stand in the state.
 * @typedef {{ kind: "view" | "words" | "choice", column: number, by: string[],
 *   component: string, place: string, sets: string[], data: Record<string, [any, any]>,
 *   lines: Record<string, [string, string][]>,
 *   label: string, listed: boolean, options: [string, string, Record<string, any>][] }} Part
 * @typedef {{ parts: Part[], state: Record<string, any>, blocks: Record<string, any>,
 *   tell: (news: Record<string, any>) => void }} File
 */

// What a choice in a view means for the state.
/** @type {Record<string, Record<string, (value: any, header: any) => Record<string, any>>>} */
const MEANS = {
  heads: { head: (head) => ({ head }) },
  head: {
    token: ([row, column, key], { said }) => ({
      pin: row,
      column: said ? column : row,
      cell: key < 0 ? null : [row, key],
    }),
  },
};

const KINDS = { view, words, choice };

/** Draw the file that the page holds. */
export async function open() {
  const main = /** @type {HTMLElement} */ (document.querySelector("main"));
  const { header, blocks } = decode(await unpacked());
  /** @type {File} */
  const file = { ...header, blocks, tell };
  const shown = await Promise.all(
    file.parts.map(async (part) => {
      const box = make("section", {
        class: part.kind,
        data: { part: part.component || part.kind },
      });
      main.children[part.column].append(box);
      return { part, show: await KINDS[part.kind](file, part, box) };
    }),
  );
  function tell(news) {
    const changed = Object.keys(news).filter(
      (name) => JSON.stringify(news[name]) !== JSON.stringify(file.state[name]),
    );
    Object.assign(file.state, news);
    const on = (/** @type {string[]} */ names) => names.some((name) => changed.includes(name));
    for (const { part, show } of shown) if (on(part.by) || on(part.sets)) show();
  }
  const draw = () => shown.forEach(({ show }) => show());
  colours(draw);
  draw();
  main.after(pictures());
  main.dataset.drawn = "yes";
}

/** The data as it was before it was packed into the page. */
async function unpacked() {
  const packed = /** @type {HTMLElement} */ (document.getElementById("data")).textContent || "";
  const bytes = Uint8Array.from(atob(packed.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// What is on screen as PNG and SVG, listed when it is asked for.
function pictures() {
  const list = make("div", "list");
  const box = make("details", "pictures", make("summary", "", "Pictures as files"), list);
  box.ontoggle = () => list.replaceChildren(...offered().flatMap(files));
  return box;
}

/** Light, dark, or as the reader's system is. @param {() => void} draw */
function colours(draw) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const button = /** @type {HTMLElement} */ (document.getElementById("colours"));
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const named = () => (button.textContent = isDark() ? "Light" : "Dark");
  button.onclick = () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    named();
    draw();
  };
  dark.onchange = () => (named(), draw());
  named();
}

/** @param {File} file @param {Part} part */
const keyOf = ({ state }, { by }) => by.map((name) => state[name]).join(" ");

/** @param {File} file @param {Part} part @param {HTMLElement} box */
async function view(file, part, box) {
  const { default: draw } = await import(`headlight/${part.component}.js`);
  const tree = box.attachShadow({ mode: "open" });
  tree.append(make("div", part.place));
  /** @type {string} */
  let last;
  /** @type {Uint8Array} */
  let data;
  return () => {
    const found = part.data[keyOf(file, part)];
    box.hidden = !found;
    if (!found) return;
    const [before, places] = found;
    const set = Object.fromEntries(part.sets.map((name) => [name, file.state[name]]));
    const header = { ...before, ...set };
    const now = JSON.stringify(header);
    if (now !== last) {
      const named = Object.entries(places).map(([name, place]) => [name, file.blocks[place]]);
      // Other choices are another picture.
      if (part.sets.length) header.token = [header.token, ...Object.values(set)].join(" ");
      data = encode(header, Object.fromEntries(named));
    }
    last = now;
    draw(
      called(data, tree, (name, value) => {
        const news = MEANS[part.component]?.[name]?.(value, header);
        if (news) file.tell(news);
      }),
    );
  };
}

/** @param {File} file @param {Part} part @param {HTMLElement} box */
function words(file, part, box) {
  return () => {
    const lines = part.lines[keyOf(file, part)] || part.lines[""] || [];
    box.replaceChildren(
      ...lines.map(([tag, text]) => make(/** @type {"p"} */ (tag), { dir: "auto" }, text)),
    );
  };
}

/** @param {File} file @param {Part} part @param {HTMLElement} box */
function choice(file, part, box) {
  const chosen = (/** @type {Record<string, any>} */ news) =>
    Object.entries(news).every(
      ([name, value]) => JSON.stringify(file.state[name]) === JSON.stringify(value),
    );
  const buttons = part.options.map(([label, more, news]) =>
    make(
      "button",
      { class: part.listed ? "step" : "", onclick: () => file.tell(news) },
      make("span", { dir: "auto" }, label),
      more && make("small", { dir: "auto" }, more),
    ),
  );
  const names = [...new Set(part.options.flatMap(([, , news]) => Object.keys(news)))];
  box.append(
    make(
      "div",
      { class: part.listed ? "steps" : "options", role: "group", "aria-label": part.label },
      ...buttons,
    ),
  );
  part.by = names;
  return () =>
    buttons.forEach((button, at) =>
      button.setAttribute("aria-pressed", `${chosen(part.options[at][2])}`),
    );
}
