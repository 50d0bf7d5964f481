// One weight taken apart. Four pictures share this file: the head's matrix, the story of a cell, a vector as a strip, the split into heads.

const KEPT = new WeakMap();
const KINDS = { matrix, story, strip, shapes };
const MOST_NAMED = 60; // tokens named along a picture

export default function ({ data, parentElement, setTriggerValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = { at: {} }));
  kept.send = setTriggerValue;
  if (kept.data !== data) {
    kept.data = data;
    Object.assign(kept, decode(data));
  }
  dress(parentElement);
  const root = parentElement.querySelector(".anatomy");
  kept.root = root;
  kept.style = getComputedStyle(root);
  kept.words = { one: colours(root), two: twoSided(kept.style) };
  kept.stop?.();
  kept.fits = [];
  kept.groups = {};
  const focus = root.getRootNode().activeElement?.dataset.focus;
  root.className = `anatomy ${kept.header.kind}`;
  const done = KINDS[kept.header.kind](kept, root);
  const fit = () => kept.fits.forEach((each) => each());
  const observer = new ResizeObserver(fit);
  observer.observe(root);
  fit();
  if (focus) root.querySelector(`[data-focus="${focus}"]`)?.focus({ preventScroll: true });
  root.dataset.token = kept.header.token;
  const stop = (kept.stop = () => {
    observer.disconnect();
    done?.();
  });
  return stop;
}

// ---- numbers and names --------------------------------------------------------------------------------------------

const UP = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

// A number in four figures, very large and very small ones as a power of ten.
function num(value, figures = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value < 0 ? "−∞" : "∞";
  const size = Math.abs(value);
  let text;
  if (size === 0) text = "0";
  else if (size >= 0.001 && size < 100000) text = `${Number(size.toPrecision(figures))}`;
  else {
    const [digits, exponent] = size.toExponential(figures - 1).split("e");
    text = `${Number(digits)} × 10${[...`${Number(exponent)}`].map((c) => UP[c]).join("")}`;
  }
  return value < 0 ? `−${text}` : text;
}

// A number in so many decimals; what rounds to 0 has no sign.
const rounded = (value, digits) => value.toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−");

// A weight; almost all of a row is not said to be all of it.
const ofRow = (weight, figures) => (num(weight, figures) === "1" && weight < 1 && figures < 6 ? ofRow(weight, figures + 1) : num(weight, figures));

const inBrackets = (value, figures = 4) => (value < 0 ? `(${num(value, figures)})` : num(value, figures));
const FULL = 6; // figures in formulas: enough for a reader who computes them anew

function word(label) {
  const element = make("b", "", label);
  element.dir = "auto";
  return element;
}

// Blue below 0, the page's own colour at 0, orange above: the theme's two first categorical colours.
function twoSided(style) {
  const hex = (colour) => colour.trim().match(/[0-9a-f]{2}/gi).map((pair) => parseInt(pair, 16));
  const [above, below] = style.getPropertyValue("--st-chart-categorical-colors").split(",").map(hex);
  const middle = hex(style.getPropertyValue("--st-background-color"));
  const words = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    const far = Math.abs(i - 127.5) / 127.5;
    const [r, g, b] = middle.map((c, k) => Math.round(c + ((i > 127.5 ? above : below)[k] - c) * far));
    words[i] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  return words;
}

const largestOf = (values) => values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);

// The colour of a value in a row: two-sided around 0, or from 0 up.
function colourOf(kept, row, value) {
  const share = row.top > 0 ? value / row.top : 0;
  const at = row.sides === "one" ? 255 * share : 127.5 + 127.5 * share;
  return kept.words[row.sides][Math.round(Math.max(0, Math.min(255, at)))];
}

// ---- strips -------------------------------------------------------------------------------------------------------

