// @ts-check
// Both sides' heads, and their difference, as thumbnails under real buttons; and the line that names
// the open pair.

import { bus } from "./bus.js";
import { cellAt, headGrid, legend, thumbnails, thumbWords } from "./matrix_canvas.js";
import style from "./comparison.css.js";
import { fitted, hear, make, mount, redraw } from "./mount.js";
import { signed, spokenLine } from "./number_format.js";
import { wordAt } from "./theme.js";
import { named } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */

const CALLED = { a: "A", b: "B", change: "B − A" };

export default mount("compare", style, (view) => {
  if (view.header.kind === "pair") return pair(view);
  if (!view.same) grids(view);
  hear(view, (now) => view.mark(now));
});

/** @param {View} view */
function pair({ root, header }) {
  root.replaceChildren(
    make("h3", { dir: "auto" }, header.title),
    make("p", { class: "words", dir: "auto" }, header.words),
  );
  const news = { compare: { picture: header.picture, a: header.a, b: header.b } };
  bus.tell(header.map ? { ...news, matrix: header.map } : news);
}

// A byte b stands for (b / 255)², and of a difference for ± top x ((b - 128) / 127)², as compare.py
// has it.
const weightOf = (byte) => (byte / 255) ** 2;
const changeOf = (byte) => Math.sign(byte - 128) * ((byte - 128) / 127) ** 2;

/** @param {View} view */
function grids(view) {
  const { header } = view;
  const status = (view.status = spokenLine("status"));
  view.rest = () => status.replaceChildren("Point at a cell to read it. Select a head to open it.");
  const note = [
    "Rows: queries. Columns: keys. The first token is at the top left.",
    header.panels.length > 2 &&
      " In B − A, orange is more weight and blue is less. The number is the distance of the two heads, 0 to 1.",
    header.fold > 1 && ` Max-pooled ${header.fold} × ${header.fold}.`,
  ];
  const list = header.panels.map((panel) => board(view, panel));
  const boards = make("div", "boards", ...list.map((each) => each.box));
  redraw(view, [boards, status, make("p", "note", ...note)]);
  view.rest();
  view.mark = (now) => {
    const ours = now.compare?.picture === header.token ? now.compare : {};
    for (const { panel, mark } of list)
      if (panel.key === "change") mark(String(ours.a) === String(ours.b) ? ours.a : undefined);
      else mark(ours[panel.key]);
  };
  fitted(view, boards, () => list.forEach((each) => each.paint()));
}

/** @param {View} view */
function board(view, panel) {
  const { header, blocks, look } = view;
  const change = panel.key === "change";
  const { box, canvas, cells, rove } = headGrid({
    layers: panel.n_layer,
    heads: panel.n_head,
    about: `${panel.title}: layers down, heads across. Arrow keys move, Enter opens.`,
    shape: header.n_column / header.n_row,
    className: blocks.distance ? "grid spaced" : "grid",
    cell: (at, layer, head) => {
      const far = blocks.distance?.[at].toFixed(2);
      const cell = make(
        "button",
        {
          class: "cell",
          data: { focus: `${panel.key} ${at}` },
          "aria-label": `${panel.title}, layer ${layer}, head ${head}${change ? `: distance ${far}` : ""}`,
          onclick: () => view.send("head", [panel.key, layer, head]),
          onfocus: () => view.status.replaceChildren(cell.getAttribute("aria-label")),
          onblur: view.rest,
          onmousemove: (event) => hover(view, panel, at, cell, event),
          onmouseleave: view.rest,
        },
        make("span", "thumb"),
        // An empty line keeps the grids' rows in line.
        far && make("span", "far", change ? far.replace(/^0/, "") : "\u00a0"),
      );
      return cell;
    },
  });
  const mark = (head) => {
    const on = head ? head[0] * panel.n_head + head[1] : -1;
    cells.forEach((cell, at) => cell.setAttribute("aria-pressed", `${at === on}`));
    if (on >= 0) rove(on);
  };
  const size = header.n_row * header.n_column;
  const words = change
    ? Uint32Array.from({ length: 256 }, (_, b) => wordAt(look.two, (1 + changeOf(b)) / 2))
    : thumbWords(look.one, 1, 1, header.log);
  const paint = () => {
    const fold = thumbnails({
      box,
      canvas,
      places: cells.map((cell) => /** @type {HTMLElement} */ (cell.firstChild)),
      rows: header.n_row,
      columns: header.n_column,
      bytes: (at) => blocks[panel.key].subarray(at * size, (at + 1) * size),
      strength: change ? (byte) => Math.abs(byte - 128) : undefined,
      words: () => words,
    });
    if (fold) canvas.dataset.painted = header.token;
  };
  const [low, high] = change
    ? [signed(-panel.top, 2), signed(panel.top, 2)]
    : [header.log ? "0.001" : "0", "1"];
  const title = make("h4", { title: panel.title, dir: "auto" }, panel.title);
  const scale = legend(change ? look.two : look.one, low, high);
  return { panel, mark, paint, box: make("section", "board", title, box, scale) };
}

/** @param {View} view */
function hover({ header, blocks, status }, panel, at, cell, event) {
  const { n_row: rows, n_column: columns, fold } = header;
  const under = cellAt(event, cell.firstChild, rows, columns);
  if (!under) return status.replaceChildren(cell.getAttribute("aria-label"));
  const label = (list, k) => {
    const [first, last] = [k * fold, Math.min(k * fold + fold, list.length) - 1];
    return named(first === last ? list[first] : `${list[first]} … ${list[last]}`);
  };
  const place = at * rows * columns + under[0] * columns + under[1];
  const values = (header.panels.length > 2 ? header.panels : [panel]).map(({ key, top }) => {
    const byte = blocks[key][place];
    return `${CALLED[key]} ${key === "change" ? signed(top * changeOf(byte), 2) : weightOf(byte).toFixed(2)}`;
  });
  status.replaceChildren(
    `L${Math.floor(at / panel.n_head)} H${at % panel.n_head}  `,
    label(header.rows, under[0]),
    " → ",
    label(header.columns, under[1]),
    `  ${fold > 1 ? "largest: " : ""}${values.join(" · ")}`,
  );
}
