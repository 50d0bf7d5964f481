// @ts-check
// A weighted sum in motion: every vector fades to its weight, then all slide into the row of the sum.

import { Pen } from "./draw.js";
import { letter } from "./mount.js";
import { shown } from "./svg_export.js";
import { wordAt } from "./theme.js";

/** @typedef {import("./mount.js").View} View */
const MOVEMENT = 380; // milliseconds of each of the two movements of a sum

/** Show how a weighted sum comes about: every vector fades to its weight, then all slide into the row of the sum. What lies below is the painted picture. @param {View} view @param {number} at */
export function summed(view, at) {
  const { frames, current } = view.figures[at];
  const { strips = [], high } =
    frames[current].figures.find((/** @type {any} */ one) => one.kind === "strips") || {};
  const images = [...view.boxes[at].querySelectorAll("image")];
  if (images.length !== strips.length || !strips.some((/** @type {any} */ one) => one.weight))
    return;
  const sum = strips.findIndex((/** @type {any} */ one) => one.sign === "=");
  const terms = strips
    .slice(0, sum)
    .map((/** @type {any} */ strip, /** @type {number} */ row) => ({ ...strip, row }));
  terms.sort((/** @type {any} */ a, /** @type {any} */ b) => a.weight - b.weight); // the largest on top
  const vectors = terms.map(({ values, weight }) =>
    [...values].map((each) => (weight ? each / weight : 0)),
  );
  const most = Math.max(...vectors.flat().map(Math.abs)) || 1;
  const sides = (/** @type {number} */ row) =>
    ["x", "y", "width", "height"].map((side) => Number(images[row].getAttribute(side)));
  const layer = (
    /** @type {number} */ row,
    /** @type {number[]} */ values,
    /** @type {number} */ high,
  ) => {
    const pen = new Pen(view.look, letter(), true);
    const [x, y, width, height] = sides(row);
    pen.group(() => {
      pen.cells([x, y, width, height], 1, values.length, (i) =>
        wordAt(view.look.two, (values[i] / high + 1) / 2),
      );
      pen.rect(x, y, width, height, { fill: "none", stroke: view.look.border });
    });
    return /** @type {Element} */ (shown(pen.parts.join(""), {}).firstChild);
  };
  const weighted = terms.map(({ row, values }) => layer(row, values, high));
  const whole = terms.map(({ row }, /** @type {number} */ i) => layer(row, vectors[i], most));
  view.boxes[at].firstChild.append(...weighted, ...whole);
  const timing = { duration: MOVEMENT, fill: /** @type {const} */ ("both"), easing: "ease-in-out" };
  const later = { ...timing, delay: MOVEMENT };
  const into = ({ row }) => `translateY(${sides(sum)[1] - sides(row)[1]}px)`;
  const moving = [
    ...whole.map((/** @type {Element} */ one) => one.animate({ opacity: [1, 0] }, timing)),
    ...weighted.map((/** @type {Element} */ one, /** @type {number} */ i) =>
      one.animate({ transform: ["none", into(terms[i])] }, later),
    ),
    images[sum].animate({ opacity: [0, 0, 1] }, later),
  ];
  view.settle = () => {
    view.settle = undefined;
    for (const one of moving) one.cancel();
    for (const one of [...weighted, ...whole]) one.remove();
  };
  moving[moving.length - 1].onfinish = view.settle;
}
