// @ts-check
// Formulas of a panel in its file: the trees that formula.js shows as MathML, drawn as texts and
// lines, since no program but a browser draws MathML in an SVG.

/** @typedef {import("./draw.js").Pen} Pen */
/** @typedef {import("./formula.js").Node} Node */
/** A part as it is measured: its width, how far it reaches above and below its middle, and what draws it from the left at a height.
 * @typedef {{ wide: number, up: number, down: number, draw: (x: number, y: number) => void }} Part */

const SIZE = 1.1; // of formulas, in letters
const SCRIPT = 0.7; // of an index or an exponent, as a share of what it stands at
const LEAST = 0.62; // letters of the smallest type
const HALF = 0.5; // how far letters reach above and below their middle, in type sizes
const OPEN = "([";
const CLOSED = ")]";
const APART = /[\p{L}\p{N})\]′]$/u; // an operator stands apart from these alone: a sign does not
const OPERATORS = "=≠+−·×→≈≤≥<>∈⊙⊕";

/** Formulas one after the other, symbols above numbers, in as many rows as they need. Returns the height. @param {Pen} pen @param {import("./formula.js").Formula[]} formulas @param {import("./figures.js").Box} box */
export function formulaRows(pen, formulas, { x, y, width }) {
  // A line that is too wide is drawn smaller; where that is not enough, without its numbers.
  const fitted = (/** @type {import("./formula.js").Node} */ line) => {
    const whole = part(pen, line, SIZE);
    const size = Math.max(LEAST, (SIZE * width) / whole.wide);
    return size < SIZE ? part(pen, line, size) : whole;
  };
  const parts = formulas.flatMap(({ lines, stays, numbers }) => {
    const drawn = (numbers.length ? [...(stays ? lines : []), ...numbers] : lines).map(fitted);
    return drawn.some((one) => one.wide > width) ? lines.map(fitted) : drawn;
  });
  const gap = 2.5 * pen.letter;
  /** @type {Part[][]} */
  const rows = [];
  let used = Infinity;
  for (const one of parts) {
    if (used + gap + one.wide > width) {
      rows.push([]);
      used = -gap;
    }
    rows[rows.length - 1].push(one);
    used += gap + one.wide;
  }
  let top = y;
  for (const row of rows) {
    const up = Math.max(...row.map((one) => one.up));
    let left = x;
    for (const one of row) {
      one.draw(left, top + up);
      left += one.wide + gap;
    }
    top += up + Math.max(...row.map((one) => one.down)) + 0.6 * pen.letter;
  }
  return top - y;
}

/** @param {Pen} pen @param {Node} node @param {number} size in letters @returns {Part} */
function part(pen, [tag, attributes, inside], size) {
  if (attributes.class === "result") return row(inPrimary(pen), inside, size);
  if (tag === "mtable") return table(pen, inside, size);
  if (typeof inside === "string") return word(pen, tag, inside, size);
  if (tag === "mfrac") return fraction(pen, inside, size);
  if (tag === "msqrt") return root(pen, row(pen, inside, size), size);
  if (tag === "munder" || tag === "mover") return stacked(pen, inside, size, tag === "munder");
  if (tag === "msub" || tag === "msup") return scripted(pen, inside, size, tag === "msub");
  return row(pen, inside, size);
}

/** The same pen in the colour of results. @param {Pen} pen @returns {Pen} */
const inPrimary = (pen) =>
  Object.create(pen, {
    look: { value: { ...pen.look, ink: pen.look.primary } },
  });

