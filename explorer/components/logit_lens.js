// @ts-check
// The sum of a logit.

import style from "./logit_lens.css.js";
import { make, mount, put } from "./mount.js";
import { signed } from "./number_format.js";

/** @typedef {import("./mount.js").View} View */

export default mount("lens", style, sum);

// Each group's bar begins where the one before it ended, so that the last one ends at the logit.
/** @param {View} view */
function sum({ header, root }) {
  let at = 0;
  const ends = header.groups.map((group) => (at += group.value));
  const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const part = (value) => `${(100 * value) / (high - low || 1)}%`;
  const line = (name, from, to, value) =>
    make(
      "li",
      "",
      make("span", "", name),
      make(
        "span",
        "track",
        make("span", {
          class: `ink ${value < 0 ? "down" : "up"}`,
          style: { left: part(Math.min(from, to) - low), width: part(Math.abs(to - from)) },
        }),
        make("span", { class: "zero", style: { left: part(-low) } }),
      ),
      make("span", "figure", signed(value, 3)),
    );
  const lines = header.groups.map(({ name, value }, g) =>
    line(name, ends[g] - value, ends[g], value),
  );
  const total = put(line("sum", 0, header.total, header.total), { class: "total" });
  root.replaceChildren(make("ol", "sum", ...lines, total));
}
