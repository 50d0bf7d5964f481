// The layer under the views: scales, cells, files, axes, numbers in words, news, soft lookups.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const of = (name) => import(`${process.env.MODULES}/${name}.js`);
const { HTML, MATH, SVG, attribute, known } = await of("allowed");
const { channels, css, inkOn, lookOf, onWhite, ramp, shade, wordAt } = await of("theme");
const { ends, folded } = await of("matrix_canvas");
const { FONT, escaped, tag } = await of("svg_export");
const { sheet } = await of("panel_layout");
const { nice, scale, through, ticks } = await of("axis");
const say = await of("number_format");
const { strongest, calm } = await of("tokens");
const { bus, listen } = await of("bus");
const { decode, encode } = await of("codec");
const { mount } = await of("mount");
const { Echoes } = await of("optimistic_updates");

const hex = (word) => css(word).match(/\d+/g).map(Number);
const look = lookOf({
  ink: "#15110d",
  paper: "#fffdf9",
  primary: "#9a4a06",
  border: "#d9d0c1",
  font: "Inter",
  sequential: ["#ffffff", "#808080", "#000000"],
  categorical: ["#9a4a06", "#1f5f99"],
});

test("an echo of what was sent is taken once, and nobody waits for those before it", () => {
  const echoes = new Echoes();
  assert.equal(echoes.takes(1), false, "from elsewhere");
  echoes.sent.push(1, 2, 3);
  assert.equal(echoes.takes(2), true);
  assert.equal(echoes.takes(1), false);
  assert.equal(echoes.takes(3), true);
  assert.deepEqual(echoes.sent, []);
});

test("a scale begins and ends at its own colours and goes evenly between them", () => {
  const words = ramp(["#000000", "#ff0000", "#ffffff"]);
  assert.deepEqual(hex(words[0]), [0, 0, 0]);
  assert.deepEqual(hex(words[255]), [255, 255, 255]);
  assert.deepEqual(hex(words[64]), [128, 0, 0]);
  assert.equal(words[0] >>> 24, 255, "no colour is see-through");
});

test("a two-sided scale is the paper at 0 and as far away on either side", () => {
  assert.deepEqual(hex(look.two[0]), channels("#1f5f99"));
  assert.deepEqual(hex(look.two[255]), channels("#9a4a06"));
  const [one, other] = [127, 128].map((at) => hex(look.two[at]));
  channels("#fffdf9").forEach((c, k) => {
    assert.ok(Math.abs(one[k] - c) <= 1 && Math.abs(other[k] - c) <= 1);
  });
});

test("what lies outside a scale takes its nearer end", () => {
  assert.equal(wordAt(look.one, -3), look.one[0]);
  assert.equal(wordAt(look.one, 7), look.one[255]);
});

