// @ts-check
// What travels in the picture of the whole machine: parcels on curves, the answer on its way to its bar,
// and what is taken out.

import { answerOf, onShow, OPEN, TRAVEL, WIDEN } from "./beam_figure.js";
import { toldRow } from "./beam_words.js";
import { now } from "./flow_levels.js";
import { labelsOf, linesOf } from "./flow_rows.js";
import { widthOf } from "./flow_shares.js";
import { sentences } from "./sentences.js";

/** @typedef {import("./mount.js").View} View */
const say = sentences("flow");
const [EACH, MOST] = [90, 7]; // milliseconds between parcels; parcels of a whole
const NUMBER = /-?[\d.]+/g; // of a path

/** What travels on a curve: its points, its colour, its shape, when it sets out, and the word that it brings, "" for none.
 * @typedef {{ points: number[], fill: string, hue: number | undefined, begins: number, word: string }} Parcel */

/** The parcels of the layer under the beam: as many on each curve as its share. @param {View} view @returns {Parcel[]} */
export function parcelsOf(view) {
  const figure = now(view);
  const layer = figure.layers[figure.current];
  const group = view.boxes[view.beam.at].querySelector(`g.flow-layer[data-at="${figure.current}"]`);
  const special = new Set(view.header.special);
  const labels = labelsOf(figure);
  const told = toldRow(figure, layer);
  const own = [...(group?.querySelectorAll("path.flow-curve[data-at]") || [])].flatMap((path) => {
    const row = Number(path.getAttribute("data-at"));
    const of = layer.attentions.reduce(
      (/** @type {number} */ most, /** @type {any} */ one) => Math.max(most, widthOf(one, -1, row)),
      0,
    );
    const least = Number(row === told); // what is told of is seen
    const n = special.has(labels[row]) ? 0 : Math.max(least, Math.round(MOST * of));
    const points = (path.getAttribute("d")?.match(NUMBER) || []).map(Number);
    const fill = path.getAttribute("stroke") || "";
    return Array.from({ length: n }, (_, each) => ({
      points,
      fill,
      hue: figure.hues?.[row],
      begins: each * EACH,
      word: row === told && !each ? labels[row] : "",
    }));
  });
  const [brought] = own.filter(({ word }) => word);
  const ffn = /** @type {any} */ (group?.querySelector(".flow-ffn rect"));
  if (!brought || !figure.blind || figure.cause[0] !== figure.current || !ffn) return own;
  // What is brought goes on into the FFN, and out of that the answer.
  const [x, y] = brought.points.slice(6);
  const box = ffn.getBBox();
  const [u, v] = [box.x + box.width / 2, box.y + box.height / 2];
  const { label, rest } = answerOf(figure);
  const out = { fill: view.look.ink, hue: undefined, word: label + rest };
  return [
    ...own,
    { ...brought, points: straight(x, y, u, v), begins: TRAVEL },
    { ...brought, ...out, points: straight(u, v, 2 * u - x, 2 * v - y), begins: OPEN - WIDEN },
  ];
}

/** A straight way. @param {number} x @param {number} y @param {number} u @param {number} v */
const straight = (x, y, u, v) => [x, y, x, y, u, v, u, v];

/** The answer on its way from the layer that it comes from to its bar. @param {View} view @returns {Parcel[]} */
export function wayOfAnswer(view) {
  const figure = now(view);
  const [{ label, rest }] = onShow(figure);
  return wayOut(view, figure.cause[0] ?? 0, { fill: view.look.ink, hue: 0, word: label + rest });
}