// Vectors one above the other, aligned number by number; what is pointed at in one strip of a group is told by all of the group.
// rows: { name: nodes, values, sides, top, free?, strong?, image?: [height, width, bytes] }. say(at) -> what the line under it tells.
function strips(kept, { group, id, n, rows, about, say, rest, labels, mark = -1, pick, cuts = 0, cut = -1 }) {
  const box = make("div", "strips");
  const names = make("div", "names");
  const field = make("div", "field");
  const canvas = make("canvas");
  const [marked, over] = [make("i", "mark"), make("i", "over")];
  const line = make("p", "told");
  for (const row of rows) {
    const name = make("span", row.strong ? "strong" : "");
    name.append(...row.name);
    if (row.image) name.className = "tall";
    names.append(name);
  }
  field.append(canvas, marked, over);
  field.tabIndex = 0;
  field.dataset.focus = id;
  field.setAttribute("role", "slider");
  field.setAttribute("aria-label", `${about}. Arrow keys move${pick ? ", Enter chooses" : ""}.`);
  field.setAttribute("aria-valuemin", 0);
  field.setAttribute("aria-valuemax", n - 1);
  box.append(names, field, line);
  let unit = 16;
  const heights = () => rows.map((row) => (row.image ? 6 : 1.875) * unit);
  const put = (box, at) => {
    box.hidden = at < 0;
    const tall = heights().reduce((a, b) => a + b, 0);
    Object.assign(box.style, { left: `${(100 * at) / n}%`, width: `${100 / n}%`, height: `${tall}px` });
  };
  const show = (at) => {
    put(over, at);
    field.setAttribute("aria-valuenow", Math.max(0, at));
    const told = at >= 0 ? say(at) : rest;
    line.replaceChildren(...told);
    field.setAttribute("aria-valuetext", at >= 0 ? line.textContent : "nothing pointed at");
  };
  const group_ = (kept.groups[group] ||= []);
  group_.push(show);
  const tell = (at) => {
    kept.at[group] = at;
    group_.forEach((each) => each(at));
  };
  const from = (event) => {
    const frame = canvas.getBoundingClientRect();
    return Math.max(0, Math.min(n - 1, Math.floor(((event.clientX - frame.left) / frame.width) * n)));
  };
  field.onmousemove = (event) => tell(from(event));
  field.onmouseleave = () => tell(-1);
  field.onclick = (event) => (pick ? pick(from(event)) : tell(from(event)));
  field.onfocus = () => field.matches(":focus-visible") && tell(Math.min(n - 1, Math.max(0, kept.at[group] ?? -1, mark)));
  field.onblur = () => tell(-1);
  field.onkeydown = (event) => {
    if (!plainKey(event)) return;
    const at = kept.at[group] ?? -1;
    const next = { ArrowRight: at + 1, ArrowUp: at + 1, ArrowLeft: at - 1, ArrowDown: at - 1, Home: 0, End: n - 1, PageUp: at + 10, PageDown: at - 10 }[event.key];
    if (next !== undefined) {
      event.preventDefault();
      tell(Math.max(0, Math.min(n - 1, next)));
    } else if (event.key === "Enter" && pick && at >= 0) pick(at);
    else if (event.key === "Escape") tell(-1);
  };
  kept.fits.push(() => {
    unit = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const width = field.clientWidth;
    if (!width) return;
    const size = width / n;
    const foot = labels ? labelHeight(labels, size, unit, n) : 0;
    const all = heights();
    const height = all.reduce((a, b) => a + b, 0) + foot;
    const ratio = window.devicePixelRatio || 1;
    canvas.style.height = `${height}px`;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    let top = 0;
    rows.forEach((row, r) => {
      paint(kept, context, row, n, width, top, all[r], unit);
      top += all[r];
    });
    if (cuts) cutUp(kept, context, width, top, cuts, cut);
    if (labels) nameUnder(kept, context, labels, size, top, unit, mark, foot);
    put(marked, mark);
    show(kept.at[group] === undefined || !field.matches(":focus") ? -1 : kept.at[group]);
  });
  return box;
}

