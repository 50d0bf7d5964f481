// @ts-check
// An encoder and a decoder side by side, in the shape of the paper's figure: what stands under a
// layer, its sub-layers with their sums and norms, how often it is repeated, and what stands on it.

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./figures.js").Box} Box */
/** @typedef {import("./figure_types").Block} Block */
/** @typedef {import("./figure_types").Tower} Tower */
/** A block where it stands: from its foot up, in letters; how many of its lines are of its name. @typedef {{ block: Block, foot: number, high: number, lines: string[], names: number, at: number, of: number }} Placed */
/** A sum and what it adds: from where the branch leaves to where it comes back, in letters. @typedef {{ from: number, to: number }} Arc */
/** Where all of a tower stands, in letters from its foot. @typedef {{ placed: Placed[], arcs: Arc[], labels: { at: number, text: string }[], aside?: { at: number, text: string }, box: number[], high: number }} Plan */

const [GAP, MOST] = [0.4, 1]; // letters between two blocks, at least and at most
const READ = 0.75; // more where a label stands between them
const [LINE, INSET] = [1.15, 0.2]; // letters of a line of a block, and around its lines
const PLUS = 1.15; // letters of a sum
const LANE = 1.5; // letters beside the blocks for what goes around them
const CHANNEL = 3.2; // letters between the towers
const ON_PLUS = 0.75; // letters of the smallest type beside a sum
const BOLD = { bold: true };
const SMALL = { size: 0.9 };

/** What a block says, in lines of its name and of its text, or both in one. @param {Pen} pen @param {Block} block @param {number} room */
function linesOf(pen, { name, text }, room) {
  const both = pen.width(name, BOLD) + pen.width(text, SMALL) + (text ? 0.8 * pen.letter : 0);
  const isOne = both <= room - pen.letter || !text;
  return [
    pen.lines(name, room - 0.4 * pen.letter, BOLD),
    isOne ? [] : pen.lines(text, room - 0.6 * pen.letter, SMALL),
  ];
}

/** A tower from its foot up. @param {Pen} pen @param {Tower} tower @param {number} room of a block, in pixels @param {number} gap @returns {Plan} */
function planOf(pen, tower, room, gap) {
  /** @type {Plan} */
  const plan = { placed: [], arcs: [], labels: [], box: [], high: 0 };
  const put = (/** @type {Block[]} */ blocks) => {
    const lines = blocks.map((block) => linesOf(pen, block, room / blocks.length));
    const high =
      blocks[0].of === "sum"
        ? PLUS
        : Math.max(...lines.map((each) => each.flat().length)) * LINE + INSET;
    blocks.forEach((block, at) =>
      plan.placed.push({
        ...{ block, foot: plan.high, high, at, of: blocks.length },
        ...{ lines: lines[at].flat(), names: lines[at][0].length },
      }),
    );
    plan.high += high;
  };
  for (const block of tower.under) {
    put([block]);
    plan.high += gap;
  }
  plan.box = [plan.high - 0.1];
  for (const { blocks, norm, place, reads, aside, adds } of tower.layer) {
    const from = plan.high + 0.5 * gap;
    plan.high += gap;
    if (place === "pre" && norm) {
      put([norm]);
      plan.high += gap;
    }
    if (reads) {
      plan.labels.push({ at: plan.high + 0.5 * (READ - gap), text: reads });
      plan.high += READ;
    }
    if (aside) plan.aside = { at: plan.high + 0.5 * (LINE + INSET), text: aside };
    put(blocks);
    plan.high += gap;
    const to = plan.high;
    if (place === "post" && norm) put([norm]);
    else if (adds) put([{ of: "sum", name: "+", text: "", key: "" }]);
    if (adds) plan.arcs.push({ from, to: to + 0.5 * (plan.high - to) });
  }
  plan.high += 0.6 * gap;
  plan.box.push(plan.high);
  for (const block of tower.above) {
    plan.high += gap;
    put([block]);
  }
  plan.high += tower.answer ? 1.4 : 0.1;
  return plan;
}

/** The colour of a block. @param {Pen} pen @param {string} of */
function fillOf({ look }, of) {
  const own = { attention: look.primary, ffn: look.categorical[1], embedding: look.categorical[2] };
  const colour = /** @type {Record<string, string>} */ (own)[of] ?? look.ink;
  return { fill: colour, "fill-opacity": colour === look.ink ? 0.06 : 0.2 };
}

