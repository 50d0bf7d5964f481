// What a slide's cut of every figure shows beside the whole of it: `node cells.js MODULES PANEL ...` writes for each figure
// that loses rows or columns, a line of JSON, how many marks it draws and those whose colour or text is another.
import { readFileSync } from "node:fs";

const [, , modules, ...panels] = process.argv;
const of = (name) => import(`${modules}/${name}.js`);
const { Pen } = await of("draw");
const { figure } = await of("figures");
const { decode } = await of("codec");
const { picture } = await of("linked_weights");
const { resolved } = await of("panel_layout");
const { cut } = await of("slide_layout");
const { lookOf } = await of("theme");

const look = lookOf({
  ink: "#111111",
  paper: "#ffffff",
  primary: "#aa5500",
  border: "#dddddd",
  font: "sans-serif",
  sequential: ["#ffffff", "#000000"],
  diverging: ["#0000ff", "#ffffff", "#ff0000"],
  categorical: ["#aa5500", "#0000ff", "#008800"],
});
const ROWS = [3, 5, 8]; // rows that a slide has room for

/** A pen that remembers what it draws. */
class Recorder extends Pen {
  drawn = { cells: [], texts: [], rects: [], circles: [], paths: [] };
  cells(box, rows, columns, word) {
    const all = Array.from({ length: rows * columns }, (_, at) => word(at));
    this.drawn.cells.push({ rows, columns, all });
  }
  text(x, y, text, style = {}) {
    this.drawn.texts.push([text, style.fill, style.alpha, style.bold].join(" "));
    super.text(x, y, text, style);
  }
  rect(x, y, width, height, style) {
    this.drawn.rects.push(style);
  }
  circle(x, y, r, style) {
    this.drawn.circles.push(style.fill);
  }
  path(d, stroke, style = {}) {
    this.drawn.paths.push([stroke, style["stroke-width"], style["stroke-opacity"]].join(" "));
  }
}

const places = (list) => list.map((_, at) => `${at}`);

/** A figure whose rows and columns say where they stood in the whole of it. */
const numbered = (one) => ({
  ...one,
  ...{
    matrix: () => ({ keys: places(one.rows), column_keys: places(one.columns) }),
    links: () => ({ keys: places(one.left), keys_right: places(one.right) }),
    tokenrow: () => ({ keys: places(one.tokens) }),
    graph: () => (one.layout === "tree" ? {} : { texts: places(one.nodes) }),
  }[one.kind]?.(),
});

/** Every mark of a figure by its place in the whole: name -> how it is drawn. */
function marks(one, whole) {
  const pen = new Recorder(look, 14, false);
  figure(pen, { ...one, note: "", omitted: [] }, { x: 0, y: 0, width: 1e5 });
  const { cells, texts, rects, circles, paths } = pen.drawn;
  const found = {};
  if (one.kind === "matrix") {
    const [m, n] = [one.rows.length, one.columns.length];
    const area = cells.filter(({ rows, columns }) => rows === m && columns === n).at(-1);
    const words = (one.words || []).filter(Boolean).length;
    const written = words ? texts.slice(-words) : [];
    for (let at = 0; at < m * n; at++) {
      const place = `${one.keys[Math.floor(at / n)]}, ${one.column_keys[at % n]}`;
      const word = one.words?.[at] ? written.shift() : "";
      found[place] = `${area?.all[at]} ${word}`;
    }
  }
  if (one.kind === "tokenrow") {
    const rows = rects.filter(({ class: name }) => name?.startsWith("row"));
    one.keys.forEach((key, at) => (found[key || "gap"] = key && JSON.stringify(rows[at])));
  }
  if (one.kind === "strips")
    one.strips.forEach((strip, at) => (found[whole.strips.indexOf(strip)] = cells[at].all));
  if (one.kind === "graph" && one.layout !== "tree") {
    one.texts.forEach((key, at) => (found[key] = circles[at]));
    const order = [...one.edges].sort(
      (p, q) => +(p.target === one.selected) - +(q.target === one.selected),
    );
    if (paths.length === order.length)
      order.forEach(
        (edge, at) => (found[`${one.texts[edge.source]} > ${one.texts[edge.target]}`] = paths[at]),
      );
  }
  if (one.kind === "links" && !one.flat) {
    const order = [...one.left.keys()].sort(
      (p, q) => +(p === one.selected) - +(q === one.selected),
    );
    for (const q of order)
      for (const k of one.right.keys())
        if (one.weights[q * one.right.length + k] >= (one.faintest ?? 0.02))
          found[`${one.keys[q]} > ${one.keys_right[k]}`] = paths.shift();
  }
  return found;
}

const leaves = (one) =>
  one.kind === "stack"
    ? one.figures.flatMap(leaves)
    : one.kind === "steps"
      ? [one.whole && { ...one.whole, selected: one.current }, ...one.frames[one.current].figures]
          .filter(Boolean)
          .flatMap(leaves)
      : [one.kind === "linkedweights" ? picture(one) : one];

for (const file of panels) {
  const { header, blocks } = decode(readFileSync(file));
  const says = [header.title, header.finding].filter(Boolean).join(" ");
  for (const whole of resolved(header.figures, blocks).flatMap(leaves).map(numbered)) {
    const page = marks(whole, whole);
    for (const rows of ROWS) {
      const made = cut(whole, rows, says);
      if (!made.omitted?.length) continue;
      const slide = marks(made, whole);
      const wrong = Object.entries(slide).filter(
        ([place, how]) => place !== "gap" && `${how}` !== `${page[place]}`,
      );
      const count = Object.keys(slide).length;
      const told = wrong.slice(0, 3).map(([at, how]) => `${at}: ${how} for ${page[at]}`);
      console.log(JSON.stringify({ file, kind: made.kind, rows, count, wrong: told }));
    }
  }
}