function paint(kept, context, row, n, width, top, height, unit) {
  const size = width / n;
  const gap = Math.max(1, unit / 10);
  if (row.image) {
    const [rows, columns, bytes] = row.image;
    const tile = new OffscreenCanvas(columns, rows);
    const image = new ImageData(columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    bytes.forEach((byte, at) => (pixels[at] = kept.words.two[byte]));
    tile.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingEnabled = false;
    context.drawImage(tile, 0, top, width, height - gap);
    return;
  }
  const printed = size >= 2.2 * unit;
  context.font = `${Math.min(0.9375 * unit, size / 3.2)}px ${kept.style.fontFamily}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const print = printed && printer(context, row.values, size - 5);
  for (let at = 0; at < n; at++) {
    const [x, y, w, h] = [at * size, top, size - (size > 6 ? 1 : 0), height - gap];
    if (row.free && !row.free[at]) {
      hatch(kept, context, x, y, w, h);
      if (printed) inked(context, kept.style.color, row.barred || "", x + size / 2, y + h / 2);
      continue;
    }
    const colour = colourOf(kept, row, row.values[at]);
    context.fillStyle = css(colour);
    context.fillRect(x, y, w, h);
    if (printed) inked(context, inkOn(colour), print(row.values[at]), x + size / 2, y + h / 2);
  }
  context.strokeStyle = kept.style.getPropertyValue("--st-border-color");
  context.lineWidth = 1;
  context.strokeRect(0.5, top + 0.5, width - 1, height - gap - 1);
}

// The numbers of a row with two decimals, or fewer where one of them would not fit its cell.
function printer(context, values, room) {
  const say = (digits) => (value) => rounded(value, digits);
  const digits = [2, 1].find((each) => Array.from(values, say(each)).every((text) => context.measureText(text).width <= room));
  return say(digits ?? 0);
}

function inked(context, ink, text, x, y) {
  context.fillStyle = ink;
  context.fillText(text, x, y);
}

function hatch(kept, context, x, y, w, h) {
  context.save();
  context.beginPath();
  context.rect(x, y, w, h);
  context.clip();
  context.globalAlpha = 0.3;
  context.strokeStyle = kept.style.color;
  context.beginPath();
  for (let at = Math.floor((x - h) / 6) * 6; at < x + w; at += 6) {
    context.moveTo(at, y + h);
    context.lineTo(at + h, y);
  }
  context.stroke();
  context.restore();
}

// The borders between heads, and a veil over all pieces but one.
function cutUp(kept, context, width, height, cuts, cut) {
  context.fillStyle = kept.style.getPropertyValue("--st-background-color");
  context.globalAlpha = 0.62;
  for (let piece = 0; piece < cuts; piece++) if (piece !== cut) context.fillRect((piece * width) / cuts, 0, width / cuts, height);
  context.globalAlpha = 1;
  context.strokeStyle = kept.style.color;
  context.lineWidth = 1;
  for (let piece = 1; piece < cuts; piece++) {
    context.beginPath();
    context.moveTo((piece * width) / cuts, 0);
    context.lineTo((piece * width) / cuts, height);
    context.stroke();
  }
  if (cut < 0) return;
  context.strokeStyle = kept.style.getPropertyValue("--st-primary-color");
  context.lineWidth = 3;
  context.strokeRect((cut * width) / cuts + 1.5, 1.5, width / cuts - 3, height - 4);
}

const labelHeight = (labels, size, unit, n) => (n > MOST_NAMED || size < 0.7 * unit ? 1.25 : size > 4.5 * unit ? 1.25 : 4.25) * unit;
const shortened = (text, most) => ([...text].length > most ? [...text].slice(0, most - 1).join("") + "…" : text);

function nameUnder(kept, context, labels, size, top, unit, mark, foot) {
  const flat = foot < 2 * unit;
  const every = flat && size <= 4.5 * unit;
  context.fillStyle = kept.style.color;
  context.textBaseline = "middle";
  labels.forEach((label, at) => {
    if (every && at !== mark) return;
    context.font = `${at === mark ? "700 " : ""}${0.75 * unit}px ${kept.style.fontFamily}`;
    const x = (at + 0.5) * size;
    if (flat) {
      const half = Math.min(context.measureText(shortened(label, 14)).width / 2, size * labels.length / 2);
      context.textAlign = "center";
      context.fillText(shortened(label, every ? 14 : Math.floor(size / (0.45 * unit))), Math.max(half, Math.min(size * labels.length - half, x)), top + foot / 2);
      return;
    }
    context.save();
    context.translate(x, top + 0.25 * unit);
    context.rotate(-Math.PI / 2);
    context.textAlign = "right";
    context.fillText(shortened(label, 9), 0, 0);
    context.restore();
  });
}

// ---- the story ----------------------------------------------------------------------------------------------------

function story(kept, root) {
  const { header } = kept;
  kept.steps = [];
  const steps = [meet, scaled, masked, softmax, valued, summed, ...(header.wrote ? [through, among] : [])];
  const parts = steps.map((each, at) => each(kept, at + 1));
  if (!header.wrote) parts.push(make("p", "missing", header.missing));
  const rounded = quiet("Figures are rounded on screen. The tables and the CSV file below have them in full.");
  root.replaceChildren(...parts, rounded, exports(kept));
  bus.tell({ anatomy: { matrix: header.matrix, cell: [header.query.at, header.key.at] } });
}

// A step: its number and name, a sentence, its formula with the result, and its picture.
function step(kept, at, title, words, formula, result, ...pictures) {
  const box = make("section", "step");
  const text = make("div", "text");
  const heading = make("h4", "", title);
  heading.prepend(make("span", "number", `${at}`));
  const sentence = make("p", "words");
  sentence.append(...words);
  text.append(heading, sentence);
  for (const each of formula) text.append(make("p", "formula", each));
  if (result) text.append(make("p", "result", result));
  const picture = make("div", "picture");
  picture.append(...pictures.map((each) => each.box || each));
  box.append(text, picture);
  kept.steps.push({ title: `${at}. ${title}`, lines: [...formula, result].filter(Boolean), strips: pictures.flatMap((each) => each.plan || []) });
  return box;
}

const quiet = (text) => make("p", "quiet", text);
const drawn = (kept, plan) => ({ box: strips(kept, plan), plan });
const ownFigure = ([value, apart]) => quiet(`The model’s own number: ${num(value, 7)}; over the row the two are at most ${num(apart, 2)} apart.`);

function meet(kept, at) {
  const { header, blocks } = kept;
  const { q, k, products } = blocks;
  const one = (d) => `${inBrackets(q[d], 3)} × ${inBrackets(k[d], 3)}`;
  const plan = {
    group: "dims", id: "dims", n: q.length, about: "Query, key and their products by dimension",
    rows: [
      { name: ["q of ", word(header.query.label)], values: q, sides: "two", top: largestOf(q) },
      { name: ["k of ", word(header.key.label)], values: k, sides: "two", top: largestOf(k) },
      { name: ["q × k"], values: products, sides: "two", top: largestOf(products), strong: true },
    ],
    say: (d) => [`dimension ${d}:  q ${num(q[d])}  ×  k ${num(k[d])}  =  ${num(products[d])}`],
    rest: [`Largest: ${header.best.map((d) => `dimension ${d}, ${one(d)} = ${num(products[d], 3)}`).join(";  ")}`],
  };
  const some = header.best.map(one).join(" + ");
  return step(
    kept, at, "The query meets the key",
    ["What ", word(header.query.label), " looks for, q, and what ", word(header.key.label), ` offers, k: multiplied number by number, and added up.`],
    [`q · k = ${some}${q.length > header.best.length ? " + …" : ""}`], `q · k = ${num(header.dot, FULL)}`, drawn(kept, plan),
  );
}

// Strips over the keys: all of them choose a cell.
function overKeys(kept, id, rows, say, rest) {
  const { header } = kept;
  const n = header.labels.length;
  return drawn(kept, {
    group: "keys", id, n, rows, rest, labels: header.labels, mark: header.key.at, about: `The row of ${header.query.label}, key by key`,
    say: (k) => [word(header.labels[k]), ` ${k}:  `, ...say(k)],
    pick: (k) => kept.send("cell", [header.query.at, k]),
  });
}

const may = (kept, k) => kept.blocks.allowed[k] > 0;
const keysHint = (kept) => ["The frame is ", word(kept.header.key.label), "; choose another key with a click, or with the arrow keys and Enter."];

function scaled(kept, at) {
  const { header, blocks } = kept;
  const { dots, scores } = blocks;
  const formula = [`score = q · k / ${header.dividing}`];
  const sum = header.added === null ? "" : ` ${header.added < 0 ? "−" : "+"} ${num(Math.abs(header.added), FULL)}`;
  formula.push(`= ${num(header.dot, FULL)} / ${num(header.divisor, FULL)}${sum}`);
  const words = [header.scaleWhy];
  if (header.added !== null) words.push(" ", header.addedWhy);
  const picture = overKeys(
    kept, "scores",
    [
      { name: ["q · k"], values: dots, sides: "two", top: largestOf(dots) },
      { name: ["score"], values: scores, sides: "two", top: largestOf(scores), strong: true },
    ],
    (k) => [`q · k ${num(dots[k])},  score ${num(scores[k])}`], keysHint(kept),
  );
  return step(kept, at, "Scaled: the score", words, formula, `score = ${num(header.score, FULL)}`, picture, ownFigure(header.own.score));
}

function masked(kept, at) {
  const { header, blocks } = kept;
  const shown = blocks.scores.filter((_, k) => may(kept, k));
  const picture = overKeys(
    kept, "masked",
    [{ name: [header.masks ? "after the mask" : "the row"], values: blocks.scores, sides: "two", top: largestOf(shown), free: blocks.allowed, barred: "−∞", strong: true }],
    (k) => [may(kept, k) ? `allowed, score ${num(blocks.scores[k])}` : "not allowed: −∞, so its weight is 0"],
    [`The largest of the row: `, word(header.labels[header.largestAt]), ` ${header.largestAt}, score ${num(header.largest)}`],
  );
  const formula = [header.allowed ? `allowed: the score stays` : `not allowed: −∞ takes the score’s place`];
  return step(kept, at, header.masks ? "Masked" : "No mask", [header.maskWhy], formula, header.allowed ? num(header.score, FULL) : "−∞", picture);
}

function softmax(kept, at) {
  const { header, blocks } = kept;
  const { exponentials, weights } = blocks;
  const n = header.nAllowed;
  const formula = [];
  if (!header.allowed) formula.push(`exp(−∞) / Σ exp = 0`);
  else {
    formula.push(
      header.plain ? `exp(${num(header.score, FULL)}) / Σ exp = ${num(header.plain[0], FULL)} / ${num(header.plain[1], FULL)}` : `exp(${num(header.score, FULL)}) / Σ exp: some exp here is too large for a number`,
      `${num(header.largest, FULL)}, the largest, subtracted: exp(${num(header.score - header.largest, FULL)}) / Σ exp = ${num(header.exponential, FULL)} / ${num(header.total, FULL)}`,
    );
  }
  const words = [`Each exp(score), divided by the sum of all ${n} allowed: the row becomes weights that add up to 1. Subtracting the row’s largest score first divides both by the same number, so nothing changes, and nothing grows too large.`];
  if (header.evened) formula.push(`softmax = ${num(header.softmax, FULL)}, but an edit decides: ${header.evened}, 1 / ${n}`);
  const picture = overKeys(
    kept, "softmax",
    [
      { name: ["exp(score − largest)"], values: exponentials, sides: "one", top: largestOf(exponentials), free: blocks.allowed, barred: "0" },
      { name: ["weight"], values: weights, sides: "one", top: largestOf(weights), free: blocks.allowed, barred: "0", strong: true },
    ],
    (k) => [may(kept, k) ? `exp(${num(blocks.scores[k])} − ${inBrackets(header.largest)}) = ${num(exponentials[k])},  weight ${num(weights[k])}` : "not allowed, weight 0"],
    keysHint(kept),
  );
  return step(kept, at, "Softmax: the weight", words, formula, `weight = ${num(header.weight, FULL)}`, picture, ownFigure(header.own.weight));
}

function valued(kept, at) {
  const { header, blocks } = kept;
  const { v } = blocks;
  const share = v.map((each) => each * header.weight);
  const picture = drawn(kept, {
    group: "values", id: "value", n: v.length, about: "The value and its share by dimension",
    rows: [
      { name: ["v of ", word(header.key.label)], values: v, sides: "two", top: largestOf(v) },
      { name: ["weight × v"], values: share, sides: "two", top: largestOf(v), strong: true },
    ],
    say: (d) => [`dimension ${d}:  ${num(header.weight)} × ${num(v[d])} = ${num(share[d])}`],
    rest: ["Both strips in the same colours: the weight makes the value fainter."],
  });
  return step(
    kept, at, "Weight times value", [word(header.key.label), "’s value v is what it hands over; the weight says how much of it is taken."],
    [`|weight × v| = weight × |v| = ${num(header.weight, FULL)} × ${num(header.vLength, FULL)}`], `|weight × v| = ${num(header.weight * header.vLength, FULL)}`, picture,
  );
}

function summed(kept, at) {
  const { header, blocks } = kept;
  const { z } = blocks;
  const d = z.length;
  const parts = header.rows.map((key, r) => ({ key, values: blocks.shares.subarray(r * d, (r + 1) * d) }));
  const top = Math.max(largestOf(z), ...parts.map((part) => largestOf(part.values)));
  const rows = parts.map(({ key, values }) => ({ name: [`${ofRow(header.rowWeights[header.rows.indexOf(key)], 2)} × v of `, word(header.labels[key])], values, sides: "two", top, strong: key === header.key.at }));
  if (header.rest) rows.push({ name: [header.rest === 1 ? "the other key" : `the other ${header.rest} keys`], values: blocks.rest, sides: "two", top });
  rows.push({ name: ["z, their sum"], values: z, sides: "two", top, strong: true });
  if (header.set) rows.push({ name: ["z under the edit"], values: blocks.set, sides: "two", top: Math.max(top, largestOf(blocks.set)), strong: true });
  const picture = drawn(kept, {
    group: "values", id: "sum", n: d, about: "Shares of all keys and their sum by dimension", rows,
    say: (at) => [
      `dimension ${at}:  `, ...parts.map(({ values }, r) => `${r ? " + " : ""}${inBrackets(values[at])}`), header.rest ? ` + ${inBrackets(blocks.rest[at])}` : "", `  =  ${num(z[at])}`,
      ...(header.set ? [`;  under the edit ${num(blocks.set[at])}`] : []),
    ],
    rest: ["All strips in the same colours. Every key gives its value by its weight; ", word(header.key.label), "’s share is in bold."],
  });
  const words = ["Every key’s share, added up: z is what the head found for ", word(header.query.label), "."];
  if (header.set) words.push(` An edit then sets it: ${header.set}.`);
  return step(kept, at, "The sum over all keys", words, [`z = Σ weight × v, over ${header.labels.length} ${header.labels.length === 1 ? "key" : "keys"}`], `|z| = ${num(header.zLength)}`, picture);
}

function through(kept, at) {
  const { header, blocks } = kept;
  const { wrote, total } = blocks;
  const d = header.d_v;
  const top = Math.max(largestOf(wrote), largestOf(total));
  const plan = {
    group: "model", id: "wrote", n: wrote.length, about: "The head's slice of W_O, what the head wrote and what all heads wrote, by dimension of the stream",
    rows: [
      { name: [`W_O of head ${header.head}, ${d} × ${wrote.length}`], values: wrote, image: [d, wrote.length, blocks.w_o] },
      { name: ["this head wrote"], values: wrote, sides: "two", top, strong: true },
      { name: ["all heads and bias"], values: total, sides: "two", top },
    ],
    say: (m) => [`dimension ${m} of the stream:  z · column ${m} of W_O = ${num(wrote[m])};  all heads and bias ${num(total[m])}`],
    rest: [`Above, the slice: one row for each number of z, one column for each dimension of the stream. Below, z · W_O.`],
  };
  return step(
    kept, at, "Through W_O into the stream", [`The head’s own slice of W_O turns its ${d} numbers into ${wrote.length}: a vector that is added to `, word(header.query.label), "’s stream."],
    [`z · W_O: ${d} numbers × (${d} × ${wrote.length}) = ${wrote.length} numbers`], `length = ${num(header.wrote.length)}`, drawn(kept, plan),
    ...(header.own.wrote === null ? [] : [quiet(`All heads and bias, beside what the model itself wrote here: no number is more than ${num(header.own.wrote, 2)} apart.`)]),
  );
}

// A column of numbers with as many decimals as give its largest three figures.
function column(values) {
  const most = Math.max(...values.map((value) => Math.abs(value ?? 0)));
  const digits = most > 0 ? Math.max(0, Math.min(8, 2 - Math.floor(Math.log10(most)))) : 0;
  return (value) => (value === null ? "–" : rounded(value, digits));
}

function among(kept, at) {
  const { header } = kept;
  const { parts, share, length, all } = header.wrote;
  const list = make("div", "parts");
  const most = Math.max(...parts.map((part) => Math.abs(part.share ?? 0)), 1e-9);
  const below = parts.some((part) => part.share < 0);
  list.setAttribute("role", "list");
  const [shares, lengths] = [column(parts.map((part) => part.share)), column(parts.map((part) => part.length))];
  for (const part of parts) {
    const row = make("div", part.chosen ? "part chosen" : "part");
    row.setAttribute("role", "listitem");
    const track = make("span", "track");
    const bar = make("i", part.share < 0 ? "below" : "");
    const width = (100 * Math.abs(part.share ?? 0)) / most / (below ? 2 : 1);
    bar.style.width = `${width}%`;
    bar.style.left = `${below ? 50 - (part.share < 0 ? width : 0) : 0}%`;
    track.append(bar);
    row.append(make("span", "", part.name), track, make("span", "figure", shares(part.share)), make("span", "figure", lengths(part.length)));
    list.append(row);
  }
  const heads = make("div", "part heads");
  heads.setAttribute("aria-hidden", "true");
  heads.append(make("span"), make("span"), make("span", "figure", "share"), make("span", "figure", "length"));
  list.prepend(heads);
  const words = share === null
    ? ["Together, heads and bias write nothing here, so there is nothing to take a share of."]
    : ["How far each part reaches along the sum of all: part · sum / |sum|². The shares are signed and add up to 1; below 0 a part works against the sum."];
  const formula = [`its length beside the sum’s: ${num(length, FULL)} / ${num(all, FULL)} = ${all > 0 ? num(length / all) : "–"}`];
  return step(kept, at, "Among all heads", words, formula, share === null ? "" : `share = ${num(share)}`, list, quiet("Lengths do not add up: parts of unlike direction partly cancel."));
}

// ---- the matrix ---------------------------------------------------------------------------------------------------

function unfold(kept) {
  const { blocks } = kept;
  if (blocks.exact) return [blocks.exact, () => 0];
  const floor = blocks.floor[0];
  let low = 0;
  const code = Float32Array.from(blocks.high, (high) => high * 256 + (high >= floor ? blocks.low[low++] : 127.5));
  return [code.map((each) => (each / 65535) ** 2), (at) => (blocks.high[at] >= floor ? 0 : (2 * code[at] * 128) / 65535 ** 2)];
}

function matrix(kept, root) {
  const { header, blocks } = kept;
  const [rows, n] = [header.queries.length, header.keys.length];
  const [weight, unknown] = unfold(kept);
  const free = permitted(blocks, rows * n);
  const peak = weight.reduce((a, b) => Math.max(a, b), 0);
  const canvas = make("canvas");
  const line = make("p", "told");
  line.setAttribute("role", "status");
  const scroll = make("div", "scroll");
  const area = make("div", "area");
  const [marked, over] = [make("i", "mark"), make("i", "over")];
  area.append(canvas, marked, over);
  scroll.append(area);
  scroll.tabIndex = 0;
  scroll.dataset.focus = "matrix";
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", `${header.about}. Arrow keys move from cell to cell, Enter opens one.`);
  let [left, top, cell] = [0, 0, 10];
  kept.cell ||= null;
  kept.pointed = null;
  const put = (box, at) => {
    box.hidden = !at || at[0] >= rows || at[1] >= n;
    if (!box.hidden) Object.assign(box.style, { left: `${left + at[1] * cell}px`, top: `${top + at[0] * cell}px`, width: `${cell}px`, height: `${cell}px` });
  };
  const show = () => {
    put(over, kept.pointed);
    put(marked, kept.cell);
    const at = kept.pointed || kept.cell;
    if (!at || at[0] >= rows || at[1] >= n) return line.replaceChildren("Choose a cell to open it.");
    const [q, k] = at;
    const place = q * n + k;
    const value = free && !free[place] ? notAllowed(q, k) : `${unknown(place) > 0.00005 ? "≈ " : ""}${ofRow(weight[place], 3)}`;
    line.replaceChildren(word(header.queries[q]), ` ${q} → `, word(header.keys[k]), ` ${k}  `, make("strong", "", value));
  };
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    const [q, k] = [Math.floor((event.clientY - box.top - top) / cell), Math.floor((event.clientX - box.left - left) / cell)];
    return q >= 0 && k >= 0 && q < rows && k < n ? [q, k] : null;
  };
  const choose = (chosen) => {
    if (!chosen) return;
    kept.cell = chosen;
    kept.send("cell", chosen);
    show();
  };
  area.onmousemove = (event) => {
    kept.pointed = at(event);
    show();
  };
  area.onmouseleave = scroll.onblur = () => {
    kept.pointed = null;
    show();
  };
  area.onclick = (event) => choose(at(event));
  scroll.onkeydown = (event) => {
    if (!plainKey(event)) return;
    const by = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    if (by) {
      event.preventDefault();
      const [q, k] = kept.pointed || kept.cell || [0, 0];
      kept.pointed = [Math.max(0, Math.min(rows - 1, q + by[0])), Math.max(0, Math.min(n - 1, k + by[1]))];
      show();
      over.scrollIntoView({ block: "nearest", inline: "nearest" });
    } else if (event.key === "Enter") choose(kept.pointed || kept.cell);
  };
  kept.fits.push(() => {
    const unit = parseFloat(getComputedStyle(document.documentElement).fontSize);
    const room = scroll.clientWidth - 2;
    if (room < 1) return;
    const named = Math.max(rows, n) <= MOST_NAMED;
    [left, top] = named ? [5.25 * unit, 4.25 * unit] : [0, 0];
    cell = Math.max(named ? 0.75 * unit : 3, Math.min(2 * unit, (room - left) / n, Math.max(1.25 * unit, (22 * unit - top) / rows)));
    const [width, height] = [left + n * cell + 1, top + rows * cell + 1];
    const ratio = window.devicePixelRatio || 1;
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const tile = new OffscreenCanvas(n, rows);
    const image = new ImageData(n, rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let at = 0; at < rows * n; at++) pixels[at] = free && !free[at] ? 0 : kept.words.one[shade(weight[at], peak, false)];
    tile.getContext("2d").putImageData(image, 0, 0);
    if (free) hatch(kept, context, left, top, n * cell, rows * cell);
    context.imageSmoothingEnabled = false;
    context.drawImage(tile, left, top, n * cell, rows * cell);
    if (named) sideNames(kept, context, left, top, cell, unit);
    show();
  });
  root.replaceChildren(line, scroll, legend(kept.words.one, "0", num(peak, 3)));
  // The story says which cell is open; the matrix is not sent again for it.
  const hear = (news) => {
    if (news.anatomy?.matrix !== header.token) return;
    kept.cell = news.anatomy.cell;
    show();
  };
  hear(bus.now);
  return listen(hear);
}

function sideNames(kept, context, left, top, cell, unit) {
  const { header } = kept;
  const size = Math.min(0.8125 * unit, cell * 0.95);
  context.font = `${size}px ${kept.style.fontFamily}`;
  context.fillStyle = kept.style.color;
  context.textBaseline = "middle";
  context.textAlign = "right";
  header.queries.forEach((label, at) => context.fillText(shortened(label, 11), left - 0.3 * unit, top + (at + 0.5) * cell, left - 0.4 * unit));
  context.textAlign = "left";
  header.keys.forEach((label, at) => {
    context.save();
    context.translate(left + (at + 0.5) * cell, top - 0.3 * unit);
    context.rotate(-Math.PI / 2);
    context.fillText(shortened(label, 9), 0, 0, top - 0.4 * unit);
    context.restore();
  });
  context.font = `${0.6875 * unit}px ${kept.style.fontFamily}`;
  context.fillText(`${header.sides[0]} ↓`, 0, top - 1.5 * unit);
  context.fillText(`${header.sides[1]} →`, 0, top - 0.5 * unit);
}

// ---- one vector ---------------------------------------------------------------------------------------------------

function strip(kept, root) {
  const { header, blocks } = kept;
  const { vector } = blocks;
  const piece = header.heads ? vector.length / header.heads : 0;
  const say = (at) => [piece ? `head ${Math.floor(at / piece)}, its ${header.unit} ${at % piece}:  ${num(vector[at])}` : `${header.unit} ${at}:  ${num(vector[at])}`];
  const rest = piece ? [`${vector.length} numbers in ${header.heads} pieces of ${piece}; the framed piece is head ${header.head}’s.`] : [`${vector.length} numbers, length ${num(Math.hypot(...vector))}`];
  const box = strips(kept, {
    group: "one", id: "one", n: vector.length, about: header.about, say, rest, cuts: header.heads, cut: header.head,
    rows: [{ name: header.name ? [header.name] : [], values: vector, sides: "two", top: header.top, strong: true }],
  });
  if (!header.name) box.classList.add("bare");
  root.replaceChildren(box);
}

// ---- shapes -------------------------------------------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";

function node(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// The split into heads and back as it happens, shape by shape. One row is the chosen query's, one piece the chosen head's.
function shapes(kept, root) {
  const { header } = kept;
  const { n, m, heads, head, d_head, d_v, d_model, query } = header;
  const wide = heads * d_head;
  const stages = [
    ["x · W_Q", `(${n}, ${wide})`, "one row a token", (at) => block(header, at, 0)],
    ["cut in heads", `(${n}, ${heads}, ${d_head})`, `${heads} pieces of ${d_head} in every row`, (at) => block(header, at, 5)],
    ["heads first", `(${heads}, ${n}, ${d_head})`, "one sheet a head", sheets],
    ["attention", `(${heads}, ${n}, ${d_v})`, `each sheet by itself: A (${n}, ${m}) · V (${m}, ${d_v})`, sheets],
    ["concat", `(${n}, ${heads * d_v})`, "the sheets side by side again", (at) => block(header, at, 0)],
    ["W_O", `(${n}, ${d_model})`, "heads mixed: one vector a token", plain],
  ];
  const list = make("ol", "stages");
  stages.forEach(([name, shape, words, draw]) => {
    const item = make("li");
    const svg = node("svg", { viewBox: "0 0 150 96", "aria-hidden": "true" });
    svg.append(...draw(header, head, query));
    item.append(make("span", "name", name), svg, make("span", "shape", shape), make("span", "why", words));
    list.append(item);
  });
  const note = make("p", "note");
  note.append("n = ", `${n}${m === n ? "" : ` queries, ${m} keys`}, heads = ${heads}, d_head = ${d_head}, d_model = ${d_model}. The line is the row of `, word(header.label), ` (token ${query}), the filled piece head ${head}’s.`);
  root.replaceChildren(list, note);
}

const rowAt = ({ n, query }, height) => ((query + 0.5) / Math.max(n, 1)) * height;

function block(header, _, gap) {
  const { heads, head } = header;
  const [width, height] = [134 - gap * 1.2, 70];
  const one = width / heads;
  const between = gap ? Math.min(gap, one * 0.4) : 0;
  const y = 12 + rowAt(header, height);
  const parts = [];
  for (let h = 0; h < heads; h++) parts.push(node("rect", { class: h === head ? "piece chosen" : "piece", x: 8 + h * one + between / 2, y: 12, width: one - between, height, rx: 1 }));
  parts.push(node("line", { class: "row", x1: 4, x2: 146 - gap, y1: y, y2: y }));
  return parts;
}

function sheets(header) {
  const { heads, head } = header;
  const shown = Math.min(heads, 8);
  const at = Math.min(head, shown - 1);
  const [width, height] = [58, 46];
  const by = Math.min(10, 80 / Math.max(shown - 1, 1));
  const down = Math.min(5, 32 / Math.max(shown - 1, 1));
  const place = (h) => [8 + h * by, 8 + h * down];
  const order = [...Array(shown).keys()].filter((h) => h !== at).concat(at);
  const parts = [];
  for (const h of order) {
    const [x, y] = place(h);
    parts.push(node("rect", { class: h === at ? "piece chosen" : "piece", x, y, width, height, rx: 1 }));
  }
  const [x, y] = place(at);
  parts.push(node("line", { class: "row", x1: x - 3, x2: x + width + 3, y1: y + rowAt(header, height), y2: y + rowAt(header, height) }));
  return parts;
}

function plain(header) {
  const y = 12 + rowAt(header, 70);
  return [node("rect", { class: "piece mixed", x: 8, y: 12, width: 134, height: 70, rx: 1 }), node("line", { class: "row", x1: 4, x2: 146, y1: y, y2: y })];
}

// ---- downloads ----------------------------------------------------------------------------------------------------

function exports(kept) {
  const box = make("div", "exports");
  for (const kind of ["PNG", "SVG"]) {
    const button = make("button", "small", `The story as ${kind}`);
    button.dataset.focus = kind;
    button.onclick = async () => {
      const text = drawing(kept);
      save(kept, kind === "SVG" ? new Blob([text], { type: "image/svg+xml" }) : await pixels(text), kind.toLowerCase());
    };
    box.append(button);
  }
  return box;
}

function broken(line, most) {
  const made = [""];
  for (const word of line.split(" ").flatMap((each) => ([...each].length > most ? [...each].join("").match(new RegExp(`.{1,${most}}`, "gu")) : [each]))) {
    const longer = made.at(-1) ? `${made.at(-1)} ${word}` : word;
    if ([...longer].length > most) made.push(word);
    else made[made.length - 1] = longer;
  }
  return made;
}

const clipped = (lines, most) => (lines.length > most ? [...lines.slice(0, most - 1), `${lines[most - 1]} …`] : lines);

const MARKS = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const safe = (text) => [...text].map((c) => MARKS[c] || (/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u.test(c) ? "\ufffd" : c)).join("");

// The whole story on one sheet, with its caption: what it says does not depend on the page around it.
function drawing(kept) {
  const { header } = kept;
  const [width, left, height] = [960, 190, 20];
  const field = width - left - 90;
  const [ink, paper, frame] = ["--st-text-color", "--st-background-color", "--st-primary-color"].map((name) => kept.style.getPropertyValue(name));
  const out = [];
  let y = 26;
  const text = (x, at, size, content, more = "") => out.push(`<text x="${x}" y="${at}" font-size="${size}" ${more}>${safe(content)}</text>`);
  text(16, y, 17, header.title, 'font-weight="600"');
  for (const line of header.caption.flatMap((each) => clipped(broken(each, 140), 6))) text(16, (y += 17), 12, line);
  for (const { title, lines, strips: plans } of kept.steps) {
    text(16, (y += 34), 14, title, 'font-weight="600"');
    for (const line of lines.flatMap((each) => broken(each, 130))) text(16, (y += 17), 12.5, line);
    y += 8;
    for (const plan of [plans].flat()) {
      const from = y;
      for (const row of plan.rows) {
        const tall = row.image ? 64 : height;
        text(16, y + tall / 2 + 4, 11.5, shortened(row.name.map((each) => each.textContent ?? each).join(""), 28));
        out.push(`<image x="${left}" y="${y}" width="${field}" height="${tall - 2}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${tile(kept, row, plan.n)}"/>`);
        if (!row.image) text(left + field + 6, y + tall / 2 + 4, 11, row.sides === "two" ? `±${num(row.top, 3)}` : `0–${num(row.top, 3)}`);
        y += tall;
      }
      if (plan.mark >= 0) out.push(`<rect x="${left + (plan.mark * field) / plan.n}" y="${from - 1}" width="${field / plan.n}" height="${y - from}" fill="none" stroke="${frame}" stroke-width="2"/>`);
      if (plan.labels) {
        const all = plan.n <= MOST_NAMED;
        plan.labels.forEach((label, at) => all && text(0, 0, 10, shortened(label, 10), `text-anchor="end" transform="translate(${left + ((at + 0.5) * field) / plan.n + 3} ${y + 4}) rotate(-90)"`));
        if (!all) text(left, y + 12, 10, `framed: ${plan.labels[plan.mark]} (key ${plan.mark})`);
        y += all ? 62 : 18;
      }
    }
  }
  if (header.wrote) {
    const most = Math.max(...header.wrote.parts.map((part) => Math.abs(part.share ?? 0)), 1e-9);
    const zero = header.wrote.parts.some((part) => part.share < 0) ? field / 2 : 0;
    for (const part of header.wrote.parts) {
      text(16, (y += 18), 11.5, part.name, part.chosen ? 'font-weight="600"' : "");
      const size = (Math.abs(part.share ?? 0) / most) * (field - zero);
      const colour = css(kept.words.two[part.share < 0 ? 20 : 235]);
      out.push(`<rect x="${left + zero - (part.share < 0 ? size : 0)}" y="${y - 11}" width="${size}" height="12" fill="${colour}"/>`);
      text(left + field + 6, y, 11, num(part.share, 3));
    }
  }
  y += 30;
  text(16, y, 11, "Strips: blue below 0, orange above; full colour is the figure at the right. Hatched and empty cells are not allowed.");
  y += 18;
  return `<svg xmlns="${SVG}" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}" font-family="sans-serif" fill="${ink}"><rect width="100%" height="100%" fill="${paper}"/>${out.join("\n")}</svg>`;
}

function tile(kept, row, n) {
  const canvas = document.createElement("canvas");
  const [rows, columns] = row.image || [1, n];
  [canvas.width, canvas.height] = [columns, rows];
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  if (row.image) row.image[2].forEach((byte, at) => (pixels[at] = kept.words.two[byte]));
  else for (let at = 0; at < n; at++) pixels[at] = row.free && !row.free[at] ? 0 : colourOf(kept, row, row.values[at]);
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas.toDataURL();
}
