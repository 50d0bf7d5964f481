// Formulas of a file: every symbol is drawn once, and a fraction's parts stand above and below its bar.
import assert from "node:assert/strict";
import { test } from "node:test";

const of = (name) => import(`${process.env.MODULES}/${name}.js`);
const { Pen } = await of("draw");
const { formulaRows } = await of("formula_figure");
const { onPaper } = await of("theme");

const mi = (text) => ["mi", {}, text];
const mo = (text) => ["mo", {}, text];
const FRACTION = [
  "mfrac",
  {},
  [
    ["mrow", {}, [mi("Q"), ["msup", {}, [mi("K"), mo("⊤")]]]],
    ["msqrt", {}, [["msub", {}, [mi("d"), mi("k")]]]],
  ],
];
const SOFTMAX = [
  "math",
  {},
  [
    [
      "mrow",
      {},
      [mi("A"), mo("="), mi("softmax"), ["mrow", {}, [mo("("), FRACTION, mo(")")]], mi("<V")],
    ],
  ],
];
const formula = (line) => ({
  id: "f",
  title: "f",
  lines: [line],
  numbers: [],
  symbols: [],
});

/** What is drawn in so much room: the height, the texts by what they say, and the SVG. */
function drawn(lines, width) {
  const pen = new Pen(onPaper(), 14, false);
  const height = formulaRows(pen, lines.map(formula), { x: 0, y: 0, width });
  return { height, svg: pen.parts.join(""), texts: pen.texts };
}

test("a formula is drawn with each of its symbols, in order and as text", () => {
  const { texts, svg, height } = drawn([SOFTMAX], 900);
  assert.deepEqual(
    texts.map(({ text }) => text),
    ["A", "=", "softmax", "Q", "K", "⊤", "d", "k", "<V"],
  );
  assert.match(svg, /&lt;V/);
  assert.ok(height > 30 && height < 90);
  assert.equal(svg.match(/font-style="italic"/g).length, 5);
  for (const { box } of texts) assert.ok(box[1] >= 0 && box[3] <= height && box[2] <= 900);
});

test("a fraction stands on the line of its neighbours, its parts above and below", () => {
  const { texts } = drawn([SOFTMAX], 900);
  const at = Object.fromEntries(texts.map(({ text, box }) => [text, box]));
  const middle = (at.A[1] + at.A[3]) / 2;
  assert.ok(at.Q[3] <= middle && at.d[1] >= middle);
  assert.ok(at["⊤"][1] < at.K[1] && at.k[3] > at.d[3]);
  assert.ok(at.softmax[2] < at.Q[0] && at.K[2] < at["<V"][0]);
});

test("formulas without room beside each other stand in rows", () => {
  const one = drawn([SOFTMAX], 900);
  const wide = drawn([SOFTMAX, SOFTMAX], 900);
  const narrow = drawn([SOFTMAX, SOFTMAX], 200);
  assert.equal(wide.height, one.height);
  assert.ok(Math.abs(narrow.height - 2 * one.height) < 1);
});

test("a number stands below its symbol, both in the middle of one column", () => {
  const cell = (item, attributes = {}) => ["mtd", attributes, [item]];
  const line = (...texts) => [
    "mtr",
    {},
    texts.map((text, at) => cell(mi(text), at ? {} : { class: "result" })),
  ];
  const table = ["math", {}, [["mtable", {}, [line("z", "=", "a"), line("0.822", "=", "0.5")]]]];
  const pen = new Pen(onPaper(), 14, false);
  const numbered = { ...formula(SOFTMAX), numbers: [table] };
  formulaRows(pen, [numbered], { x: 0, y: 0, width: 900 });
  const at = pen.texts.map(({ text, box }) => ({
    text,
    middle: (box[0] + box[2]) / 2,
    box,
  }));
  assert.deepEqual(
    at.map(({ text }) => text),
    ["z", "=", "a", "0.822", "=", "0.5"],
  );
  for (const column of [0, 1, 2]) {
    assert.ok(Math.abs(at[column].middle - at[column + 3].middle) < 0.5);
    assert.ok(at[column].box[3] <= at[column + 3].box[1] + 1);
  }
  assert.equal(pen.parts.join("").split(pen.look.primary).length - 1, 2);
});