/** Rows whose cells stand below each other, each in the middle of its column. @param {Pen} pen @param {Node[]} rows @param {number} size @returns {Part} */
function table(pen, rows, size) {
  const gap = 0.25 * pen.type(size);
  const cells = rows.map(([, , inside]) =>
    inside.map((/** @type {Node} */ each) => part(pen, each, size)),
  );
  const wide = cells[0].map((_, /** @type {number} */ at) =>
    Math.max(...cells.map((each) => each[at].wide)),
  );
  const ups = cells.map((each) => Math.max(...each.map((/** @type {Part} */ one) => one.up)));
  const downs = cells.map((each) => Math.max(...each.map((/** @type {Part} */ one) => one.down)));
  const half = sum([...ups, ...downs, gap * (rows.length - 1)]) / 2;
  const draw = (/** @type {number} */ x, /** @type {number} */ y) => {
    let top = y - half;
    cells.forEach((each, line) => {
      let left = x;
      each.forEach((/** @type {Part} */ one, /** @type {number} */ at) => {
        one.draw(left + (wide[at] - one.wide) / 2, top + ups[line]);
        left += wide[at] + gap;
      });
      top += ups[line] + downs[line] + gap;
    });
  };
  return {
    wide: sum(wide) + gap * (wide.length - 1),
    up: half,
    down: half,
    draw,
  };
}

/** @param {number[]} numbers */
const sum = (numbers) => numbers.reduce((total, each) => total + each, 0);

/** @param {Pen} pen @param {string} tag @param {string} text @param {number} size @returns {Part} */
function word(pen, tag, text, size) {
  const style = { size, italic: tag === "mi" && [...text].length === 1 };
  const half = HALF * pen.type(size);
  return {
    wide: pen.width(text, style),
    up: half,
    down: half,
    draw: (x, y) => pen.text(x, y, text, style),
  };
}

/** Parts side by side; brackets are as high as what they hold. @param {Pen} pen @param {Node[]} nodes @param {number} size @returns {Part} */
function row(pen, nodes, size) {
  const type = pen.type(size);
  const inner = nodes.map((node) => part(pen, node, size));
  const held = nodes
    .map(([, , text], at) => (isBracket(text) ? undefined : inner[at]))
    .filter(Boolean);
  const [up, down] = [HALF * type, HALF * type].map((least, side) =>
    Math.max(least, ...held.map((one) => (side ? one?.down : one?.up) ?? 0)),
  );
  const isTall = up + down > 1.5 * type;
  let wide = 0;
  const placed = inner.map((one, at) => {
    const [, , text] = nodes[at];
    const drawn = isTall && isBracket(text) ? bracket(pen, text, up, down, type) : one;
    const [before, after] = spaces(nodes, at);
    const left = wide + before * type;
    wide = left + drawn.wide + after * type;
    return { drawn, left };
  });
  return {
    wide,
    up,
    down,
    draw: (x, y) => placed.forEach(({ drawn, left }) => drawn.draw(x + left, y)),
  };
}

/** @param {any} text */
const isBracket = (text) =>
  typeof text === "string" && text.length === 1 && (OPEN + CLOSED).includes(text);

/** The last letter of a tree. @param {Node} node @returns {string} */
const lastOf = ([, , inside]) =>
  typeof inside === "string" ? inside : inside.length ? lastOf(inside[inside.length - 1]) : "";

/** The space before and after an item of a row, in type sizes. @param {Node[]} nodes @param {number} at */
function spaces(nodes, at) {
  const [tag, , text] = nodes[at];
  const next = nodes[at + 1];
  if (tag === "mo" && OPERATORS.includes(text))
    return at && APART.test(lastOf(nodes[at - 1])) ? [0.25, 0.25] : [0, 0];
  if (tag === "mo" && (text === "," || text === "…")) return [0, 0.2];
  if (tag === "mo" || !next || opens(next) || next[0] === "mo") return [0, 0];
  return [0, [nodes[at], next].some(isName) ? 0.17 : 0.05];
}

/** Whether a node is a name of several letters, such as softmax. @param {Node} node */
const isName = ([tag, , text]) => tag === "mi" && text.length > 1;

/** @param {Node} node @returns {boolean} whether it begins with a bracket */
const opens = ([, , inside]) =>
  typeof inside === "string" ? OPEN.includes(inside) : inside.length > 0 && opens(inside[0]);

