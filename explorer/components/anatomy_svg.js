// @ts-check
// The whole story of a weight on one sheet, with its caption: it says what it is without the page.

import { MOST_NAMED, picture } from "./anatomy_strips.js";
import { num } from "./number_format.js";
import { BOLD, cells, END, paper, tag, text, upright, wrapped } from "./svg_export.js";
import { css } from "./theme.js";
import { cut } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {import("./theme.js").Look} Look */

const [WIDTH, LEFT, HEIGHT] = [960, 190, 20];
const FIELD = WIDTH - LEFT - 90;

/** @param {View} view @param {Look} look */
export function drawing(view, look) {
  const { header } = view;
  return paper(
    look,
    { title: header.title, caption: header.caption, width: WIDTH, most: 40 },
    (top) => {
      const out = [];
      let y = top - 18;
      for (const { title, lines, plan } of view.steps) {
        out.push(text(16, (y += 34), title, { "font-size": 14, ...BOLD }));
        for (const line of lines.flatMap((each) => wrapped(each, 130)))
          out.push(text(16, (y += 17), line, { "font-size": 12.5 }));
        y += 8;
        if (plan) y = planned(look, out, plan, y);
      }
      if (header.wrote) y = shares(look, out, header.wrote.parts, y);
      out.push(
        text(
          16,
          y + 30,
          "Strips: blue below 0, orange above; full colour is the figure at the right. Empty cells are not allowed.",
          { "font-size": 11 },
        ),
      );
      return [out.join(""), y + 48];
    },
  );
}

/** The strips of a step; returns where they end. @param {Look} look @param {import("./anatomy_strips.js").Plan} plan */
function planned(look, out, plan, from) {
  const { rows, n, mark = -1, labels } = plan;
  let y = from;
  for (const row of rows) {
    const tall = row.image ? 64 : HEIGHT;
    const name = cut(row.name.map((each) => each.textContent ?? each).join(""), 28);
    const place = { x: LEFT, y, width: FIELD, height: tall - 2 };
    const reach = `${row.sides === "one" ? "0–" : "±"}${num(row.top, 3)}`;
    out.push(
      text(16, y + tall / 2 + 4, name, { "font-size": 11.5 }),
      cells(picture(look, row, n), place),
    );
    if (!row.image) out.push(text(LEFT + FIELD + 6, y + tall / 2 + 4, reach, { "font-size": 11 }));
    y += tall;
  }
  const size = FIELD / n;
  const frame = { x: LEFT + mark * size, y: from - 1, width: size, height: y - from };
  if (mark >= 0)
    out.push(tag("rect", { ...frame, fill: "none", stroke: look.primary, "stroke-width": 2 }));
  if (!labels) return y;
  const small = { "font-size": 10 };
  if (n > MOST_NAMED) {
    out.push(text(LEFT, y + 12, `framed: ${labels[mark]} (key ${mark})`, small));
    return y + 18;
  }
  labels.forEach((label, at) =>
    out.push(upright(LEFT + (at + 0.5) * size + 3, y + 4, cut(label, 10), { ...small, ...END })),
  );
  return y + 62;
}

/** What each head's part is of the sum. @param {Look} look */
function shares(look, out, parts, from) {
  let y = from;
  const most = Math.max(...parts.map(({ share }) => Math.abs(share ?? 0)), 1e-9);
  const zero = parts.some(({ share }) => share < 0) ? FIELD / 2 : 0;
  for (const { name, chosen, share } of parts) {
    y += 18;
    const width = (Math.abs(share ?? 0) / most) * (FIELD - zero);
    const x = LEFT + zero - (share < 0 ? width : 0);
    out.push(
      text(16, y, name, { "font-size": 11.5, ...(chosen ? BOLD : {}) }),
      tag("rect", { x, y: y - 11, width, height: 12, fill: css(look.two[share < 0 ? 20 : 235]) }),
      text(LEFT + FIELD + 6, y, num(share, 3), { "font-size": 11 }),
    );
  }
  return y;
}
