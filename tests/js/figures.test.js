// Figures as SVG: what is drawn is what the figure says, whatever the text.
import assert from "node:assert/strict";
import { test } from "node:test";

const of = (name) => import(`${process.env.MODULES}/${name}.js`);
const { nearest, placesOf } = await of("axis");
const { Pen } = await of("draw");
const { between, figure } = await of("figures");
const { spoken } = await of("head_matrices");
const { row, widths } = await of("panel_layout");
const { AXES } = await of("figure_axes");
const { around, cut, laid, namedIn, part, spread } = await of("slide_layout");
const { hold, listed, moved, opened, picture, shownAt, unpack, value } = await of("linked_weights");
const { lookOf } = await of("theme");
const { toggled } = await of("flow_rows");
const { onShow } = await of("beam_figure");

const look = lookOf({
  ink: "#111111",
  paper: "#ffffff",
  primary: "#aa5500",
  border: "#dddddd",
  font: "sans-serif",
  sequential: ["#ffffff", "#000000"],
  categorical: ["#aa5500", "#0000ff", "#008800"],
});
const plain = { title: "", note: "", select: [], marks: [], sides: ["", ""] };

/** A figure of a kind as the SVG of a file. */
function drawn(kind, more, width = 600) {
  const pen = new Pen(look, 14, false);
  const height = figure(pen, { kind, ...plain, ...more }, { x: 0, y: 0, width });
  assert.ok(height > 0 && height < 2000);
  return pen.parts.join("");
}

test("each message of a chat begins a line of its sentence, and an index stands below the line", () => {
  const tokens = ["user", "Nepal", "assistant", "Kathmandu"];
  const tops = (breaks) =>
    [
      ...drawn("tokenrow", { tokens, weights: [], selected: -1, breaks }).matchAll(
        /<text [^>]*y="([\d.]+)"/g,
      ),
    ].map(([, y]) => Number(y));
  const [a, b, c, d] = tops([2]);
  assert.ok(a === b && c === d && c > a);
  assert.equal(new Set(tops([])).size, 1);
  const svg = drawn("bars", {
    columns: [""],
    rows: [{ label: "bias of W_O", values: [1], texts: ["<"] }],
    high: 1,
    title: "x W_Q, snake_case",
  });
  assert.match(svg, /bias of W<tspan dy="0.25em" font-size="75%">O<\/tspan></);
  assert.match(svg, /Q<\/tspan><tspan dy="-0.19em">, snake_case<\/tspan>/);
});

test("labels of special tokens are paler than others, on the screen and in a file, and no ink on a colour is", () => {
  for (const screen of [true, false]) {
    const pen = new Pen(look, 14, screen, ["‹user›"]);
    for (const label of ["‹user›", "3 ‹user›", "user"]) pen.text(0, 0, label);
    pen.text(0, 0, "‹user›", { fill: "#fff" });
    const pale = pen.parts.map((part) => part.includes('fill-opacity="0.75"'));
    assert.deepEqual(pale, [true, true, false, false]);
  }
});

test("names of a plane cover no name and no point, and words go before punctuation", () => {
  const words = "<a be 猫c do ei fu go hi ja ki lo mu no oh".split(" ");
  const labels = ["it", "?!", "!!", "far", ...words];
  const places = labels.map((label) => (label === "far" ? [40, 40] : [0, 0]));
  const cloud = {
    name: "text",
    labels,
    keys: labels.map((_, at) => `${at}`),
    selected: 0,
    fills: labels.map(() => 1),
    paths: places.flat(),
  };
  const more = {
    clouds: [cloud],
    frames: [{ label: "a", note: "" }],
    current: 0,
    trails: false,
    close: false,
    x_title: "x",
    y_title: "y",
  };
  const svg = drawn("plane", more);
  const named = (label) => svg.includes(`>${label.replace("<", "&lt;")}</text>`);
  assert.ok(named("it") && named("far") && words.filter(named).length >= 3);
  assert.ok(!named("?!") && !named("!!"), "punctuation finds no room beside the words");
  const pen = new Pen(look, 14, false);
  const boxes = [
    ...svg.matchAll(/<text x="([\d.]+)" y="([\d.]+)"[^>]*>(it|&lt;a|[b-o][a-u])</g),
  ].map(([, x, y, label]) => {
    const isOn = label === "it";
    const half = 0.55 * (isOn ? 1.1 : 0.85) * 14;
    return [
      Number(x),
      Number(y) - half,
      Number(x) + pen.width(label.replace("&lt;", "<"), { size: isOn ? 1.1 : 0.85, bold: isOn }),
      Number(y) + half,
    ];
  });
  assert.ok(boxes.length >= 3);
  for (const [at, [a, b, c, d]] of boxes.entries())
    for (const [e, f, g, h] of boxes.slice(at + 1)) assert.ok(c <= e || g <= a || d <= f || h <= b);
});

test("bars and their numbers fit any width", () => {
  for (const columns of [1, 2, 3])
    for (let width = 180; width < 500; width += 7) {
      const pen = new Pen(look, 14, false);
      const rows = ["39 because", "40 it"].map((label, key) => ({
        label,
        key,
        values: [31.8, 11.3, 33.1].slice(0, columns),
        texts: ["31.81", "11.31", "33.10"].slice(0, columns),
        outline: null,
      }));
      figure(
        pen,
        {
          kind: "bars",
          ...plain,
          columns: ["word", "position", "sum"].slice(0, columns),
          rows,
          high: null,
        },
        { x: 0, y: 0, width },
      );
      const numbers = [...pen.parts.join("").matchAll(/<text x="([\d.]+)"[^>]*>([\d.]+)</g)];
      assert.ok(numbers.length >= 2);
      for (const [, x, text] of numbers)
        assert.ok(+x + pen.width(text) <= width, `${columns} at ${width}`);
    }
});

test("no name of a plane lies on the title of an axis", () => {
  const labels = ["it", ..."ab cd ef gh ij kl mn op".split(" ")];
  const places = labels.map((_, at) => (at ? [10, at / 10] : [0, 9]));
  const cloud = {
    name: "text",
    labels,
    keys: labels.map((_, at) => `${at}`),
    selected: 0,
    fills: labels.map(() => 1),
    paths: places.flat(),
  };
  const more = {
    clouds: [cloud],
    frames: [{ label: "a", note: "" }],
    current: 0,
    trails: false,
    close: false,
    x_title: "component 1 (17%)",
    y_title: "y",
  };
  const svg = drawn("plane", more);
  const pen = new Pen(look, 14, false);
  const texts = [...svg.matchAll(/<text x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]+)</g)].map(
    ([, x, y, label]) => [label, +x, +y],
  );
  const [[, right, foot]] = texts.filter(([label]) => label === "component 1 (17%) →");
  const left = right - pen.width("component 1 (17%) →", { size: 0.8, bold: true });
  const named = texts.filter(([label]) => labels.includes(label));
  assert.ok(named.length >= 3);
  for (const [label, x, y] of named)
    assert.ok(Math.abs(y - foot) > 0.6 * 14 || x + pen.width(label, { size: 0.85 }) < left, label);
});

test("a matrix says how wide it is, with its scale and its title", () => {
  const square = (n, more) => {
    const pen = new Pen(look, 14, false);
    const labels = [...Array(n).keys()].map(String);
    const figureOf = {
      kind: "matrix",
      ...plain,
      rows: labels,
      columns: labels,
      values: new Float32Array(n * n),
      low: 0,
      high: 1,
      missing: "",
      digits: 2,
      unit: "",
      ...more,
    };
    figure(pen, figureOf, { x: 0, y: 0, width: 600, height: 300 });
    return pen.edge;
  };
  assert.ok(square(40, {}) > 9 * 14 && square(40, {}) < 400);
  const title = "A title that is wider than a matrix";
  assert.equal(square(2, { title }), new Pen(look, 14, false).width(title, { bold: true }));
  assert.ok(square(2, { note: title.repeat(9) }) <= 600);
  const below = drawn("matrix", {
    rows: ["a"],
    columns: ["b"],
    values: [1],
    low: 0,
    high: 1,
    missing: "",
    digits: 2,
    note: "n",
    frame_note: "Scroll up.",
  });
  assert.ok(!below.includes("Scroll up."), "what a frame on the page needs stands in no file");
});

