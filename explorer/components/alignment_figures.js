// @ts-check
// Two texts in lines, joined by links, and a tree that grows downwards, drawn by a pen.

import { hundredths } from "./number_format.js";
import { css, inkOn, wordAt } from "./theme.js";
import { isLeftwards, set } from "./tokens.js";

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figures.js").Box} Box */
/** @typedef {import("./figure_types").Graph} Graph */
/** @typedef {import("./figure_types").Links} Links */

const TOLD = 0.1; // of a weight whose number stands below its word
const [NEAREST, APART] = [3.8, 6.6]; // letters between two texts that are linked, on a slide and elsewhere
const FAINT = 0.15; // of a link without weight
const UNDER = 1.6; // letters below them, for what they are called

/** Two texts in lines, and links from the selected query up to its keys. @param {Pen} pen @param {Links} figure @param {Box} box */
export function lines(
  pen,
  { left, right, sides, texts, weights, back = new Float32Array(), selected, select },
  { x, y, width, height },
) {
  const { letter, look } = pen;
  const n = right.length;
  const named = (/** @type {string} */ token, /** @type {string} */ below, size = 1) =>
    Math.max(
      pen.width(token, { size: 1.1 * size, bold: true }),
      pen.width(below || "0.00", { size: 0.85 * size }),
    ) +
    1.1 * size * letter;
  const long = [
    right.map((token) => named(token, "")),
    left.map((token, at) => named(token, texts[at])),
  ];
  const longest = Math.max(...long.map((list) => list.reduce((sum, each) => sum + each, 0)));
  const size = Math.max(1, Math.min(1.25, width / longest)); // short sentences are set larger
  const [tall, pitch, gap] = [2.7, 3.2, 0.3].map((each) => each * size * letter);
  const row = weights.subarray(selected * n, (selected + 1) * n);
  const least = pen.screen ? TOLD : 0.005; // on the page the others are told by their tint
  const numbers = right.map((_, key) => (row[key] >= least ? hundredths(row[key]) : ""));
  const most = right.map((_, key) =>
    left.reduce((best, _, q) => (weights[q * n + key] > weights[best * n + key] ? q : best), 0),
  );
  const placed = (
    /** @type {string[]} */ tokens,
    /** @type {string[]} */ below,
    /** @type {number} */ top,
  ) => {
    let [at, line] = [x, top];
    const places = tokens.map((token, i) => {
      const wide = Math.min(width, named(token, below[i], size) - gap);
      if (at > x && at + wide > x + width) [at, line] = [x, line + pitch];
      const place = { text: token, left: at, line, wide };
      at += wide + gap;
      return place;
    });
    const isRight = isLeftwards(tokens);
    for (const start of new Set(places.map((place) => place.line)))
      set(
        places.filter((place) => place.line === start),
        isRight,
        [x, width],
        gap,
      );
    return places.map(({ left, line, wide }) => [left, line, wide]);
  };
  const title = (/** @type {string} */ text, /** @type {number} */ top) =>
    pen.text(x, top + 0.7 * letter, text, {
      size: 0.85,
      alpha: 0.75,
      halo: true,
    });
  title(sides[1], y);
  const above = placed(right, [], y + 1.8 * letter);
  const foot = Math.max(...above.map((place) => place[1])) + tall;
  const lowest = Math.max(...placed(left, texts, foot).map((place) => place[1])) + tall;
  const spare =
    pen.least && height !== undefined ? (y + height - lowest) / letter - UNDER : Infinity;
  const apart = Math.max(NEAREST, Math.min(APART, spare)) * letter;
  const below = placed(left, texts, foot + apart);
  const end = lowest + apart;
  if (selected >= 0) {
    const [from, top, wide] = below[selected];
    for (const [key, [to, line, room]] of above.entries()) {
      if (!(row[key] >= 0.015)) continue;
      const [a, b, c, d] = [from + wide / 2, top, to + room / 2, line + tall];
      pen.path(`M${a} ${b}C${a} ${(b + d) / 2} ${c} ${(b + d) / 2} ${c} ${d}`, look.primary, {
        "stroke-width": (1 + row[key] * 0.5 * letter).toFixed(1),
        "stroke-opacity": Math.min(1, FAINT + 1.5 * row[key]).toFixed(2),
      });
    }
    left.forEach((_, at) => {
      const [to, line, room] = below[at];
      if (!(back[at] >= 0.015) || line !== top) return; // an arc joins words of one line
      const [a, c, up] = [from + 0.35 * wide, to + room / 2, top - 0.45 * apart];
      pen.path(`M${a} ${top}C${a} ${up} ${c} ${up} ${c} ${top}`, look.primary, {
        "stroke-width": (1 + back[at] * 0.5 * letter).toFixed(1),
        "stroke-opacity": Math.min(1, 0.35 + back[at]).toFixed(2),
      });
    });
  }
  title(sides[0], end + 0.3 * letter);
  const chip = (/** @type {number[]} */ [at, top, wide], token, text, style, what) => {
    const draw = () => {
      pen.rect(at, top, wide, tall, {
        class: "chip",
        fill: look.paper,
        stroke: look.border,
        rx: 6,
      });
      pen.rect(at, top, wide, tall, { rx: 6, ...style.box });
      pen.text(at + wide / 2, top + (text ? tall / 3 : tall / 2), token, {
        size: 1.1 * size,
        anchor: "middle",
        room: wide,
        bold: style.bold,
        fill: style.ink,
      });
      pen.text(at + wide / 2, top + 0.76 * tall, text, {
        size: 0.85 * size,
        anchor: "middle",
        room: wide,
        fill: style.ink,
      });
    };
    if (select.length) pen.target(what, draw);
    else draw();
  };
  right.forEach((token, key) => {
    const word = Number.isNaN(row[key]) ? undefined : wordAt(look.one, row[key]);
    const style = {
      box: { fill: word === undefined ? "none" : css(word) },
      ink: word === undefined ? undefined : inkOn(word),
    };
    chip(above[key], token, numbers[key], style, {
      select: [`${most[key]}`],
      label: `${sides[1]}: ${token} ${numbers[key]}`,
    });
  });
  left.forEach((token, at) => {
    const on = at === selected;
    const tint = back[at] >= 0.015 ? wordAt(look.one, back[at]) : undefined;
    const box = {
      fill: tint === undefined ? look.primary : css(tint),
      "fill-opacity": on ? 0.15 : tint === undefined ? 0 : 1,
      stroke: on ? look.primary : "none",
      "stroke-width": 2,
    };
    chip(
      below[at],
      token,
      (on || !pen.screen ? texts[at] : "") ?? "",
      { box, bold: on, ink: tint === undefined ? undefined : inkOn(tint) },
      { select: [`${at}`], label: `${token} ${texts[at] ?? ""}`, pressed: on },
    );
  });
  return end - y + UNDER * letter;
}

