// @ts-check
// What one token looks at: the sentence tinted by one head, and under it every head as a row of a map.

import { cellAt, legend, raster } from "./matrix_canvas.js";
import { rove } from "./keys.js";
import style from "./attention_row.css.js";
import { fitted, focused, make, mount } from "./mount.js";
import { spokenLine } from "./number_format.js";
import { shade, wordAt } from "./theme.js";
import { listed, named, strongest, tint } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */

const TOLD = 4;

export default mount("looks", style, (view) => {
  const { header, root } = view;
  if (view.fresh) {
    view.n = header.tokens.length;
    view.row = Math.max(0, header.names.indexOf(header.chosen));
    view.over = -1;
  }
  const held = focused(root);
  draw(view);
  if (held) view.rows[view.row].focus({ preventScroll: true });
});

const title = (name) =>
  name ? `Layer ${name.split(".")[0]}, head ${name.split(".")[1]}` : "Mean of all heads";
const brief = (name) => (name ? `L${name.split(".")[0]} H${name.split(".")[1]}` : "mean");
/** @param {View} view @param {number} row @returns {Float32Array} */
const weights = ({ blocks, n }, row) => blocks.weights.subarray(row * n, (row + 1) * n);
const peak = (list) => list.reduce((a, b) => Math.max(a, b), 0);

/** @param {View} view */
function draw(view) {
  const { header, n, look } = view;
  const rows = header.names.length;
  const says = (view.says = spokenLine("says"));
  const tokens = header.tokens.map((label, k) =>
    make(
      "span",
      {
        class: `token ${header.tones[k]}`,
        dir: "auto",
        onmouseenter: () => tell(view, k),
        onmouseleave: () => tell(view, -1),
      },
      label,
    ),
  );
  const buttons = header.names.map((name, row) => {
    const list = weights(view, row);
    const best = strongest(list, 2).map((k) => `${header.tokens[k]} ${list[k].toFixed(2)}`);
    return make(
      "button",
      {
        "aria-label": `${title(name)}: ${best.join(", ")}`,
        data: { name },
        onclick: () => {
          view.row = row;
          show(-1);
          view.send("row", name);
        },
        onfocus: () => show(row),
        onblur: () => show(-1),
        onmouseenter: () => show(row),
        onmouseleave: () => show(-1),
      },
      brief(name),
    );
  });
  const full = header.names.map((_, row) => peak(weights(view, row)));
  const canvas = raster(rows, n, (at) =>
    wordAt(look.one, shade(view.blocks.weights[at], full[Math.floor(at / n)])),
  );
  canvas.setAttribute("aria-hidden", "true");
  canvas.onmousemove = (event) => {
    const [row, k] = cellAt(event, canvas, rows, n) || [-1, -1];
    show(row);
    tell(view, k);
  };
  canvas.onmouseleave = () => show(-1);
  canvas.onclick = (event) => buttons[cellAt(event, canvas, rows, n)?.[0] ?? -1]?.click();
  const show = (over) => {
    view.over = over;
    const row = over >= 0 ? over : view.row;
    const list = weights(view, row);
    tokens.forEach((token, k) => tint(token, wordAt(look.one, shade(list[k], full[row]))));
    buttons.forEach((button, at) => {
      button.setAttribute("aria-pressed", `${at === view.row}`);
      button.classList.toggle("over", at === over);
    });
    tell(view, -1);
  };
  view.rows = buttons;
  rove(buttons, { held: view.row, upright: true });
  const names = make("div", "names", ...buttons);
  const sentence = make("div", "tokens", ...tokens);
  view.root.replaceChildren(
    sentence,
    says,
    make(
      "div",
      {
        class: "map",
        role: "group",
        "aria-label": `Attention of ${header.who} in each head. Arrow keys move, Enter opens a head.`,
      },
      names,
      canvas,
    ),
    make(
      "div",
      "foot",
      make("span", "note", "One row a head, one column a token, first token left."),
      legend(look.one, "0", "each row’s largest"),
    ),
  );
  show(-1);
  // The newest tokens of a long text are what is looked at first.
  sentence.scrollTop = sentence.scrollHeight;
  fitted(view, names, () => (canvas.style.height = `${names.clientHeight}px`));
}

/** @param {View} view @param {number} k */
function tell({ header, says, over, row, ...view }, k) {
  const at = over >= 0 ? over : row;
  const list = weights(/** @type {any} */ (view), at);
  says.replaceChildren(
    `${title(header.names[at])}: `,
    named(header.who),
    " attends to ",
    ...listed(
      k >= 0 ? [k] : strongest(list, TOLD),
      (each) => header.tokens[each],
      (each) => list[each].toFixed(k >= 0 ? 4 : 2),
    ),
  );
}