/** @param {Pen} pen @param {any} figure @param {Box} box */
export function paperfigure(pen, { towers }, { x, y, width, height }) {
  const { letter } = pen;
  const own = (width - CHANNEL * letter) / 2;
  const room = own - (LANE + 2.2) * letter;
  const at = (/** @type {number} */ gap) =>
    towers.map((/** @type {Tower} */ each) => planOf(pen, each, room, gap));
  const tall = (/** @type {Plan[]} */ plans) => Math.max(...plans.map(({ high }) => high)) * letter;
  let [low, high] = [GAP, height ? MOST : GAP];
  for (let i = 0; i < 12 && height; i++) {
    const middle = (low + high) / 2;
    if (tall(at(middle)) <= height) low = middle;
    else high = middle;
  }
  const plans = at(low);
  const foot = y + tall(plans);
  /** @type {number[][]} */
  const ends = towers.map((/** @type {Tower} */ _, /** @type {number} */ side) => {
    const left = x + side * (own + CHANNEL * letter);
    return side
      ? [left + 0.5 * letter, left + 0.5 * letter + room]
      : [left + own - 0.5 * letter - room, left + own - 0.5 * letter];
  });
  towers.forEach((/** @type {Tower} */ tower, /** @type {number} */ side) =>
    towerOf(pen, tower, plans[side], ends[side], foot, side),
  );
  memory(pen, towers, plans, ends, foot);
  return tall(plans);
}

/** What the encoder gives to the decoder: from its top, between the towers, into the blocks that read it. @param {Pen} pen @param {Tower[]} towers @param {Plan[]} plans @param {number[][]} ends @param {number} foot */
function memory(pen, towers, plans, ends, foot) {
  const { letter, look } = pen;
  const { aside } = plans[1] ?? {};
  if (!aside) return;
  const lit = towers.every((each) => each.lit);
  const colour = lit ? look.primary : look.ink;
  const style = { "stroke-width": lit ? 2.5 : 1.2, "stroke-opacity": lit ? 1 : 0.35 };
  const out = foot - (plans[0].box[1] + 0.5 * GAP) * letter;
  const middle = (ends[0][0] + ends[0][1]) / 2;
  const lane = ends[0][1] + (0.5 + 0.45 * CHANNEL) * letter;
  const into = foot - aside.at * letter;
  pen.line(
    [
      [middle, out],
      [lane, out],
      [lane, into],
      [ends[1][0], into],
    ],
    colour,
    style,
  );
  arrow(pen, [ends[1][0], into], [1, 0], colour, style);
  const text = {
    ...SMALL,
    bold: lit,
    fill: colour,
    alpha: lit ? 1 : 0.6,
    anchor: /** @type {"middle"} */ ("middle"),
    halo: true,
  };
  pen.text((lane + ends[1][0]) / 2, into - 0.8 * letter, aside.text, text);
}

/** The head of an arrow that ends at a point. @param {Pen} pen @param {number[]} end @param {number[]} to its direction @param {string} colour @param {Record<string, any>} style */
function arrow(pen, [x, y], [u, v], colour, style) {
  const size = 0.35 * pen.letter;
  const [a, b] = [
    [x - size * (u + 0.7 * v), y - size * (v + 0.7 * u)],
    [x - size * (u - 0.7 * v), y - size * (v - 0.7 * u)],
  ];
  pen.line([a, [x, y], b], colour, style);
}

