// @ts-check
// Heads to be switched, all heads before and after, and one head's matrix before, after and the
// difference.

import { bus } from "./bus.js";
import { headGrid, thumbnails, thumbWords } from "./matrix_canvas.js";
import { rove } from "./keys.js";
import { fitted, focused, hear, make, mount } from "./mount.js";
import { spokenLine } from "./number_format.js";
import style from "./interventions.css.js";
import { trio } from "./interventions_trio.js";

/** @typedef {import("./mount.js").View} View */

const MARK = { "": "", zero: "×", mean: "μ", even: "≡", patch: "⇄" };

export default mount("switches", style, (view) => {
  const { root } = view;
  const held = focused(root);
  const at = held ? [...root.querySelectorAll("[tabindex]")].indexOf(held) : -1;
  ({ board, pairs, trio })[view.header.kind](view);
  /** @type {HTMLElement | undefined} */ ([...root.querySelectorAll("[tabindex]")][at])?.focus({
    preventScroll: true,
  });
});

/** @param {View} view */
function board({ root, header, send }) {
  const cells = [];
  for (let l = 0; l < header.layers; l++) {
    const all = `All heads of layer ${l}`;
    const onclick = () => send("head", `${l}.`);
    cells.push(make("button", { class: "layer", title: all, "aria-label": all, onclick }, `L${l}`));
    for (let h = 0; h < header.heads; h++) {
      const now = header.states[l * header.heads + h];
      const title = `Layer ${l}, head ${h}: ${header.spoken[now]}`;
      const cell = make(
        "button",
        {
          class: `one ${now}`,
          title,
          "aria-label": title,
          "aria-pressed": now !== "",
          onclick: () => send("head", `${l}.${h}`),
        },
        MARK[now] || h,
      );
      cells.push(cell);
    }
  }
  root.replaceChildren(
    make(
      "div",
      {
        class: "board",
        role: "group",
        vars: { heads: header.heads },
        "aria-label": `Heads to ablate, layers down. Arrow keys move. Enter applies ${header.brush} ablation, and again undoes it. The first of each row is the whole layer.`,
      },
      ...cells,
    ),
  );
  rove(cells, { columns: header.heads + 1 });
}

/** @param {View} view */
function pairs(view) {
  const { root, header, blocks, look, send } = view;
  const line = spokenLine("status");
  const most = Math.max(...header.distance.map((value) => value ?? 0), 1e-9);
  const fold = header.fold;
  const rest = [
    "Left: before. Right: after. Each head has one colour scale. The number is the change of its rows.",
    fold > 1 ? ` Max-pooled ${fold} × ${fold}.` : "",
  ];
  const {
    box,
    canvas,
    cells,
    rove: stop,
  } = headGrid({
    layers: header.layers,
    heads: header.heads,
    about: "All heads before and after, layers down, heads across. Arrow keys move, Enter opens.",
    shape: header.columns / header.rows,
    className: "pairs",
    cell: (at, layer, head) => {
      const value = header.distance[at];
      const far = value === null ? "each row has one key" : `change ${value.toFixed(3)}`;
      const says = `Layer ${layer}, head ${head}: ${far}`;
      const told = () => line.replaceChildren(says);
      return make(
        "button",
        {
          class: "pair",
          "aria-label": says,
          onmouseenter: told,
          onfocus: told,
          onmouseleave: () => line.replaceChildren(...rest),
          onclick: () => {
            send("head", `${layer}.${head}`);
            bus.tell({ layer, head });
          },
        },
        make("span", "thumbs", make("span", "thumb"), make("span", "thumb")),
        make("span", "number", value === null ? "–" : value.toFixed(2)),
        make("span", "far", make("i", { style: { width: `${(100 * (value ?? 0)) / most}%` } })),
      );
    },
  });
  line.replaceChildren(...rest);
  root.replaceChildren(box, line);
  hear(view, ({ layer, head }) => {
    const on = layer * header.heads + head;
    cells.forEach((cell, at) => cell.setAttribute("aria-pressed", `${at === on}`));
    if (cells[on]) stop(on);
  });
  const size = header.rows * header.columns;
  /** @type {any[]} */
  const places = cells.flatMap((cell) => [...cell.querySelectorAll(".thumb")]);
  // Both runs are shown to the larger of the two peaks.
  const tables = places.map((_, at) => {
    const [one, other] = [blocks.peak[at >> 1], blocks.peaks[at >> 1]];
    return thumbWords(look.one, at % 2 ? other : one, Math.max(one, other));
  });
  fitted(view, box, () => {
    const painted = thumbnails({
      box,
      canvas,
      places,
      rows: header.rows,
      columns: header.columns,
      bytes: (at) =>
        blocks[at % 2 ? "after" : "before"].subarray((at >> 1) * size, ((at >> 1) + 1) * size),
      words: (at) => tables[at],
    });
    if (painted) canvas.dataset.painted = header.token;
  });
}