test("letters reach 4.5 : 1 on every colour of either scale and of the light theme", () => {
  const linear = (c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  for (const words of [look.one, look.two, onWhite().one, onWhite().two])
    for (const word of words) {
      const [a, b] = [light(hex(word)), light(channels(inkOn(word)))].sort((x, y) => y - x);
      assert.ok((a + 0.05) / (b + 0.05) >= 4.5, css(word));
    }
});

test("on white the paper is white and the scales are the light theme's", () => {
  assert.equal(onWhite().paper, "#ffffff");
  assert.deepEqual(hex(onWhite().two[255]), channels(onWhite().categorical[0]));
});

test("a weight's place: linear, three decades, nothing", () => {
  assert.equal(shade(0.5, 1), 0.5);
  assert.equal(shade(0, 1, true), 0);
  assert.equal(shade(1, 1, true), 1);
  assert.ok(Math.abs(shade(0.001, 1, true)) < 1e-12);
  assert.ok(Math.abs(shade(0.1, 1, true) - 2 / 3) < 1e-12);
  assert.deepEqual(ends("global", true), ["0.001", "1"]);
});

test("thumbnails of Python's have the largest of each block within a step of 256", () => {
  const at = (name) => new URL(`golden/thumbnails.${name}`, import.meta.url);
  const { header, blocks } = decode(readFileSync(at("bin")));
  const { largest } = JSON.parse(readFileSync(at("json"), "utf8"));
  assert.equal(header.rows * header.columns, blocks.cells.length);
  const [peak] = blocks.peak;
  largest.flat().forEach((wanted, i) => {
    const weight = peak * (blocks.cells[i] / 255) ** 2;
    assert.ok(Math.abs(weight - wanted) <= 0.004 * peak, `${weight} ${wanted}`);
  });
});

test("cells that share a pixel share it as the strongest, at the edges too", () => {
  const bytes = Uint8Array.from([1, 2, 9, 0, 0, 3, 0, 0, 7]); // 3 x 3
  assert.deepEqual([...folded(bytes, 3, 3, 2)], [2, 9, 0, 7]);
  const signed = Uint8Array.from([128, 10, 128, 140]);
  assert.deepEqual([...folded(signed, 2, 2, 2, (byte) => Math.abs(byte - 128))], [10]);
  assert.equal(folded(bytes, 3, 3, 1), bytes);
});

test("a file says its title and caption, names its fonts, and no text can break out of it", () => {
  const hostile = `<script>alert("x")</script> & \u0007 ${"word ".repeat(300)}`;
  const fact = { kind: "facts", title: hostile, sentence: hostile, facts: [[hostile, hostile]] };
  const header = { title: hostile, caption: [hostile], special: [] };
  const svg = sheet({ header, figures: [{ ...fact, note: hostile, select: [] }] }, look);
  assert.ok(svg.startsWith("<svg ") && svg.endsWith("</svg>"));
  assert.ok(svg.includes("&lt;script&gt;") && !svg.includes("<script") && !svg.includes("\u0007"));
  assert.ok(svg.includes(`font-family="${FONT}"`) && FONT.endsWith("sans-serif"));
  assert.ok(svg.includes(look.paper));
  const height = Number(svg.match(/ height="([\d.]+)" viewBox/)[1]);
  const lowest = Math.max(...[...svg.matchAll(/ y="([\d.]+)"/g)].map(([, y]) => Number(y)));
  assert.ok(lowest > 100 && lowest <= height, "nothing stands below the paper");
  assert.equal(tag("g", { id: undefined, d: `"0` }, "d"), '<g d="&quot;0">d</g>');
  assert.equal(escaped("a\u0000b\ud800"), "a\ufffdb\ufffd");
});

test("a name that no view has is refused, in any spelling, and an object where a word is meant", () => {
  const names =
    "onload ONLOAD OnLoad style srcset srcdoc formaction xlink:href HREF __proto__ constructor";
  for (const name of names.split(" "))
    for (const of of [HTML, SVG, MATH])
      assert.throws(() => attribute(name, "alert(1)", of), TypeError, name);
  for (const name of [
    "script",
    "SCRIPT",
    "iframe",
    "object",
    "template",
    "foreignObject",
    "animate",
  ])
    for (const { elements } of [HTML, SVG, MATH])
      assert.throws(() => known(name, elements), TypeError, name);
  assert.throws(() => tag("g", JSON.parse('{"ONLOAD": "alert(1)"}')), TypeError);
  assert.throws(() => tag("g", JSON.parse('{"__proto__": "x"}')), TypeError);
  for (const value of [{}, ["x"], null, () => "x", { toString: () => "x" }, Symbol("x")])
    assert.throws(() => attribute("class", value, HTML), TypeError);
  for (const to of [
    "javascript:alert(1)",
    " JavaScript:alert(1)",
    "java\nscript:alert(1)",
    "vbscript:x",
    "data:text/html,x",
    "//other",
    {},
  ])
    assert.throws(() => attribute("href", to, HTML), TypeError, `${to}`);
  for (const to of ["./?text=a", "../", "blob:x", "data:image/png;base64,", "https://a/", "."])
    assert.equal(attribute("href", to, HTML), to);
});

test("ticks are round, inside, and evenly apart", () => {
  assert.deepEqual(ticks(0, 1), [0, 0.5, 1]);
  assert.deepEqual(ticks(1, 100, true), [1, 2, 5, 10, 20, 50, 100]);
  for (const [low, high] of [
    [0, 3],
    [-7, 12],
    [0, 0.003],
    [120, 9000],
  ]) {
    const list = ticks(low, high);
    assert.ok(list.length >= 2 && list.length <= 12, `${list}`);
    assert.ok(list.every((tick) => tick >= low - 1e-9 && tick <= high + 1e-9));
  }
  assert.equal(nice(10, 5), 2);
  assert.equal(scale(0, 10, 100, 200)(5), 150);
  assert.ok(Math.abs(scale(0.01, 1, 0, 2, true)(0.1) - 1) < 1e-12);
});

test("numbers: no minus before 0, no 0 or 1 that is not one, a real minus sign", () => {
  assert.equal(say.fixed(-0.001, 2), "0.00");
  assert.equal(say.fixed(-1.5, 1), "−1.5");
  assert.equal(say.exact(0.00001, 4), "1 × 10⁻⁵");
  assert.equal(say.hundredths(0.001), "< 0.01");
  assert.equal(say.hundredths(0.999), "> 0.99");
  assert.deepEqual([0, 0.5, 1].map(say.hundredths), ["0.00", "0.50", "1.00"]);
  assert.equal(say.share(0.001), "<.01");
  assert.equal(say.share(0.999), ">.99");
  assert.equal(say.num(782900000), "7.829 × 10⁸");
  assert.equal(say.num(-0.00001234, 2), "−1.2 × 10⁻⁵");
  assert.equal(say.num(NaN), "–");
  assert.equal(say.weightText(0.5, 0.001), "≈ 0.5000 ± 0.0010");
  // The width holds what was rounded away too.
  assert.equal(say.weightText(0.00031, 0.00001), "≈ 0.0003 ± 0.0001");
  assert.equal(say.within(-0.12344, 0.001), "≈ −0.1234 ± 0.0011");
  assert.equal(say.within(-0.00001, 0.00002), "≈ 0.0000 ± 0.0001");
});

test("formulas of a line have indices and powers, words with signs in them stay", () => {
  const html = (line) =>
    say
      .formulas(line)
      .map(([tag, text]) => (tag ? `<${tag}>${text}</${tag}>` : text))
      .join("");
  assert.equal(html("W_O + b"), "W<sub>O</sub> + b");
  assert.equal(
    html("Σ_h A_h V_h W_O^h"),
    "Σ<sub>h</sub> A<sub>h</sub> V<sub>h</sub> W<sub>O</sub><sup>h</sup>",
  );
  assert.equal(html("10000^(2i/d), 6)^0.6."), "10000<sup>2i/d</sup>, 6)<sup>0.6</sup>.");
  assert.equal(html("snake_case, ^_^ and a_"), "snake_case, ^_^ and a_");
});

test("the strongest, largest first, and nothing that is no number", () => {
  assert.deepEqual(strongest([0.1, NaN, 0.7, 0.2], 2), [2, 3]);
  assert.deepEqual(strongest([], 3), []);
  assert.equal(calm("a\u202eb"), "a\ufffdb");
});

// What a window has and node has not.
const target = new EventTarget();
for (const name of ["addEventListener", "removeEventListener", "dispatchEvent"])
  globalThis[name] = target[name].bind(target);

test("news: everyone hears what is true now, and nobody after the end", () => {
  const heard = [];
  const first = listen(({ head }) => head === 1 && bus.tell({ head: 2 }));
  const second = listen(({ head, layer }) => heard.push([layer, head]));
  bus.tell({ layer: 3, head: 1 });
  assert.deepEqual(heard.at(-1), [3, 2], "not what was true when the news set out");
  second();
  first();
  bus.tell({ head: 9 });
  assert.ok(!heard.some(([, head]) => head === 9));
  assert.equal(bus.now.layer, 3);
});

test("a place that has left the page is not drawn in, one with a pointer down on it a little later", async () => {
  const colours = { "--st-chart-sequential-colors": "#ffffff,#000000" };
  const place = {
    isConnected: false,
    classList: [],
    dataset: {},
    querySelector: () => place,
    getRootNode: () => ({}),
  };
  globalThis.getComputedStyle = () => ({
    fontFamily: "Inter",
    getPropertyValue: (name) => (place.isConnected ? (colours[name] ?? "#112233,#445566") : ""),
  });
  globalThis.document = { querySelector: () => null };
  const drawn = [];
  const draw = mount("some", "", (view) => drawn.push(view.header.says));
  const call = (says) => draw({ data: encode({ says }, {}), parentElement: place });
  assert.equal(typeof call("nobody sees it"), "function");
  place.isConnected = true;
  call("seen");
  assert.deepEqual(drawn, ["seen"]);
  place.onpointerdown();
  call("during a press");
  call("the last during a press");
  assert.equal(drawn.length, 1);
  dispatchEvent(new Event("pointerup"));
  assert.equal(drawn.length, 1, "not before its click");
  await new Promise((done) => setTimeout(done, 20));
  assert.deepEqual(drawn.slice(1), ["the last during a press"]);
  place.onpointerdown();
  call("of a finger that stays");
  await new Promise((done) => setTimeout(done, 550));
  assert.equal(drawn.at(-1), "of a finger that stays");
  delete globalThis.getComputedStyle;
  delete globalThis.document;
});