test("halfway between two figures of one make are their numbers, and what changes at once is the later one's", () => {
  const bars = (value, label) => ({
    kind: "bars",
    rows: [{ label, values: [value, NaN], outline: null }],
  });
  const half = between(bars(0, "a"), bars(1, "b"), 0.5);
  assert.deepEqual(half, bars(0.5, "b"));
  const longer = { kind: "bars", rows: [...bars(3, "x").rows, ...bars(4, "y").rows] };
  assert.deepEqual(between(bars(0, "a"), longer, 0.5), longer);
  const cells = (...values) => ({ kind: "matrix", values: Float32Array.from(values), rows: ["a"] });
  assert.deepEqual(between(cells(0, NaN, 1), cells(1, 1, NaN), 0.25), cells(0.25, 1, NaN));
});

test("a matrix has one colour for each value, runs of a colour are one path, nothing where there is none", () => {
  const svg = drawn("matrix", {
    rows: ["a", "b"],
    columns: ["c", "d", "e"],
    values: Float32Array.of(0, 1, 1, NaN, 0.5, 0),
    low: 0,
    high: 1,
    missing: "not allowed",
    digits: 2,
  });
  const cells = svg.slice(svg.lastIndexOf("<g "));
  assert.match(cells, /M1 0h2v1[.]01h-2z/); // the two ones of the first row, a little below the next
  assert.doesNotMatch(cells, /M0 1/); // the cell that does not exist
  assert.match(cells, /rgb\(0,0,0\)/);
  assert.match(svg, /hatch/);
});

test("a matrix of words has each word once, and in a frame that scrolls those of some columns", () => {
  const more = {
    rows: ["first", "last"],
    columns: ["c", "d", "e"],
    values: Float32Array.of(0, 50, 100, 10, 20, NaN),
    words: ["one", "two", "<i>", "four", "five", "six"],
    bold: Float32Array.of(0, 0, 0, 1, 0, 0),
    keys: ["x", "y"],
    marks: [[1, 2, ""]],
    low: 0,
    high: 100,
    unit: "%",
  };
  const svg = drawn("matrix", more);
  for (const word of ["one", "two", "&lt;i&gt;", "four", "five", "six", "100%"])
    assert.equal(svg.split(`>${word}<`).length, 2, word);
  assert.match(svg, /font-weight="650"[^>]*>four</);
  const quiet = drawn("matrix", { ...more, pale: Float32Array.of(0, 0, 1, 0, 0, 0) });
  assert.match(quiet, /fill-opacity="0.6"[^>]*>&lt;i&gt;</);
  assert.equal(
    quiet.split('fill-opacity="0.6"').length,
    svg.split('fill-opacity="0.6"').length + 1,
  );
  const pen = new Pen(look, 14, false);
  pen.scrolls = true;
  figure(pen, { kind: "matrix", ...plain, ...more }, { x: 0, y: 0, width: 100 });
  assert.ok(pen.pane.box[4] > 100);
  assert.match(pen.pane.cells(1, 1), />two<.*>five</);
  assert.doesNotMatch(pen.pane.cells(1, 1), />one<|>six</);
});

test("words of a text are text and no markup", () => {
  const word = '<script>alert("x")</script>&amp;\u0001';
  for (const svg of [
    drawn("bars", {
      columns: [""],
      rows: [{ label: word, values: [1], texts: ["1"], selected: false, key: "", outline: null }],
      high: null,
      mark: null,
      header: "",
    }),
    drawn("tokenrow", { tokens: [word], weights: Float32Array.of(1), selected: 0 }),
    drawn("links", {
      left: [word],
      right: [word],
      weights: Float32Array.of(1),
      selected: 0,
      mark: null,
    }),
  ]) {
    assert.doesNotMatch(svg, /<script|\u0001/);
    assert.match(svg, /&lt;script/);
  }
});

test("the main curve has the page's own colour, and no other curve has it", () => {
  const line = (main) => ({ name: "", end: "", main, shape: "line", x: [0, 1], y: [0, 1] });
  const svg = drawn("chart", {
    series: [line(false), line(true), line(false)],
    x_title: "",
    y_title: "",
    ticks: [],
    guides: [],
  });
  const strokes = [...svg.matchAll(/<path [^>]*stroke="(#\w+)"[^>]*stroke-width="(1.5|2.5)"/g)];
  assert.deepEqual(
    strokes.map(([, colour]) => colour),
    ["#0000ff", "#aa5500", "#008800"],
  );
});

test("every line of a chart has its name at its end, or a sample of itself before the name", () => {
  const names = ["spread evenly", "a head of another model"];
  const shapes = ["line", "points"];
  const series = names.map((name, at) => {
    return { name, end: "", main: false, shape: shapes[at], x: [0, 1], y: [at, 1] };
  });
  const more = { series, x_title: "", y_title: "", ticks: [], guides: [] };
  const count = (svg, pattern) => svg.match(pattern)?.length ?? 0;
  const [line, point] = [/stroke-width="1.5"/g, /<circle/g];
  const [wide, slim] = [drawn("chart", more, 900), drawn("chart", more, 240)];
  for (const svg of [wide, slim]) for (const name of names) assert.match(svg, new RegExp(name));
  assert.equal(count(slim, line), count(wide, line) + 1);
  assert.equal(count(slim, point), count(wide, point) + 1);
});

test("a slider has the scale of the chart that follows it, and goes to the nearest frame", () => {
  const frames = [{ x: 0 }, { x: 100 }, { x: 1000 }];
  const chart = { follows: "step", x_range: [10, 1000], log_x: true };
  const slider = { frames, choice: "step" };
  const [places, low, high] = placesOf([{ figures: [chart] }, slider], slider);
  assert.deepEqual([places[0], places[2], low, high], [0, 1, 0, 1]);
  assert.ok(Math.abs(places[1] - 0.5) < 1e-9);
  assert.deepEqual(placesOf([slider], slider), [[0, 1, 2], 0, 2]);
  assert.deepEqual(
    [0.2, 0.3, 0.9].map((at) => nearest(places, at)),
    [0, 1, 2],
  );
});

