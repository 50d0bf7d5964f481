// @ts-check
// A file that stands alone: the views that Streamlit would mount, from what lies in the file itself.

import { called, make } from "./mount.js";
import { files, offered } from "./svg_export.js";
import { decode, encode } from "./codec.js";
import { sentences } from "./sentences.js";

/**
 * A piece of the file: a view with its header and the places of its blocks, or lines of text.
 * @typedef {{ kind: "view" | "words", column: number, component: string, data: [any, Record<string, string>],
 *   lines: [string, string][], look?: string }} Part
 */

const KINDS = { view, words };

/** Draw the file that the page holds: of several sheets the first, then the one that is chosen. */
export async function open() {
  const main = /** @type {HTMLElement} */ (document.querySelector("main"));
  const choice = /** @type {HTMLSelectElement | null} */ (document.getElementById("texts"));
  /** @type {(() => void)[]} */
  let shown = [];
  let turns = 0;
  const draw = () => shown.forEach((show) => show());
  const turn = async (/** @type {number} */ at) => {
    const mine = ++turns;
    const data = await unpacked(at);
    if (mine !== turns) return; // another has been chosen
    for (const each of /** @type {NodeListOf<HTMLElement>} */ (
      document.querySelectorAll("[data-sheet]")
    ))
      each.hidden = Number(each.dataset.sheet) !== at;
    shown = await parts(main, data);
    if (mine === turns) draw();
  };
  colours(draw);
  if (document.body.classList.contains("paper")) await moduleOf("worksheet"); // it lays panels out
  if (choice) choice.onchange = () => turn(choice.selectedIndex);
  await turn(Math.max(0, choice ? choice.selectedIndex : 0));
  main.after(pictures());
  main.dataset.drawn = "yes";
}

/** What draws each part of a sheet, in the place of what stood there. @param {HTMLElement} main @param {Uint8Array} data */
async function parts(main, data) {
  const { header, blocks } = decode(data);
  for (const column of main.children) column.replaceChildren();
  return await Promise.all(
    header.parts.map(async (/** @type {Part} */ part) => {
      const box = make("section", {
        class: `${part.kind} ${part.look || ""}`,
        data: { part: part.component || part.kind },
      });
      placeOf(part, main.children[part.column]).append(box);
      return await KINDS[part.kind](part, box, blocks);
    }),
  );
}

/** Where a part stands: a step of a worksheet with its picture and its question in one box, which no page divides. @param {Part} part @param {Element} column */
function placeOf({ kind, look }, column) {
  if (look === "step") return column.appendChild(make("div", "whole"));
  const last = column.lastElementChild;
  return last?.matches(".whole") && (kind === "view" || look === "asked") ? last : column;
}

/** The data of a sheet as it was before it was packed into the page. @param {number} at */
async function unpacked(at) {
  const packed = document.querySelectorAll("script.data")[at].textContent || "";
  const bytes = Uint8Array.from(atob(packed.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// What is on screen as PNG and SVG, listed when it is asked for.
function pictures() {
  const list = make("div", "list");
  const box = make(
    "details",
    "pictures",
    make("summary", "", sentences("pictures")("files")),
    list,
  );
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
  // Paper is light.
  let theme = root.dataset.theme;
  onbeforeprint = () => {
    theme = root.dataset.theme;
    root.dataset.theme = "light";
    draw();
  };
  onafterprint = () => {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    draw();
  };
  named();
}

/** A module of the file. @param {string} name */
const moduleOf = (name) => import(`headlight/${name}.js`);

/** @param {Part} part @param {HTMLElement} box @param {Record<string, any>} blocks */
async function view({ component, data: [header, places] }, box, blocks) {
  const { default: draw } = await moduleOf(component);
  const tree = box.attachShadow({ mode: "open" });
  tree.append(make("div", component));
  const named = Object.entries(places).map(([name, place]) => [name, blocks[place]]);
  const data = encode(header, Object.fromEntries(named));
  return () => draw(called(data, tree, told));
}

/** A press in a view goes to the page that has this one in a frame, such as a notebook. @param {string} name @param {any} value */
const told = (name, value) =>
  parent !== window && parent.postMessage({ headlight: name, value }, "*");

/** @param {Part} part @param {HTMLElement} box */
function words({ lines }, box) {
  return () =>
    box.replaceChildren(
      ...lines.map(([tag, text]) => make(/** @type {"p"} */ (tag), { dir: "auto" }, text)),
    );
}