/** What comes of a part that is taken out, or put back, on its way from its layer to the bars. @param {View} view @param {any} before the flow that was on show @returns {Parcel[]} */
export function outcomeOf(view, before) {
  const figure = now(view);
  const [were, are] = [linesOf(before.edits), linesOf(figure.edits)];
  const gone = are.filter((each) => !were.includes(each));
  const line = gone[0] ?? were.find((each) => !are.includes(each)) ?? "";
  const [kind, layer, head] = line.split(":");
  const [band] = figure.bands;
  const row = (band.outs || []).findIndex((/** @type {string} */ out) =>
    linesOf(out).includes(line),
  );
  const name = kind === "ZeroHead" ? say("one_head", { head }) : (band.rows[row] ?? "");
  const own = figure.layers.findIndex((/** @type {any} */ each) => `${each.layer}` === layer);
  const from = kind === "ZeroHead" ? own : (figure.cause[0] ?? figure.matters[0]);
  const word = gone.length ? say("without", { name }) : name;
  return name ? wayOut(view, Math.max(0, from), { fill: view.look.ink, hue: undefined, word }) : [];
}

/** Along the line from a column's sum, then out of the picture. @param {View} view @param {number} column @param {{ fill: string, hue: number | undefined, word: string }} what @returns {Parcel[]} */
function wayOut(view, column, what) {
  const box = view.boxes[view.beam.at];
  const out = box.querySelector("path.flow-exit")?.getAttribute("d")?.match(NUMBER)?.map(Number);
  const sum = box.querySelector(`g.flow-layer[data-at="${column}"] .flow-sum`);
  if (!out || !sum) return [];
  const [x, y] = ["cx", "cy"].map((name) => Number(sum.getAttribute(name)));
  return [straight(x, y, out[0], y), out].map((points, each) => ({
    ...what,
    points,
    begins: each * TRAVEL,
  }));
}

/** Draw parcels where they are. @param {HTMLCanvasElement} canvas @param {HTMLElement} box what they are drawn over @param {import("./theme.js").Look} look @param {Parcel[]} parcels @param {number} ms */
export function carry(canvas, box, { paper, font }, parcels, ms) {
  const { clientWidth: width, clientHeight: height, offsetTop: top, offsetLeft: left } = box;
  const scale = 2; // sharp on any screen
  if (canvas.width !== Math.round(width * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    Object.assign(canvas.style, {
      width: `${width}px`,
      height: `${height}px`,
      top: `${top}px`,
      left: `${left}px`,
    });
  }
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  // Words are above all others.
  for (const { points, fill, hue, begins, word } of [...parcels].sort(
    (a, b) => a.word.length - b.word.length,
  )) {
    const part = (ms - begins) / TRAVEL;
    if (part <= 0 || part >= 1) continue;
    const t = part * part * (3 - 2 * part);
    const at = (/** @type {number} */ axis) =>
      [1, 3, 3, 1].reduce(
        (sum, each, i) => sum + each * (1 - t) ** (3 - i) * t ** i * points[2 * i + axis],
        0,
      );
    const [x, y, r] = [at(0), at(1), 6.5];
    pen.beginPath();
    if (word) {
      pen.font = `600 13px ${font}`;
      const wide = pen.measureText(word).width + 14;
      pen.roundRect(x - wide / 2, y - 10, wide, 20, 10);
    } else if (hue === 1) pen.rect(x - r + 1, y - r + 1, 2 * r - 2, 2 * r - 2);
    else if (hue === 2) {
      pen.moveTo(x, y - r);
      pen.lineTo(x + r, y + r - 1);
      pen.lineTo(x - r, y + r - 1);
      pen.closePath();
    } else pen.arc(x, y, hue === undefined ? 4.5 : r - 0.5, 0, 7);
    Object.assign(pen, {
      fillStyle: hue === undefined ? paper : fill,
      strokeStyle: hue === undefined ? fill : paper,
      lineWidth: 2,
    });
    pen.fill();
    pen.stroke();
    if (!word) continue;
    Object.assign(pen, {
      fillStyle: hue === undefined ? fill : paper,
      textAlign: "center",
      textBaseline: "middle",
    });
    pen.fillText(word, x, y + 0.5);
  }
}