test("charts one below the other have one x axis, however wide their texts are", () => {
  const chart = (name, from, high) => ({
    ...plain,
    kind: "chart",
    series: [{ name, end: "", main: true, shape: "line", x: [from, 2000], y: [0, high] }],
    x_title: "steps",
    x_range: [0, 2000],
    y_title: "",
    ticks: [],
    guides: [[1000, ""]],
  });
  const svg = drawn("stack", { figures: [chart("a long name", 0, 1), chart("b", 50, 30_000)] });
  const guides = [...svg.matchAll(/<path d="M([\d.]+)[^"]*"[^>]*stroke-dasharray="4 4"/g)];
  assert.equal(guides.length, 2);
  assert.equal(guides[0][1], guides[1][1]);
});

test("bars are as long as their values, and those below zero go to the left", () => {
  const row = (value) => ({
    label: "a",
    values: [value],
    texts: [""],
    selected: false,
    key: "",
    outline: null,
  });
  const svg = drawn("bars", {
    columns: [""],
    rows: [row(1), row(-0.5)],
    high: null,
    mark: null,
    header: "",
  });
  const bars = [
    ...svg.matchAll(/<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"[^>]*fill-opacity="0.7"/g),
  ];
  const [[, x, wide], [, left, short]] = bars.map((each) => each.map(Number));
  assert.ok(Math.abs(wide - 2 * short) < 0.3 && Math.abs(left + short - x) < 0.3);
});

test("a press on a token of all frames shows its frame, and links lead from it alone", () => {
  const whole = {
    ...plain,
    kind: "links",
    flat: true,
    left: ["la", "rue"],
    right: ["the", "street"],
    sides: ["out", "in"],
    texts: ["90.0%", "80.0%"],
    weights: Float32Array.of(1, 0, 0.01, 0.99),
  };
  const frames = [{ figures: [] }, { figures: [] }];
  const svg = drawn("steps", { frames, current: 1, choice: "step", whole });
  assert.equal(svg.match(/<path/g).length, 1); // the other weight is below 0.02
  assert.match(svg, /80\.0%/);
  assert.match(svg, /0\.99/);
});

test("in a tree the way to the selected node stands out", () => {
  const svg = drawn("graph", {
    layout: "tree",
    nodes: ["start", "a", "b", "c"],
    strengths: [1, 0.5, 0.5, 0.5],
    texts: ["", "50.0%", "50.0%", "50.0%"],
    places: [
      [0, 0],
      [0, 1],
      [1, 1],
      [0, 2],
    ],
    edges: [
      { source: 0, target: 1, weight: 0 },
      { source: 0, target: 2, weight: 1 },
      { source: 2, target: 3, weight: 1 },
    ],
    selected: 3,
  });
  assert.equal(svg.match(/<path[^>]*stroke="#aa5500"/g).length, 2);
});

test("what a slide keeps is around what it speaks of, and figures share the width", () => {
  assert.deepEqual(around(10, [7], 3), [6, 7, 8]);
  assert.deepEqual(around(3, [0], 5), [0, 1, 2]);
  assert.deepEqual(spread(61, [30], 6), [0, 15, 30, 45, 60]);
  assert.deepEqual(spread(3, [0], 5), [0, 1, 2]);
  assert.deepEqual(widths(300, [{ kind: "bars" }, { kind: "bars" }], 14), [300, 300]);
  const below = widths(1000, [{ kind: "tokenrow" }, { kind: "graph" }, { kind: "bars" }], 14);
  assert.equal(below[0], 1000, "a sentence stands above the others");
  const [main, beside] = widths(1000, [{ kind: "graph" }, { kind: "bars" }], 14);
  assert.deepEqual(below.slice(1), [main, beside]);
  assert.ok(main > beside && main + beside < 1000);
  const grid = (heads) => ({ kind: "headmatrices", shape: [4, heads, 9, 9] });
  const walk = (...grids) =>
    widths(1000, [{ kind: "stack" }, { kind: "steps", frames: [{ figures: grids }] }], 14);
  assert.deepEqual(
    walk(grid(4)),
    [main, beside],
    "a grid of few heads leaves the rest to the charts",
  );
  assert.ok(walk(grid(8))[1] > beside && walk(grid(4), grid(4))[1] > beside);
});

test("on a slide a matrix of any size is drawn whole and says how many names it has, and no name of a line is cut", () => {
  for (const n of [5, 20, 64]) {
    const rows = Array.from({ length: n }, (_, at) => `w${at}`);
    const columns = ["a", "b", "c", "d", "e"];
    const matrix = {
      kind: "matrix",
      rows,
      columns,
      values: new Float32Array(5 * n),
      low: 0,
      high: 1,
      sides: [],
      note: "rows",
    };
    const pen = new Pen(look, 28, false, [], 28);
    const marks = [
      [n - 1, 4, ""],
      [n - 2, 0, ""],
    ];
    assert.ok(
      figure(pen, { ...plain, ...matrix, marks }, { x: 0, y: 0, width: 480, height: 400 }) <= 400,
    );
    const named = pen.texts.filter(({ text }) => [...rows, ...columns].includes(text));
    assert.ok(
      [rows[n - 1], rows[n - 2], "e", "a"].every((name) =>
        named.some(({ shown }) => shown === name),
      ),
    );
    const omitted =
      named.length < n + 5 ? [{ what: "names", shown: named.length, all: n + 5 }] : [];
    assert.deepEqual(pen.omitted, omitted);
    assert.equal(n === 5, !omitted.length);
  }
  const pen = new Pen(look, 28, false, [], 28);
  const line = {
    x: Float32Array.of(0, 1),
    y: Float32Array.of(1, 2),
    main: true,
    end: "",
    shape: "",
  };
  const name = "position times position";
  const more = {
    kind: "chart",
    series: [{ ...line, name }],
    x_title: "",
    y_title: "",
    ticks: [],
    guides: [],
  };
  figure(pen, { ...plain, ...more }, { x: 0, y: 0, width: 480, height: 400 });
  assert.ok(pen.parts.join("").includes(`>${name}<`) && pen.right <= 480);
});

test("every field along an axis is cut with it, and every place on it is counted anew", () => {
  const size = { rows: 6, columns: 5, left: 6, right: 5, tokens: 6, nodes: 6, strips: 6 };
  const kept = [1, 2, 4];
  for (const [kind, { along, places }] of Object.entries(AXES)) {
    // Each entry of a field says where it stood.
    const whole = { kind };
    for (const [name, axes] of Object.entries(along)) {
      const n = axes.reduce((all, axis) => all * (size[axis] ?? 6), 1);
      whole[name] = Array.from({ length: n }, (_, at) => `${name} ${at}`);
    }
    const of = (spec, at) =>
      typeof spec === "string"
        ? at
        : !spec
          ? "kept"
          : spec.each
            ? [0, 1, 4].map((one) => of(spec.each, one))
            : Array.isArray(spec)
              ? spec.map((each) => of(each, at))
              : Object.fromEntries(Object.keys(spec).map((name) => [name, at]));
    for (const [name, spec] of Object.entries(places)) whole[name] = of(spec, 4);
    const axes = [...new Set(Object.values(along).flat())];
    const made = part(whole, Object.fromEntries(axes.map((axis) => [axis, kept])));
    for (const [name, [first, second]] of Object.entries(along)) {
      const width = second ? size[second] : 1;
      const expected = kept.flatMap((row) =>
        second ? kept.map((column) => row * width + column) : [row],
      );
      assert.deepEqual(
        made[name],
        expected.map((at) => `${name} ${at}`),
        `${kind}.${name}`,
      );
      assert.ok(!first || whole[first], `${kind}.${name} runs along a field`);
    }
    for (const [name, spec] of Object.entries(places)) {
      const now = spec.each ? [of(spec.each, 0), of(spec.each, 2)] : of(spec, 2);
      assert.deepEqual(made[name], now, `${kind}.${name}`);
    }
    const gone = part(whole, Object.fromEntries(axes.map((axis) => [axis, [0, 1]])));
    for (const [name, spec] of Object.entries(places))
      if (!spec.each) assert.equal(gone[name], typeof spec === "string" ? -1 : null, name);
  }
});

test("bars and edges that are cut keep the scale of all of them", () => {
  const bar = (/** @type {string} */ label, /** @type {number} */ value, selected = false) => ({
    ...{ label, selected, values: [value], texts: ["1.00"], outline: null },
  });
  const bars = {
    ...{ ...plain, kind: "bars", columns: [""], mark: null, high: null, title: "" },
    rows: [bar("aa", 1, true), bar("bb", 2, true), bar("cc", 8), bar("dd", -2)],
  };
  const graph = {
    ...{ ...plain, kind: "graph", nodes: ["aa", "bb", "cc", "dd"], strengths: [0, 1, 0, 1] },
    edges: [
      { source: 0, target: 1, weight: 0.1 },
      { source: 2, target: 3, weight: 0.9 },
    ],
    ...{ selected: 1, split: 0, layout: "arcs", texts: [], places: [] },
  };
  const sizes = (/** @type {any} */ one, /** @type {RegExp} */ pattern) => {
    const pen = new Pen(look, 14, false);
    figure(pen, { ...one, omitted: [] }, { x: 0, y: 0, width: 400, height: 300 });
    return [...pen.parts.join("").matchAll(pattern)].map(([, size]) => size);
  };
  const length =
    /<rect [^>]*width="([\d.]+)" height="[\d.]+" fill="#aa5500"(?! fill-opacity="0.12)/g;
  const both = sizes(cut(bars, 2), length);
  assert.ok(both.length >= 2);
  assert.deepEqual(both, sizes(bars, length).slice(0, both.length));
  const wide = /<path [^>]*stroke-width="([\d.]+)"/g;
  const few = sizes(cut(graph, 2), wide);
  assert.equal(few.length, 1);
  assert.ok(sizes(graph, wide).includes(few[0]));
});

test("a framed number is kept where rows are left out, and its frame goes with it", () => {
  const n = 30;
  const at = 17;
  const values = Float32Array.from({ length: n }, (_, i) => n - i);
  const bar = (value) => ({
    label: "",
    values: [value],
    texts: [`${value}`],
    selected: false,
    outline: null,
  });
  const strip = (value) => ({ label: "", values: [value], text: "", sign: "", selected: false });
  const all = {
    bars: { rows: [...values].map(bar), mark: null },
    strips: { strips: [...values].map(strip) },
    texttable: { rows: [...values].map((value) => [`${value}`]), keys: [], selected: -1 },
    dials: { dials: [...values].map((value) => ({ text: `${value}`, selected: false })) },
    facts: { facts: [...values].map((value) => [`${value}`, ""]) },
    matrix: {
      rows: [...values].map(String),
      columns: ["0"],
      values,
      words: [...values].map(String),
      bold: [],
      pale: [],
      keys: [],
      column_keys: [],
      marks: [],
    },
  };
  const text = {
    bars: ({ rows }, row) => rows[row].texts[0],
    strips: ({ strips }, row) => `${strips[row].values[0]}`,
    texttable: ({ rows }, row) => rows[row][0],
    dials: ({ dials }, row) => dials[row].text,
    facts: ({ facts }, row) => facts[row][0],
    matrix: ({ words }, row) => words[row],
  };
  for (const [kind, of] of Object.entries(all)) {
    const few = cut({ ...plain, kind, ...of, framed: [[at, 0]] }, 4);
    assert.equal(few.framed.length, 1, kind);
    assert.ok(few.framed[0][0] < 5, kind);
    assert.equal(text[kind](few, few.framed[0][0]), `${n - at}`, kind);
  }
});

test("what a title or a sentence names is kept, and a sign stands where tokens are left out", () => {
  const labels = "The · animal · cross · [CLS] · it · . · ‧ep · Nepal · 9 it · an".split(" · ");
  assert.deepEqual(namedIn(labels, "“it” attends to “animal”."), [4, 8, 1]);
  assert.deepEqual(namedIn(labels, "it attends to animal 0.72, [CLS] 0.04"), [1, 3, 4, 8]);
  assert.deepEqual(namedIn(labels, "“until Nepal”"), [7]);
  const tokens = Array.from({ length: 30 }, (_, at) => `w${at}`);
  const row = {
    ...plain,
    kind: "tokenrow",
    tokens,
    weights: [],
    texts: [],
    keys: [],
    marked: [],
    selected: 29,
  };
  const short = cut(row, 2, "After “w29” it is as after “w4”");
  assert.deepEqual(short.tokens, ["…", "w3", "w4", "w5", "…", "w29"]);
  assert.deepEqual(short.keys, ["", "3", "4", "5", "", "29"]);
  assert.deepEqual(short.omitted, [{ what: "tokens", shown: 4, all: 30 }]);
  const bar = (label, value) => ({
    label,
    values: [value],
    texts: ["1"],
    selected: false,
    outline: null,
  });
  const bars = {
    ...plain,
    kind: "bars",
    columns: [""],
    rows: [bar("a", 9), bar("Nepal", 1), bar("b", 8)],
    mark: null,
  };
  assert.deepEqual(
    cut(bars, 2, "“Nepal”").rows.map(({ label }) => label),
    ["a", "Nepal"],
  );
  assert.deepEqual(
    cut({ ...bars, rows: [...bars.rows, bar("c", 2)] }, 2, "c 0.2\n“Nepal” is brought").rows.map(
      ({ label }) => label,
    ),
    ["Nepal", "c"],
    "a word in quotes on one line, one without them on another",
  );
  const strip = (label) => ({ label, values: [1], text: "1", selected: false, sign: "" });
  const terms = ["0.04 × v of a", "0.72 × v of Nepal", "0.1 × v of b", "0.2 × v of c", "z"].map(
    strip,
  );
  const sum = { ...plain, kind: "strips", strips: terms, framed: [[4, 0]] };
  assert.ok(
    cut(sum, 3, "0.72 of “Nepal”").strips.some(({ label }) => label.endsWith("Nepal")),
    "the term of the word, where its label has more than the word",
  );
});

test("what has no room on a slide is named there, and the more room the less of it", () => {
  const matrix = (title) => ({
    ...plain,
    kind: "matrix",
    title,
    rows: ["a"],
    columns: ["b"],
    values: [1],
    low: 0,
    high: 1,
    missing: "",
    digits: 2,
  });
  const view = {
    header: { title: "three", finding: "" },
    look,
    figures: ["naive", "symmetric", "two matrices"].map(matrix),
  };
  const drawn = (width, height) => {
    const { texts, omitted } = laid(view, { width, height }, 28);
    const says = texts.map(({ shown }) => shown).join(" ");
    const gone = omitted.flatMap(({ titles = [] }) => titles);
    for (const { title } of view.figures) assert.ok(says.includes(title), title);
    // Smaller type only where not even one figure stands in 20 pixels.
    assert.ok(texts.every(({ size }) => size >= (width < 400 ? 14 : 20)));
    return gone.length;
  };
  assert.deepEqual(
    [drawn(1218, 530), drawn(800, 530), drawn(400, 300), drawn(300, 200)],
    [0, 0, 1, 2],
  );
});

test("on a slide figures begin at one height, notes are short and no axis is squeezed", () => {
  const pen = () => new Pen(look, 28, false, [], 28);
  const bars = (/** @type {string} */ title) => ({
    ...plain,
    kind: "bars",
    title,
    columns: ["share"],
    rows: [],
    high: null,
    select: [],
  });
  const both = pen();
  row(both, [bars("short"), bars("a title that needs a second line")], {
    x: 0,
    y: 0,
    width: 600,
    height: 400,
  });
  const heights = [...both.parts.join("").matchAll(/y="([\d.]+)"[^>]*>share</g)].map(([, y]) => y);
  assert.equal(heights.length, 2);
  assert.equal(heights[0], heights[1]);
  const note = "What is seen. What it is good for, at a length that needs many lines. Press a row.";
  const short = pen();
  figure(short, { ...bars(""), note }, { x: 0, y: 0, width: 480, height: 400 });
  assert.match(short.parts.join(""), /What is seen\. …</);
  assert.doesNotMatch(short.parts.join(""), /Press/);
  const line = {
    x: Float32Array.of(0, 1),
    y: Float32Array.of(1, 2),
    main: true,
    end: "",
    shape: "",
  };
  const series = Array(9).fill({ ...line, name: "the name of a line that stands above" });
  const chart = {
    ...plain,
    kind: "chart",
    series,
    x_title: "",
    y_title: "",
    ticks: [],
    guides: [],
  };
  assert.ok(figure(pen(), chart, { x: 0, y: 0, width: 480, height: 400 }) > 400, "it does not fit");
  const facts = pen();
  figure(
    facts,
    { ...plain, kind: "facts", facts: [["5.1", "perplexity: equally likely words"]] },
    { x: 0, y: 0, width: 300, height: 400 },
  );
  assert.equal(facts.shortened, 0);
});

test("a word that is cut keeps its end, a sentence its beginning", () => {
  const pen = new Pen(look, 14, false);
  assert.equal(pen.cut("animal", 500), "animal");
  const long = "internationalisation".repeat(7); // 140 letters
  for (const room of [30, 80, 200, 500]) {
    const cut = pen.cut(long, room);
    assert.ok(pen.width(cut) <= room && cut.split("…").length === 2);
    const [first, last] = cut.split("…");
    assert.ok(long.startsWith(first) && long.endsWith(last) && first.length >= last.length);
    assert.ok(room < 80 || last.length > 2);
  }
  const compound = pen.cut("12 Donaudampfschifffahrtsgesellschaftskapitän", 160);
  assert.match(compound, /^12 Donau.*….*tän$/);
  for (const room of [90, 120, 160])
    assert.match(pen.cut("7 Rechtsschutzversicherungsvertreter = [UNK]", room), /…\S* = \[UNK\]$/);
  assert.match(pen.cut("7 Rechtsschutzversicherungsvertreter = [UNK]", 30), /…$/);
  assert.match(pen.cut("what each token brings to the chosen one", 120), /^what each [^…]*…$/);
  // Letters stand with their marks: no part begins with one.
  for (let room = 20; room < 90; room += 3)
    assert.doesNotMatch(pen.cut("काठमाडौंकाठमाडौंकाठमाडौं", room), /(^|…)\p{M}/u);
});

test("what runs from right to left turns nothing beside it, and its sentence runs with it", () => {
  const text = (/** @type {string} */ label) => {
    const pen = new Pen(look, 14, true);
    pen.text(0, 0, label);
    return pen.parts.join("").replace(/<text[^>]*>|<\/text>/g, "");
  };
  const isolate = (/** @type {string} */ run) => `<tspan unicode-bidi="isolate">${run}</tspan>`;
  assert.equal(text("26 ה 1/2"), `26 ${isolate("ה")} 1/2`);
  assert.equal(
    text("“שלום” 0.72, “עולם” 0.11"),
    `“${isolate("שלום")}” 0.72, “${isolate("עולם")}” 0.11`,
  );
  assert.equal(text("בית ספר (0.5)"), `${isolate("בית ספר")} (0.5)`);
  assert.equal(text("it 0.72"), "it 0.72");
  const places = (/** @type {string[]} */ tokens) =>
    [
      ...drawn("tokenrow", { tokens, weights: [], selected: -1 }).matchAll(/<text x="([\d.]+)"/g),
    ].map(([, x]) => Number(x));
  const [a, b, c] = places(["[CLS]", "היא", "חתול"]);
  assert.ok(a > b && b > c, "the first word stands at the right");
  const [d, e, f] = places(["The", "word", "היא"]);
  assert.ok(d < e && e < f);
});

test("votes are on a class's slide after the vote, the answer and the reason after the reveal", async () => {
  const { answered, questionSlide, stepOf } = await of("class_step");
  const question = { text: "Which?", choices: ["<a>", "b"], right: 1, says: "It is b." };
  const lesson = { key: "k", question, open: true, tally: [3, 1], here: 6, number: 1 };
  assert.equal(answered(lesson), "4 of 6 have answered");
  const closed = { ...lesson, open: false };
  assert.deepEqual([lesson, closed, { ...closed, revealed: true }].map(stepOf), [0, 1, 2]);
  const [asked, votes, answer] = [0, 1, 2].map((step) => questionSlide(closed, step));
  assert.deepEqual(
    [asked, votes, answer].map(({ rows }) => rows.map(({ n }) => n)),
    [
      [NaN, NaN],
      [3, 1],
      [3, 1],
    ],
  );
  assert.deepEqual(
    [asked, votes, answer].map(({ rows }) => rows.some(({ right }) => right)),
    [false, false, true],
  );
  assert.equal(votes.caption, "4 answers");
  assert.deepEqual([asked.asks, votes.asks, answer.asks], ["", "", "It is b."]);
  assert.equal(questionSlide({ ...lesson, key: undefined }, 0), undefined);
  assert.equal(questionSlide({ ...lesson, over: true }, 0), undefined);
});

test("guesses stand beside what the model gives them, before and after a discussion", async () => {
  const { rowsOf, voters } = await of("class_answers");
  const question = {
    free: true,
    choices: [],
    rounds: [[["French", 4]]],
    model: [
      ["Nepali", 0.9],
      ["English", 0.02],
    ],
  };
  const tally = [
    ["nepali", 5],
    ["German", 1],
  ];
  assert.equal(voters(tally), 6);
  const shown = (votes, answer) => rowsOf(question, tally, { votes, answer });
  assert.deepEqual(shown(false, false), [], "nothing leads those who have not answered");
  assert.deepEqual(
    shown(true, false).map(({ words, n, p, right }) => [words, n, p, right]),
    [
      ["nepali", 5, NaN, false],
      ["German", 1, NaN, false],
      ["French", 0, NaN, false],
    ],
  );
  assert.deepEqual(
    shown(true, true).map(({ words, before, n, p, right }) => [words, ...before, n, p, right]),
    [
      ["Nepali", 0, 5, 0.9, true],
      ["English", 0, 0, 0.02, false],
      ["German", 0, 1, NaN, false],
      ["French", 4, 0, NaN, false],
    ],
  );
});

test("a word that the teacher struck stands in no list but the speaker's and the record", async () => {
  const { rowsOf } = await of("class_answers");
  const { csv, page } = await of("class_record");
  const question = {
    free: true,
    choices: [],
    text: "Next?",
    says: "",
    rounds: [[["Rude", 1, true]]],
  };
  const tally = [
    ["soup", 5],
    ["rude", 2, true],
  ];
  const shown = (struck) => rowsOf(question, tally, { votes: true, answer: true, struck });
  assert.deepEqual(
    shown(false).map(({ words }) => words),
    ["soup"],
  );
  assert.deepEqual(
    shown(true).map(({ words, before, n, struck }) => [words, ...before, n, struck]),
    [
      ["soup", 0, 5, false],
      ["rude", 1, 2, true],
    ],
  );
  const kept = { code: "ABCDEFG", day: "2026-01-02", asked: [{ number: 3, question, tally }] };
  const [heads, soup, rude] = csv(kept).split("\r\n");
  assert.ok(heads.endsWith(",struck") && soup.endsWith(",") && rude.endsWith(",1"));
  assert.doesNotMatch(page(kept), /rude/i);
});

test("a class's record is counts, and runs nothing where it is opened", async () => {
  const { csv, page } = await of("class_record");
  const question = {
    text: "=1+1?",
    choices: ['<b onclick="x">a</b>', "b, or c"],
    right: 1,
    says: "<script>",
    to: "/?layer=1",
    rounds: [[2, 0]],
  };
  const kept = {
    code: "ABCDEFG",
    day: "2026-01-02",
    asked: [{ number: 3, question, tally: [1, 4] }],
  };
  const [heads, first, second] = csv(kept).split("\r\n");
  assert.match(
    heads,
    /question,asked,letter,answer,right,vote 1,vote 2,probability,reason,address/,
  );
  assert.ok(first.startsWith("1,'=1+1?,A,") && second.includes(',B,"b, or c",1,0,4,,<script>,'));
  assert.ok(second.endsWith("/?layer=1,"));
  const html = page(kept);
  assert.doesNotMatch(html, /<script|<b |javascript:/);
  assert.match(html, /<td>2<\/td><td>1<\/td>/);
});

const HEAD = {
  ...plain,
  at: [0, 1],
  rows: ["it", "<b>", "dog"],
  columns: ["it", "<b>", "dog"],
  sides: ["query", "key"],
  views: ["links"],
  special: [[], [false, false, true]],
  scale: "global",
  places: [null, null],
  texts: null,
  cell: null,
};
const weights = () => ({ exact: Float32Array.of(0.1, 0, 0.9, 0.3, 0.7, 0, 0.2, 0.3, 0.5) });

test("linked weights: the selected word's links alone, the sentence in its colours, text as text", () => {
  const more = { ...HEAD, selected: [0, 0], weights: weights() };
  const svg = drawn("linkedweights", more);
  assert.equal(svg.match(/<path/g).length, 2, "0 has no link");
  assert.doesNotMatch(svg, /<b>/);
  const incoming = drawn("linkedweights", { ...more, incoming: true, weights: weights() });
  assert.equal(incoming.match(/<path/g).length, 4, "and those to it");
  const all = drawn("linkedweights", { ...more, selected: [-1, -1], weights: weights() });
  assert.equal(all.match(/<path/g).length, 7);
  const matrix = drawn("linkedweights", { ...more, views: ["matrix"], weights: weights() });
  assert.match(matrix, /shape-rendering/);
});

test("no sentence on a word names what the mask hides", () => {
  const exact = Float32Array.of(1, 0, 0, 0.3, 0.7, 0, 0.2, 0.3, 0.5);
  // Each row from its beginning: what may be looked at, and what may not.
  const runs = Uint32Array.of(1, 2, 2, 1, 3);
  const one = unpack({ ...HEAD, selected: [-1, -1], weights: { exact, runs } });
  assert.deepEqual(listed(one, 0, -1), [0]);
  assert.deepEqual(listed(one, 1, -1), [1, 0]);
  assert.deepEqual(listed(one, -1, 2), [2], "which rows look at the last word");
  assert.deepEqual(listed({ ...one, cell: [0, 2] }, 0, -1), [0], "an open cell too");
});

test("a press selects a word or a cell, and a second press lets it go", () => {
  const one = unpack({ ...HEAD, selected: [-1, -1], weights: weights() });
  assert.deepEqual(hold(one, 0, 2), { row: 2, column: -1, cell: -1 });
  assert.deepEqual(shownAt(one), [2, -1]);
  assert.deepEqual(opened(one, [1, 0]), { row: 1, column: -1, cell: 0 });
  assert.deepEqual(opened(one, [1, 0]), { row: -1, column: -1, cell: -1 });
  const across = unpack({
    ...HEAD,
    selected: [-1, -1],
    texts: ["a", "b", "c"],
    weights: weights(),
  });
  assert.deepEqual(hold(across, 1, 2), { row: -1, column: 2, cell: -1 });
  assert.deepEqual(shownAt(across), [-1, 2]);
});

test("a learned sink is the last column of the matrix, whose rows sum to 1 with it, and no key", () => {
  const sink = Float32Array.of(0, 0.4, 0.75);
  const exact = weights().exact.map((each, at) => each * (1 - sink[Math.floor(at / 3)]));
  const one = unpack({
    ...HEAD,
    selected: [-1, -1],
    views: ["matrix"],
    scale: "row",
    weights: { exact, sink },
  });
  const { columns, values, tints, marks } = picture(one);
  assert.deepEqual(columns, [...HEAD.columns, "sink"]);
  const rows = [0, 1, 2].map((q) => values.subarray(4 * q, 4 * q + 4));
  for (const row of rows) assert.ok(Math.abs(row.reduce((a, b) => a + b) - 1) < 1e-6);
  assert.deepEqual(
    rows.map((row) => row[3]),
    [...sink],
  );
  const largest = [0, 1, 2].map((q) => tints.subarray(4 * q, 4 * q + 4).indexOf(1));
  assert.deepEqual(largest, [2, 1, 3], "each row's scale ends at its largest number");
  assert.ok(marks.every(([, k]) => k < 3));
  assert.equal(value(one, 2, 3), "0.7500");
  assert.deepEqual(opened(one, [1, 3]), { row: 1, column: -1, cell: -1 });
  assert.match(drawn("linkedweights", one), />sink</);
  moved(one, 0, 1, { weight: weights().exact });
  assert.equal(picture(one).columns.length, 3, "the grid has no sink of another head");
});

test("all heads: one picture each, on one scale, with the names of their patterns", () => {
  const cells = Uint8Array.of(255, 0, 0, 255, 180, 180, 180, 180);
  const more = {
    ...{ shape: [1, 2, 2, 2], fold: 1, names: ["self", "no clear pattern"], scores: [".9", ""] },
    ...{ weights: { cells, peak: Float32Array.of(1, 0.5) }, tokens: [], keys: [] },
    ...{ selected: [0, 1], scale: "global", says: {}, only: "" },
  };
  const svg = drawn("headmatrices", more);
  assert.match(svg, />self</);
  assert.equal(
    svg.match(/rgb\(0,0,0\)/g).length,
    2,
    "the scale's end, and the head that reaches 1",
  );
  const ablated = drawn("headmatrices", { ...more, ablated: [0] });
  assert.match(ablated, />taken out</);
  assert.doesNotMatch(ablated, />self</);
  const says = { all: `All <heads> heads${" attend to it".repeat(6)}` };
  const titled = drawn("headmatrices", { ...more, says });
  assert.match(titled, /attend to it</, "a long title has two lines");
  assert.doesNotMatch(titled, /…/);
  const names = Array(8).fill("pronoun to noun");
  const narrow = drawn("headmatrices", {
    ...more,
    shape: [1, 8, 2, 2],
    names,
    scores: names,
    weights: { cells: new Uint8Array(32), peak: new Float32Array(8) },
  });
  const words = [...narrow.matchAll(/>([^<]+)</g)].map(([, word]) => word);
  assert.ok(!words.includes("pronoun"), "no name is cut");
  assert.match(
    words.join(" "),
    /pronoun to noun: L0 H0, L0 H1,.*L0 H7/,
    "it stands below with its heads",
  );
});

test("of many heads those that rest on sinks are folded, but for the one on screen, and opened they are all there", () => {
  const [layers, heads] = [12, 9];
  const n = layers * heads;
  const names = Array.from({ length: n }, (_, at) => (at % 12 ? "sink" : "induction"));
  const grid = {
    ...{ shape: [layers, heads, 1, 1], fold: 1, names, scores: names, follows: "head", only: "" },
    ...{
      strengths: names.map((_, at) => at),
      selected: [0, 1],
      tokens: [],
      keys: [],
      scale: "global",
    },
    ...{ weights: { cells: new Uint8Array(n), peak: new Float32Array(n) } },
    says: { strongest: "Strongest", all: "All", more: "<sinks> of <heads> rest", fewer: "Fewer" },
  };
  const places = (figure) =>
    [...drawn("headmatrices", figure).matchAll(/>(L\d+ H\d+)</g)].map(([, place]) => place);
  const first = places(grid);
  assert.equal(first.length, 1 + n / 12);
  assert.deepEqual(first.slice(0, 3), ["L0 H1", "L10 H6", "L9 H3"], "the largest weights first");
  const onPage = (one) => {
    const pen = new Pen(look, 14, true);
    pen.cells = () => {}; // as no canvas is here
    figure(pen, { kind: "headmatrices", ...plain, ...one }, { x: 0, y: 0, width: 600 });
    return pen.parts.join("");
  };
  assert.match(onPage(grid), />99 of 108 rest </);
  assert.doesNotMatch(drawn("headmatrices", grid), /rest</, "no button in a file");
  assert.match(drawn("headmatrices", grid), />The strongest 10 of 108 heads</);
  const opened = drawn("headmatrices", { ...grid, all: true });
  assert.match(onPage({ ...grid, all: true }), />Fewer </);
  assert.equal(opened.match(/>(sink|induction)</g).length, n);
  assert.ok(drawn("headmatrices", grid).length < opened.length / 3);
});

test("a head is read in words: its pattern, and the largest weight of the word", () => {
  const grid = {
    ...{ shape: [1, 2, 2, 2], fold: 1, names: ["self", "next"], scores: ["0.90", "0.93"] },
    ...{
      weights: {
        cells: Uint8Array.of(255, 0, 0, 255, 0, 255, 255, 0),
        peak: Float32Array.of(1, 0.5),
      },
    },
    ...{ tokens: ["it", "was"], keys: ["it", "was"], follows: "head", by_word: true },
    words: ["it", "was"],
    says: { largest: "Largest weight <weight>: <row> → <column>." },
  };
  assert.equal(spoken(grid, 1), "Layer 0, head 1: next 0.93");
  globalThis.headlight = { word: { axis: 0, at: 0, rows: 2, columns: 2 } };
  assert.equal(spoken(grid, 1), "Layer 0, head 1: next 0.93. Largest weight 0.50: it → was.");
  globalThis.headlight = { word: { axis: 1, at: 0, rows: 2, columns: 2 } };
  assert.equal(spoken(grid, 1), "Layer 0, head 1: next 0.93. Largest weight 0.50: was → it.");
  globalThis.headlight = {};
});

/** A flow of so many layers on two words, one head each. */
function flowOf(n, more = {}) {
  const attention = (removed = []) => ({
    attention: "",
    shares: Float32Array.of(0.7, 0.3),
    weights: Float32Array.of(0.6, 0.4),
    others: [],
    names: [""],
    removed,
    name: "self",
    update: 0.5,
    scale: 1,
    was: new Float32Array(),
    adds: new Float32Array(),
  });
  const layers = Array.from({ length: n }, (_, layer) => ({
    layer,
    band: 0,
    attentions: [attention(layer ? [] : more.removed)],
    ffn: 0.5,
    says: null,
    answer: layer / n,
    numbers: "",
  }));
  const levels = ["", "Layer", "Head"].map((flow_level) => ({
    label: flow_level,
    select: { flow_level },
  }));
  return {
    kind: "flow",
    bands: [
      {
        title: "",
        rows: ["Ram", "fell"],
        places: ["0", "1"],
        selected: 1,
        rest: -1,
        choice: "token",
        outs: ["", ""],
      },
    ],
    layers,
    current: n,
    stops: Array.from({ length: n + 1 }, () => ({
      finding: "",
      levels,
      switch: null,
      brings: "",
      adds: "",
      says: "",
      writes: "",
      units: [],
      middle: "",
    })),
    titles: [],
    votes: [],
    lanes: [],
    leaders: [],
    matters: [],
    slow: [],
    cause: [],
    against: -1,
    n_words: 0,
    asks: ["", "", ""],
    edits: "",
    out: "",
    words: [],
    layer: 0,
    band: 0,
    attention: "",
    head: -1,
    says: "",
    between: "",
    level: 0,
    leads: [],
    ...more,
  };
}

test("left of the beam curves are drawn, and right of it none", () => {
  const curves = (current) =>
    drawn("flow", flowOf(9, { current })).split('class="flow-curve').length - 1;
  assert.deepEqual([-1, 0, 4, 9].map(curves), [0, 1, 5, 9]);
});

test("a dot is the darker, the more its head adds to the answer beside all others", () => {
  const dark = (current, adds) => {
    const one = flowOf(2, { current });
    one.layers.forEach(({ attentions }, at) => (attentions[0].adds = Float32Array.of(adds[at])));
    return Number(drawn("flow", one).match(/<circle[^>]*fill-opacity="([\d.]+)"/)[1]);
  };
  assert.equal(dark(0, [0.5, 2]), 0.53);
  assert.equal(dark(0, [2, 0.5]), 1);
  assert.equal(dark(0, [-2, 0.5]), 0.06);
});

test("a lane has its word's places until the end, and its chance there", () => {
  const lane = (more = {}) => ({
    ...{ label: "Italy", rest: "", id: 1, places: [900, 40, 3, 1], middles: [70] },
    ...{ chance: 0.5, text: "50.0%", were: -1, was_text: "", was_places: [], ...more },
  });
  const at = (current, more, own) =>
    drawn(
      "flow",
      flowOf(3, { current, lanes: [lane(own)], slow: [1], n_words: 1000, ...more }),
      1280,
    );
  assert.match(at(0), />900th → 40th</);
  assert.match(at(1), />40th → 3rd</);
  assert.match(at(1, { ms: 0 }), />40th</);
  assert.match(at(1, { ms: 1500 }), />40th → 70th</);
  assert.doesNotMatch(at(1), /50\.0%/);
  assert.match(at(3), />50\.0%</);
  assert.match(at(3, {}, { were: 0.8, was_text: "80.0%" }), />80\.0% → 50\.0%</);
  for (const tells of [/Italy/, /50\.0%/, /th</]) assert.doesNotMatch(at(-1), tells);
});

test("lanes stand by place until the end, with the word that leads there", () => {
  const lane = (label, chance, places) => ({
    ...{ label, rest: "", id: 1, places, middles: [], chance, text: `${chance}` },
    ...{ were: -1, was_text: "", was_places: [] },
  });
  const figure = flowOf(2, {
    lanes: [lane("Rome", 0.8, [90, 60, 1]), lane("Venice", 0.1, [30, 20, 2])],
    leaders: [lane("the", 0.01, [2, 1, 9]), lane("my", 0, [1, 700, 800])],
    n_words: 1000,
  });
  figure.layers[0].says = ["the", 0.5, "50%"];
  const order = (current) => onShow({ ...figure, current }).map(({ label }) => label);
  assert.deepEqual(order(0), ["the", "Venice", "Rome"]);
  assert.deepEqual(order(1), ["Rome", "Venice"]);
  assert.deepEqual(order(2), ["Rome", "Venice"]);
});

test("in the layer of the cause all curves are drawn, that of its word as wide as what it alone brings", () => {
  const widths = (cause) => {
    const figure = flowOf(2, { current: 0, cause });
    figure.bands[0].rows = ["was", "cold", "it"];
    Object.assign(figure.bands[0], { places: ["0", "1", "2"], selected: 2, outs: ["", "", ""] });
    for (const layer of figure.layers)
      Object.assign(layer.attentions[0], {
        shares: Float32Array.of(0.6, -0.15, 0.1, 0, 0.3, 0),
        weights: Float32Array.of(0.9, 0, 0.1, 0.1, 0.8, 0.1),
        names: ["", ""],
      });
    const all = drawn("flow", figure, 1280).matchAll(
      /class="flow-curve" stroke-width="([\d.]+)"[^>]*data-at="(\d)"/g,
    );
    return Object.fromEntries([...all].map(([, wide, row]) => [row, Number(wide)]));
  };
  const [all, told] = [widths([]), widths([0, 0, 1, 1])];
  assert.equal(told[0], all[0]);
  assert.ok(Math.abs(told[1] - 2 * all[1]) < 0.2, `${told[1]} and ${all[1]}`);
});

test("a curve is as wide as its share, and shrinks with its update", () => {
  const wide = (scale) => {
    const figure = flowOf(3, { current: 1 });
    for (const layer of figure.layers) layer.attentions[0].scale = scale;
    const all = drawn("flow", figure, 1280).matchAll(
      /class="flow-curve"[^>]*?stroke-width="([\d.]+)"/g,
    );
    return Math.max(...[...all].map((each) => Number(each[1])));
  };
  assert.ok(Math.abs(wide(0.5) / wide(1) - 0.5) < 0.05);
});

test("edits of an address gain what is pressed, and lose it by another press", () => {
  const one = toggled({ edits: "" }, "HideWord:3:");
  const two = toggled({ edits: one }, "ZeroHead:1:2:self");
  assert.deepEqual([one, two], ["HideWord:3:", "HideWord:3:,ZeroHead:1:2:self"]);
  assert.equal(toggled({ edits: two }, "HideWord:3:"), "ZeroHead:1:2:self");
});

test("a layer that is opened shows its heads, a head its own row, and one that is off its ghosts", () => {
  const curves = (svg, name) => svg.split(`class="flow-${name}"`).length - 1;
  assert.equal(curves(drawn("flow", flowOf(3)), "curve"), 3);
  const off = drawn("flow", flowOf(3, { removed: [0], level: 1 }));
  assert.equal(curves(off, "ghost"), 1);
  assert.match(off, /class="flow-ghost"[^>]*stroke-dasharray/);
  for (const [level, words] of [
    [0, 2],
    [1, 2],
    [2, 1],
  ]) {
    const svg = drawn("flow", flowOf(3, { level }));
    assert.equal(svg.match(/>(Ram|fell)</g).length, words, `level ${level}`);
  }
});

test("a vector that is cut into blocks has as many frames, and each its own scale", () => {
  const strip = { label: "z", values: Float32Array.of(1, 0, 0, 1), text: "", sign: "" };
  const frames = (more) =>
    drawn("strips", { strips: [{ ...strip, ...more }], high: 1 }).split('fill="none"').length - 1;
  assert.equal(frames({ blocks: 4 }) - frames({ blocks: 1 }), 3);
  const cells = (high) => drawn("strips", { strips: [{ ...strip, high }], high: 8 });
  assert.notEqual(cells(1), cells(null));
});

test("a column grows into the layer that is opened, and another shrinks", () => {
  const [one, other] = [0, 1].map((level) => flowOf(4, { level }));
  const wide = (svg) => Number(svg.match(/<rect [^>]*? width="([\d.]+)"/)[1]);
  const [from, half, to] = [one, between(one, other, 0.5), other].map((each) =>
    wide(drawn("flow", each, 1000)),
  );
  assert.ok(from < half && half < to, `${[from, half, to]}`);
});

/** A sentence with votes of these words, as places, on a pronoun. */
const voted = (labels, pronoun, words, more = {}) => ({
  kind: "sentencevotes",
  ...plain,
  labels,
  spaced: labels.map((label) => label !== "."),
  keys: labels.map((label, at) => (label === "." ? "" : `token=${at}`)),
  pronoun,
  votes: words.map((word, at) => ({
    word,
    noun: [...new Set(words)].indexOf(word),
    head: `L${at} H0`,
    side: 0,
    share: 0.5,
    says: `L${at} H0 says ${labels[word]}`,
    key: `layer=${at}`,
    ...more.votes?.[at],
  })),
  bar: "",
  sides: [],
  ...more.figure,
});
const numbersOf = (d) => d.match(/-?[\d.]+/g).map(Number);
/** The lines of votes in SVG: where they begin and end, in pixels, and points along them. */
const linesOf = (svg) =>
  [...svg.matchAll(/<path d="(M[^"]*[VCQ][^"]*)" fill="none" stroke="(#\w+)"/g)].map(
    ([, d, stroke]) => {
      const points = [];
      let at = [0, 0];
      for (const [, step, rest] of d.matchAll(/([MLVCQ])([^MLVCQ]*)/g)) {
        const n = numbersOf(rest);
        const corners =
          step === "V" ? [[at[0], n[0]]] : n.flatMap((x, i) => (i % 2 ? [] : [[x, n[i + 1]]]));
        const bend = [at, ...(step === "M" ? corners.slice(-1) : corners)];
        const steps = step === "C" || step === "Q" ? 24 : 1;
        for (let i = 1; i <= steps; i++)
          points.push(along(step === "M" ? corners : bend, i / steps));
        at = corners[corners.length - 1];
      }
      return { stroke, points };
    },
  );
/** A point of a Bézier curve. */
function along(corners, t) {
  if (corners.length === 1) return corners[0];
  const next = corners
    .slice(1)
    .map((to, i) => to.map((value, k) => corners[i][k] * (1 - t) + value * t));
  return along(next, t);
}
const side = ([a, b], [c, d], [e, f]) => Math.sign((c - a) * (f - b) - (d - b) * (e - a));
/** Whether two lines cross. */
const cross = (one, other) =>
  one.slice(1).some((to, i) =>
    other.slice(1).some((there, k) => {
      const [a, b, c, d] = [one[i], to, other[k], there];
      return side(a, b, c) * side(a, b, d) < 0 && side(c, d, a) * side(c, d, b) < 0;
    }),
  );
const SENTENCE =
  "The waiter brought the soup to the man at the table , but after a while in the kitchen it was cold .".split(
    " ",
  );

test("a line of a vote leads from the pronoun to its word, and crosses no other, in any room", () => {
  const it = SENTENCE.indexOf("it");
  for (const words of [
    [4, 4, 1],
    [1, 4, 10],
    [1, 1, 1],
    [4, 21, 1],
    [21, 21, 4],
  ])
    for (const pronoun of [it, SENTENCE.indexOf("to")])
      for (const width of [240, 360, 600, 900, 1400]) {
        const pen = new Pen(look, 14, false);
        figure(pen, voted(SENTENCE, pronoun, words), { x: 0, y: 0, width });
        const box = (at) => pen.texts.findLast(({ text }) => text === SENTENCE[at]).box;
        const lines = linesOf(pen.parts.join("")).slice(-words.length);
        const from = box(pronoun);
        const left = words.map((at) => box(at));
        for (const { points } of lines) {
          const [start, end] = [points[0], points.at(-1)];
          const said = left.some(
            ([a, b, c, d]) =>
              end[0] > a - 30 && end[0] < c + 30 && end[1] > b - 30 && end[1] < d + 30,
          );
          assert.ok(said, `ends at a word in ${width}`);
          assert.ok(
            start[0] > from[0] - 10 &&
              start[0] < from[2] + 10 &&
              Math.abs(start[1] - (from[1] + from[3]) / 2) < 40,
          );
          assert.ok(points.every(([x]) => x > -20 && x < width + 20));
        }
        lines.forEach((one, i) =>
          lines
            .slice(i + 1)
            .forEach((other) =>
              assert.ok(!cross(one.points, other.points), `${words} ${pronoun} ${width}`),
            ),
        );
      }
});

test("a third word of a vote has a sign of its own, and every head and word is named", () => {
  const svg = drawn("sentencevotes", voted(SENTENCE, 19, [4, 1, 7]), 900);
  const filled = [...svg.matchAll(/<path d="[^"]*z" fill="(#\w+)"/g)].map(([, fill]) => fill);
  assert.deepEqual(new Set(filled), new Set(["#008800"]));
  assert.equal(filled.length, 2, "at its line and at its head");
  for (const each of ["L0 H0", "L1 H0", "L2 H0"]) assert.ok(svg.includes(each));
  assert.ok(!drawn("sentencevotes", voted(SENTENCE, 19, [4, 1, 4]), 900).includes('z" fill="#'));
});

test("each vote is a button of a list with its sentence, its line is the same button once more", () => {
  const pen = new Pen(look, 14, true);
  pen.select = ["address"];
  figure(
    pen,
    { ...voted(SENTENCE, 19, [4, 4, 1]), select: ["address"] },
    { x: 0, y: 0, width: 900 },
  );
  const svg = pen.parts.join("");
  assert.match(svg, /^<g role="list"><g role="listitem"><g class="target button" role="button"/);
  const labels = [...svg.matchAll(/aria-label="\w+ L\d H0: (L\d H0 says \w+)"/g)].map(
    ([, label]) => label,
  );
  assert.deepEqual(labels, ["L0 H0 says soup", "L1 H0 says soup", "L2 H0 says waiter"]);
  assert.equal(svg.match(/class="target" aria-hidden="true"/g).length, 3);
  assert.ok(!svg.includes('aria-label="."'), "a sign is no word to ask about");
  assert.equal(svg.match(/aria-pressed="true"/g).length, 1, "the pronoun");
});

test("votes of two models stand above and below one line, and have a sentence each in a narrow place", () => {
  const of = (width) => {
    const pen = new Pen(look, 14, false);
    const votes = [0, 0, 1, 1].map((side) => ({ side }));
    const sides = [
      ["A", "reads all"],
      ["B", "reads on"],
    ];
    figure(
      pen,
      voted(SENTENCE.slice(0, 6).concat("it", "."), 6, [1, 1, 4, 4], { votes, figure: { sides } }),
      { x: 0, y: 0, width },
    );
    return [pen.texts.filter(({ text }) => text === "it"), linesOf(pen.parts.join(""))];
  };
  const [[{ box }], lines] = of(1200);
  const middle = (box[1] + box[3]) / 2;
  assert.deepEqual(
    lines.map(({ points }) => points[10][1] < middle),
    [true, true, false, false],
  );
  assert.equal(of(300)[0].length, 2);
});

test("a sentence that runs to the left has its first word at the right, a hostile word is text", () => {
  const pen = new Pen(look, 14, false);
  const labels = ["הכלב", "ראה", "חתול", "<b>", "הוא", "."];
  figure(pen, voted(labels, 4, [0, 2, 2]), { x: 0, y: 0, width: 900 });
  const left = (word) => pen.texts.findLast(({ text }) => text === word).box[0];
  assert.ok(left("הכלב") > left("ראה") && left("ראה") > left("הוא") && left("הוא") > left("."));
  assert.ok(pen.parts.join("").includes("&lt;b&gt;") && !pen.parts.join("").includes("<b>"));
});

test("a sentence with votes that is cut keeps the pronoun and what is said", () => {
  const whole = voted(SENTENCE, 19, [4, 1, 4]);
  const short = cut(whole, 4);
  assert.equal(short.labels[short.pronoun], "it");
  assert.deepEqual(
    short.votes.map(({ word }) => short.labels[word]),
    ["soup", "waiter", "soup"],
  );
  assert.ok(short.labels.includes("…") && short.labels.length < SENTENCE.length);
  const view = {
    header: { title: "it is soup", finding: "", special: [] },
    figures: [whole],
    look,
  };
  for (const room of [
    { width: 1200, height: 560 },
    { width: 360, height: 600 },
  ]) {
    const { texts, height } = laid(view, room, room.width < 640 ? 14 : 28);
    assert.ok(texts.some(({ text }) => text === "soup") && height <= room.height);
    for (const { box } of texts) assert.ok(box[3] <= room.height + 1 && box[2] <= room.width + 1);
  }
});

/** What is drawn of a figure on a slide in its smallest type, its frames, and its texts. */
function onSlide(one, { width, height }) {
  const pen = new Pen(look, 28, true, [], 28);
  figure(pen, { ...plain, ...one }, { x: 0, y: 0, width, height });
  const number = (text, name) => Number(text.match(new RegExp(` ${name}="([^"]+)"`))[1]);
  const frames = [...pen.parts.join("").matchAll(/<rect [^>]*class="framed"[^>]*>/g)].map(
    ([text]) => ["x", "y", "width", "height", "stroke-width"].map((name) => number(text, name)),
  );
  return { texts: pen.texts, frames };
}

test("a frame touches no digit of the number that it is around", () => {
  const rows = ["it", "he", "she"].map((label, at) => ({
    label,
    values: [0.49 - 0.1 * at],
    texts: [`0.4${at}`],
    outline: null,
    selected: at === 0,
  }));
  const bars = { kind: "bars", columns: [""], rows, high: 1, framed: [[0, 0]] };
  const relay = {
    kind: "relay",
    words: ["The", "waiter", "brought", "the", "soup", "but", "it", "was", "cold"],
    values: [0.02, 0.03, 0.06, 0.1, 0.2, 0.3, 0.4, 0.6, 1],
    text: "0.0213",
    arc: "1 step",
    state: "one state",
    framed: [[0, 0, "0.0213"]],
  };
  for (const [one, digits, height] of [
    [bars, "0.40", 90],
    [relay, "0.0213", 300],
  ]) {
    const { texts, frames } = onSlide(one, { width: 600, height });
    const { box } = texts.find(({ text }) => text === digits);
    const [left, right] = [box[0], box[2]];
    const middle = box[1] + (0.4 / 0.9) * (box[3] - box[1]);
    const half = 0.36 * 28; // of a digit's height
    assert.ok(frames.length, one.kind);
    for (const [x, y, wide, high, stroke] of frames) {
      assert.ok(
        x + stroke / 2 <= left && x + wide - stroke / 2 >= right,
        `${one.kind}: ${x}, ${left}`,
      );
      assert.ok(y + stroke / 2 <= middle - half, `${one.kind}: top`);
      assert.ok(y + high - stroke / 2 >= middle + half, `${one.kind}: foot`);
    }
  }
});