/** A tree that grows downwards; the way to the selected node stands out. @param {Pen} pen @param {Pick<Graph, "nodes" | "strengths" | "edges" | "selected" | "places" | "texts">} figure @param {Box} box */
export function tree(
  pen,
  { nodes, strengths, edges, selected, places: spots, texts },
  { x, y, width },
) {
  const { letter, look } = pen;
  const parents = new Map(edges.map((edge) => [edge.target, edge.source]));
  const way = new Set();
  for (let at = selected; !way.has(at); at = parents.get(at) ?? at) way.add(at);
  const across = 1 + Math.max(...spots.map(([column]) => column));
  const wide = Math.min(11 * letter, width / across);
  const pitch = (pen.least ? 1.5 : 2) * letter;
  const place = (/** @type {number} */ at) => [
    x + spots[at][0] * wide + 0.6 * letter,
    y + (spots[at][1] + 0.5) * pitch,
  ];
  for (const edge of [...edges].sort((a, b) => +way.has(a.target) - +way.has(b.target))) {
    const own = way.has(edge.target);
    pen.line([place(edge.source), place(edge.target)], own ? look.primary : look.ink, {
      "stroke-width": own ? 2.5 : 1,
      "stroke-opacity": own ? 1 : 0.15 + 0.35 * edge.weight,
    });
  }
  nodes.forEach((token, at) => {
    const [a, b] = place(at);
    const on = way.has(at);
    pen.circle(a, b, letter / 2.8, {
      fill: css(wordAt(look.one, strengths[at])),
      stroke: on ? look.primary : look.ink,
      "stroke-width": on ? 2.5 : 1,
    });
    const number = texts[at] ? pen.width(texts[at], { size: 0.85 }) + 0.4 * letter : 0;
    const room = wide - 1.7 * letter - number;
    const name = pen.cut(token, room, { bold: on });
    pen.text(a + 0.7 * letter, b, name, { bold: on, halo: true });
    pen.text(a + letter + pen.width(name, { bold: on }), b, texts[at] ?? "", {
      size: 0.85,
      alpha: 0.75,
      halo: true,
    });
  });
  return (1 + Math.max(...spots.map(([, row]) => row))) * pitch;
}