/** A bracket around something high. @param {Pen} pen @param {string} sign @param {number} up @param {number} down @param {number} type @returns {Part} */
function bracket(pen, sign, up, down, type) {
  const wide = 0.36 * type;
  const draw = (/** @type {number} */ x, /** @type {number} */ y) => {
    const [near, far] = OPEN.includes(sign)
      ? [x + 0.9 * wide, x + 0.25 * wide]
      : [x + 0.1 * wide, x + 0.75 * wide];
    const [top, foot] = [y - up, y + down];
    const bend = 2 * far - near;
    const d =
      "([".indexOf(sign) === 1 || sign === "]"
        ? `M${near} ${top}L${far} ${top}L${far} ${foot}L${near} ${foot}`
        : `M${near} ${top}Q${bend} ${y + (down - up) / 2} ${near} ${foot}`;
    pen.path(d, pen.look.ink, { "stroke-width": (0.07 * type).toFixed(1) });
  };
  return { wide, up, down, draw };
}

/** @param {Pen} pen @param {Node[]} inside @param {number} size @returns {Part} */
function fraction(pen, [above, below], size) {
  const type = pen.type(size);
  const smaller = Math.max(LEAST, 0.9 * size);
  const [top, foot] = [above, below].map((each) => part(pen, each, smaller));
  const wide = Math.max(top.wide, foot.wide) + 0.3 * type;
  const gap = 0.12 * type;
  return {
    wide: wide + 0.15 * type,
    up: top.up + top.down + gap,
    down: foot.up + foot.down + gap,
    draw: (x, y) => {
      const middle = x + 0.075 * type + wide / 2;
      pen.line(
        [
          [middle - wide / 2, y],
          [middle + wide / 2, y],
        ],
        pen.look.ink,
        { "stroke-width": (0.07 * type).toFixed(1) },
      );
      top.draw(middle - top.wide / 2, y - gap - top.down);
      foot.draw(middle - foot.wide / 2, y + gap + foot.up);
    },
  };
}

/** @param {Pen} pen @param {Part} held @param {number} size @returns {Part} */
function root(pen, held, size) {
  const type = pen.type(size);
  const sign = 0.6 * type;
  const up = held.up + 0.12 * type;
  return {
    wide: sign + held.wide + 0.1 * type,
    up,
    down: held.down,
    draw: (x, y) => {
      const foot = y + held.down;
      pen.line(
        [
          [x + 0.05 * type, y + 0.05 * type],
          [x + 0.2 * type, y - 0.05 * type],
          [x + 0.36 * type, foot],
          [x + 0.55 * type, y - up],
          [x + sign + held.wide + 0.08 * type, y - up],
        ],
        pen.look.ink,
        { "stroke-width": (0.07 * type).toFixed(1) },
      );
      held.draw(x + sign, y);
    },
  };
}

/** A base with a script below or above it. @param {Pen} pen @param {Node[]} inside @param {number} size @param {boolean} isBelow @returns {Part} */
function stacked(pen, [base, script], size, isBelow) {
  const of = part(pen, base, typeof base[2] === "string" ? 1.4 * size : size);
  const small = part(pen, script, Math.max(LEAST, SCRIPT * size));
  const wide = Math.max(of.wide, small.wide);
  const extent = small.up + small.down;
  return {
    wide: wide + 0.1 * pen.type(size),
    up: of.up + (isBelow ? 0 : extent),
    down: of.down + (isBelow ? extent : 0),
    draw: (x, y) => {
      of.draw(x + (wide - of.wide) / 2, y);
      small.draw(
        x + (wide - small.wide) / 2,
        isBelow ? y + of.down + small.up : y - of.up - small.down,
      );
    },
  };
}

/** A base with an index or an exponent behind it. @param {Pen} pen @param {Node[]} inside @param {number} size @param {boolean} isIndex @returns {Part} */
function scripted(pen, [base, script], size, isIndex) {
  const of = part(pen, base, size);
  const small = part(pen, script, Math.max(LEAST, SCRIPT * size));
  const shift = isIndex ? of.down - 0.15 * pen.type(size) : -of.up + 0.1 * pen.type(size);
  return {
    wide: of.wide + small.wide + 0.05 * pen.type(size),
    up: Math.max(of.up, small.up - shift),
    down: Math.max(of.down, small.down + shift),
    draw: (x, y) => {
      of.draw(x, y);
      small.draw(x + of.wide + 0.03 * pen.type(size), y + shift);
    },
  };
}
