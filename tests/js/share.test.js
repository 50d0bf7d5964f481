// The picture card: words where they are read, the pair marked, and text as text.
import assert from "node:assert/strict";
import { test } from "node:test";

const of = (name) => import(`${process.env.MODULES}/${name}.js`);
const { sheet } = await of("panel_layout");
const { onPaper } = await of("theme");

/** A card of one text as the SVG of its file. */
function drawn(words, pair, more = {}) {
  const spaced = words.map((word) => !/^[.,]/.test(word));
  const [source, target] = pair;
  const figure = {
    kind: "picturecard",
    select: [],
    says: [words[source], words[target]],
    number: "0.72",
    texts: [words],
    spaced: [spaced],
    edges: [{ source, target, weight: 0.72 }],
    about: "encoder",
    name: "Headlight",
    ...more,
  };
  const header = { title: "T", special: [], caption: [] };
  return sheet({ header, figures: [figure] }, onPaper());
}

/** Where each text stands, from left to right in the line of its height. */
const places = (svg) =>
  [...svg.matchAll(/<text x="([\d.-]+)" y="([\d.-]+)"[^>]*>([^<]*)</g)].map(([, x, y, text]) => ({
    x: +x,
    y: +y,
    text,
  }));

test("a card is a picture of 1200 to 630 whose texts are data", () => {
  const svg = drawn(["<script>", "&amp;", '"it"', "\u0000"], [2, 0]);
  assert.match(svg, /^<svg [^>]*width="1200" height="630" viewBox="0 0 1200 630"/);
  assert.doesNotMatch(svg, /<script|\u0000/);
  assert.match(svg, /&lt;script&gt;/);
  assert.match(svg, /&amp;amp;/);
  assert.equal(svg.match(/class="arc"/g).length, 1);
});

test("words stand in their order in one line or two, and a full stop never alone", () => {
  const words = "The animal that we saw at the station yesterday was too tired .".split(" ");
  const svg = drawn(words, [3, 1]);
  const own = places(svg).filter(({ y }) => y > 200 && y < 520);
  assert.deepEqual(
    own.map(({ text }) => text),
    words,
  );
  assert.equal(new Set(own.map(({ y }) => y)).size, 2);
  own.slice(1).forEach(({ x, y }, at) => assert.ok(y > own[at].y || x > own[at].x));
  for (let n = 8; n < words.length; n++) {
    const few = places(drawn([...words.slice(0, n), "."], [3, 1])).filter(
      ({ y }) => y > 200 && y < 520,
    );
    assert.equal(few.at(-1).y, few.at(-2).y);
  }
});

test("a text that runs to the left does, and what runs to the right in it keeps its order", () => {
  const words = ["הכלב", "ראה", "Google", "Maps", "היום"];
  const xs = places(drawn(words, [0, 1])).filter(({ y }) => y > 200 && y < 520);
  const order = xs.sort((a, b) => a.x - b.x).map(({ text }) => text);
  assert.deepEqual(order, ["היום", "Google", "Maps", "ראה", "הכלב"]);
});

test("an arc of a word to itself is a loop, and one to a word without room is left out", () => {
  const itself = drawn(["a", "b"], [0, 0]);
  const [, from, to] = itself.match(
    /<path d="M([\d.]+) [\d.]+C[^"]* ([\d.]+) [\d.]+"[^>]*class="arc"/,
  );
  assert.ok(Number(to) > Number(from));
  const many = Array.from({ length: 300 }, () => "Donaudampfschifffahrt");
  assert.doesNotMatch(drawn(many, [299, 298], { says: ["one sentence"] }), /class="arc"/);
});