/** @param {Pen} pen @param {Tower} tower @param {Plan} plan @param {number[]} ends of its blocks @param {number} foot @param {number} side */
function towerOf(pen, tower, plan, [left, right], foot, side) {
  const { letter, look } = pen;
  const up = (/** @type {number} */ at) => foot - at * letter;
  const alpha = tower.lit ? 1 : 0.5;
  const line = { "stroke-width": tower.lit ? 1.6 : 1, "stroke-opacity": tower.lit ? 0.8 : 0.3 };
  const middle = (left + right) / 2;
  const outer = side ? right + LANE * letter : left - LANE * letter;
  const [inner, from] = side
    ? [left - 0.5 * letter, left - 0.5 * letter]
    : [right + 0.5 * letter, outer];
  pen.rect(from, up(plan.box[1]), Math.abs(outer - inner), (plan.box[1] - plan.box[0]) * letter, {
    rx: 10,
    fill: look.ink,
    "fill-opacity": tower.lit ? 0.04 : 0.015,
    stroke: look.ink,
    "stroke-opacity": tower.lit ? 0.5 : 0.2,
  });
  const told = `${tower.title} · ${tower.count}`;
  pen.text(outer + (side ? 0.9 : -0.9) * letter, up((plan.box[0] + plan.box[1]) / 2), told, {
    ...BOLD,
    alpha,
    anchor: "middle",
    turn: -90,
    room: (plan.box[1] - plan.box[0]) * letter,
  });
  const tops = plan.placed.filter(({ at }) => at === 0);
  tops.forEach(({ foot: start }, i) => {
    const before = tops[i - 1];
    if (!before) return;
    const places = [up(before.foot + before.high), up(start)];
    pen.line(
      [
        [middle, places[0]],
        [middle, places[1]],
      ],
      look.ink,
      line,
    );
    arrow(pen, [middle, places[1]], [0, -1], look.ink, line);
  });
  for (const { from: start, to } of plan.arcs) {
    const edge = outer + (side ? -0.5 : 0.5) * letter;
    const block = plan.placed.find((each) => each.foot <= to && to <= each.foot + each.high);
    const end =
      block?.block.of === "sum"
        ? middle + (side ? 1 : -1) * 0.5 * PLUS * letter
        : side
          ? right
          : left;
    pen.line(
      [
        [middle, up(start)],
        [edge, up(start)],
        [edge, up(to)],
        [end, up(to)],
      ],
      look.ink,
      line,
    );
    arrow(pen, [end, up(to)], [side ? -1 : 1, 0], look.ink, line);
  }
  for (const { at, text } of plan.labels)
    pen.text(middle + (side ? -0.5 : 0.5) * letter, up(at), text, {
      ...SMALL,
      alpha: tower.lit ? 0.85 : 0.5,
      anchor: side ? "end" : "start",
      halo: true,
    });
  for (const each of plan.placed) blockOf(pen, each, [left, right], up, alpha);
  pen.text(middle, up(plan.high - 0.7), tower.answer, {
    ...BOLD,
    fill: look.primary,
    anchor: "middle",
    room: right - left,
  });
}

/** @param {Pen} pen @param {Placed} placed @param {number[]} ends @param {(at: number) => number} up @param {number} alpha */
function blockOf(pen, { block, foot, high, lines, names, at, of }, [start, end], up, alpha) {
  const { letter, look } = pen;
  const gap = of > 1 ? 0.6 * letter : 0;
  const wide = (end - start - (of - 1) * gap) / of;
  const left = start + at * (wide + gap);
  const [middle, top] = [left + wide / 2, up(foot + high)];
  const centre = { anchor: /** @type {"middle"} */ ("middle"), alpha };
  const draw = () => {
    if (block.of === "sum") {
      pen.circle(middle, top + (high * letter) / 2, 0.5 * PLUS * letter, {
        fill: look.paper,
        stroke: look.ink,
        "stroke-opacity": alpha,
      });
      pen.text(middle, top + (high * letter) / 2, "+", { ...BOLD, ...centre });
      const room = end - middle; // it may pass the edge of the blocks, where nothing stands
      const size = SMALL.size * Math.min(1, room / (pen.width(block.text, SMALL) || 1));
      const written = pen.lines(block.text, room, { size: Math.max(size, ON_PLUS) });
      written.forEach((text, i) =>
        pen.text(middle + letter, top + (high / 2 + i - (written.length - 1) / 2) * letter, text, {
          size: Math.max(size, ON_PLUS),
          alpha,
          room,
        }),
      );
      return;
    }
    if (block.of !== "words") {
      pen.rect(left, top, wide, high * letter, { rx: 5, fill: look.paper });
      pen.rect(left, top, wide, high * letter, {
        ...fillOf(pen, block.of),
        ...(alpha < 1 ? { "fill-opacity": 0.05 } : {}),
        rx: 5,
        stroke: look.ink,
        "stroke-opacity": 0.6 * alpha,
      });
    }
    const line = (/** @type {number} */ i) => top + (INSET / 2 + (i + 0.5) * LINE) * letter;
    if (lines.length > 1 || !block.text) {
      lines.forEach((text, i) =>
        pen.text(middle, line(i), text, {
          ...centre,
          ...(i < names ? BOLD : SMALL),
          room: wide - 0.4 * letter,
        }),
      );
      return;
    }
    const both = [pen.width(block.name, BOLD), pen.width(block.text, SMALL)];
    const from = middle - (both[0] + both[1] + 0.6 * letter) / 2;
    pen.text(from, line(0), block.name, { ...BOLD, alpha });
    pen.text(from + both[0] + 0.6 * letter, line(0), block.text, { ...SMALL, alpha });
  };
  if (!block.key) return draw();
  const before = pen.select;
  pen.select = ["address"];
  const label = [block.name, block.text].filter(Boolean).join(", ");
  pen.target({ select: [block.key], label }, draw);
  pen.select = before;
}
