// One number of the residual stream by token and place as a map, and one token's way through it as a line (or bars, for heads).

const KEPT = new WeakMap();
const WIDEST_CELL = 76;
const NARROWEST_CELL = 15;
const NUMBERS_FROM = 40; // pixels of a cell's width from which its number is written in it
const MOST_FINE_ROWS = 64;

export default function ({ data, parentElement, setTriggerValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = {}));
  kept.send = setTriggerValue;
  dress(parentElement);
  const root = (kept.root = parentElement.querySelector(".residual"));
  const before = kept.header;
  if (kept.data !== data) {
    kept.data = data;
    Object.assign(kept, decode(data));
  }
  const style = getComputedStyle(root);
  const theme = ["--st-chart-sequential-colors", "--st-text-color", "--st-background-color"].map((name) => style.getPropertyValue(name)).join();
  const same = before && before.token === kept.header.token && kept.theme === theme;
  kept.theme = theme;
  kept.ink = style.getPropertyValue("--st-text-color").trim();
  kept.paper = style.getPropertyValue("--st-background-color").trim();
  kept.primary = style.getPropertyValue("--st-primary-color").trim();
  kept.border = style.getPropertyValue("--st-border-color").trim();
  kept.words = kept.header.measure.diverging ? twoSided(style) : colours(root);
  if (!same) ({ chart, followed })[kept.header.kind](kept);
  attend(kept);
  root.dataset.token = kept.header.token;
  return () => setTimeout(() => root.isConnected || end(kept));
}

function end(kept) {
  kept.observer?.disconnect();
  kept.deaf?.();
  kept.deaf = undefined;
}

// The map marks the token that the line follows; the line says which one that is.
function attend(kept) {
  const { header } = kept;
  if (header.kind === "followed") {
    bus.tell({ residual: { picture: header.picture, token: header.chosen } });
    return;
  }
  kept.deaf?.();
  const hear = (detail) => detail.residual?.picture === header.token && kept.mark(detail.residual.token);
  kept.deaf = listen(hear);
  hear(bus.now);
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

const colourOf = (kept, value) => {
  if (Number.isNaN(value)) return undefined;
  const { low, high, log } = kept.header;
  const share = log ? (value > 0 ? Math.log(value / low) / Math.log(high / low) : 0) : (value - low) / (high - low);
  return kept.words[Math.round(255 * Math.max(0, Math.min(1, share)))];
};

function say(header, value) {
  if (Number.isNaN(value)) return "not defined";
  const { digits, unit } = header.measure;
  const tiny = value !== 0 && Math.abs(value) < 0.5 * 10 ** -digits;
  const text = tiny ? value.toExponential(1) : value.toFixed(digits);
  return text.replace("-", "−") + unit;
}

// In a cell there is room for the digits and no more.
const brief = ({ measure }, value) => value.toFixed(measure.digits).replace(/^-(?=0\.?0*$)/, "").replace("-", "−") + measure.unit;

const named = (label) => {
  const token = make("b", "", label);
  token.dir = "auto";
  return token;
};

function draw(kept, ...parts) {
  const { root } = kept;
  const focus = root.getRootNode().activeElement?.dataset?.focus;
  const place = root.querySelector(".scroll");
  const [left, top] = [place?.scrollLeft, place?.scrollTop];
  root.replaceChildren(...parts);
  if (place) root.querySelector(".scroll")?.scrollTo(left, top);
  if (focus) root.querySelector(`[data-focus="${focus}"]`)?.focus({ preventScroll: true });
}

// ---- the map ------------------------------------------------------------------------------------------------------

function chart(kept) {
  const { header, blocks } = kept;
  const [m, n] = [header.tokens.length, header.columns.length];
  const scroll = make("div", "scroll");
  scroll.setAttribute("role", "group");
  scroll.setAttribute("aria-label", `${header.title}: tokens down, places across. Up and down move from token to token, left and right from place to place, Enter follows the token. The table below has the same numbers.`);
  const frame = make("div", "frame");
  const across = heads(header.columns);
  const rows = make("div", "rows");
  const cells = make("div", "cells");
  const canvas = make("canvas");
  const [held, over] = [make("i", "held"), make("i", "over")];
  held.hidden = over.hidden = true;
  cells.append(canvas, held, over);
  const list = header.tokens.map((label, at) => {
    const one = make("button", header.special[at] ? "row special" : "row", label);
    one.dir = "auto";
    one.tabIndex = at ? -1 : 0;
    one.dataset.focus = `row ${at}`;
    one.setAttribute("aria-pressed", "false");
    one.setAttribute("aria-label", `Token ${at}, ${label}`);
    one.onclick = () => choose(at);
    one.onfocus = () => look(at, kept.x ?? 0);
    one.onkeydown = (event) => step(event, at);
    rows.append(one);
    return one;
  });
  frame.append(make("div", "corner"), across, rows, cells);
  scroll.append(frame);
  const value = make("p", "value");
  value.setAttribute("role", "status");
  const rest = () => value.replaceChildren(`${header.measure.name}: ${header.measure.meaning}. Point at a cell to read it; ${header.hint}`);
  const look = (y, x) => {
    over.hidden = y === undefined;
    across.querySelectorAll(".label.on").forEach((each) => each.classList.remove("on"));
    if (over.hidden) return rest();
    [kept.x, kept.y] = [x, y];
    over.style.setProperty("--x", x);
    over.style.setProperty("--y", y);
    across.querySelectorAll(".label")[x]?.classList.add("on");
    value.replaceChildren(named(header.tokens[y]), ` (token ${y}), ${header.columns[x][2]}: `, make("strong", "", say(header, blocks.values[y * n + x])));
  };
  const choose = (at) => {
    kept.mark(at);
    kept.send("token", at);
  };
  const step = (event, at) => {
    if (!plainKey(event)) return;
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: m - 1, PageDown: Math.min(m - 1, at + 10), PageUp: Math.max(0, at - 10) }[event.key];
    const side = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (to === undefined && !side) return;
    event.preventDefault();
    event.stopPropagation();
    if (side) {
      look(at, Math.max(0, Math.min(n - 1, (kept.x ?? 0) + side)));
      const [from, room] = [kept.x * kept.wide, scroll.clientWidth - rows.offsetWidth];
      if (from < scroll.scrollLeft) scroll.scrollLeft = from;
      else if (from + kept.wide > scroll.scrollLeft + room) scroll.scrollLeft = from + kept.wide - room;
    } else if (list[to]) {
      list.forEach((one, i) => (one.tabIndex = i === to ? 0 : -1));
      list[to].focus({ preventScroll: true });
      bring(to);
    }
  };
  const bring = (at) => {
    const [from, room] = [at * kept.high, scroll.clientHeight - across.offsetHeight];
    if (from < scroll.scrollTop) scroll.scrollTop = from;
    else if (from + kept.high > scroll.scrollTop + room) scroll.scrollTop = from + kept.high - room;
  };
  kept.mark = (at) => {
    held.hidden = !(at >= 0 && at < m);
    held.style.setProperty("--at", at);
    list.forEach((one, i) => {
      one.setAttribute("aria-pressed", i === at);
      one.tabIndex = i === at ? 0 : -1;
    });
    if (!held.hidden && kept.high) bring(at);
    kept.root.dataset.followed = at;
  };
  const cellAt = (event) => {
    const box = cells.getBoundingClientRect();
    const [x, y] = [Math.floor(((event.clientX - box.left) / box.width) * n), Math.floor(((event.clientY - box.top) / box.height) * m)];
    return x >= 0 && y >= 0 && x < n && y < m ? [y, x] : undefined;
  };
  cells.onmousemove = (event) => look(...(cellAt(event) || []));
  cells.onmouseleave = () => look();
  cells.onclick = (event) => {
    const cell = cellAt(event);
    if (cell) choose(cell[0]);
  };
  const foot = make("div", "foot");
  const { low, high } = header;
  foot.append(legend(kept.words, say(header, low), `${say(header, high)}${header.log ? ", logarithmic" : ""}`), ...exports(kept, "Map", () => mapDrawing(kept)));
  rest();
  draw(kept, scroll, value, foot);
  const fit = () => {
    kept.wide = Math.max(NARROWEST_CELL, Math.min(WIDEST_CELL, Math.floor((scroll.clientWidth - rows.offsetWidth - 2) / Math.max(1, n))));
    kept.high = m <= 24 ? 28 : m <= MOST_FINE_ROWS ? 21 : 14;
    for (const [name, size] of [["--wide", `${kept.wide}px`], ["--high", `${kept.high}px`], ["--n", n], ["--m", m]]) frame.style.setProperty(name, size);
    const longest = Math.max(...header.columns.map(([, label]) => label.length), 1);
    const numbered = header.columns.every(([, label]) => /^\d+$/.test(label));
    across.classList.toggle("upright", !numbered && longest * 7.5 > kept.wide);
    across.classList.toggle("sparse", numbered && longest * 7.5 + 4 > kept.wide);
    paint(kept, canvas, m, n);
  };
  kept.observer?.disconnect();
  kept.observer = new ResizeObserver(fit);
  kept.observer.observe(kept.root);
  fit();
}

function heads(columns) {
  const box = make("div", "across");
  const groups = [];
  columns.forEach(([group]) => (groups.at(-1)?.[0] === group ? groups.at(-1)[1]++ : groups.push([group, 1])));
  groups.forEach(([group, size]) => {
    const one = make("span", "group", size === 1 && group === "Input" ? "In" : group);
    one.title = group;
    one.style.gridColumn = `span ${size}`;
    box.append(one);
  });
  columns.forEach(([group, label, name], at) => {
    const one = make("span", placeInGroup(columns, at) % 2 ? "label odd" : "label", label);
    one.title = name;
    box.append(one);
  });
  return box;
}

function placeInGroup(columns, at) {
  return at - columns.findIndex(([group]) => group === columns[at][0]);
}

function paint(kept, canvas, m, n) {
  const { values } = kept.blocks;
  const fine = m <= MOST_FINE_ROWS;
  const ratio = fine ? window.devicePixelRatio || 1 : 1;
  const [wide, high] = fine ? [kept.wide * ratio, kept.high * ratio] : [1, 1];
  canvas.width = Math.max(1, Math.round(n * wide));
  canvas.height = Math.max(1, Math.round(m * high));
  const context = canvas.getContext("2d");
  const write = fine && kept.wide >= NUMBERS_FROM;
  context.font = `${12.5 * ratio}px ${getComputedStyle(kept.root).fontFamily}`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  for (let y = 0; y < m; y++)
    for (let x = 0; x < n; x++) {
      const value = values[y * n + x];
      const word = colourOf(kept, value);
      context.fillStyle = word === undefined ? kept.border : css(word);
      context.fillRect(Math.round(x * wide), Math.round(y * high), Math.ceil(wide), Math.ceil(high));
      if (write) {
        context.fillStyle = word === undefined ? kept.ink : inkOn(word);
        context.fillText(Number.isNaN(value) ? "–" : brief(kept.header, value), (x + 0.5) * wide, (y + 0.54) * high);
      }
    }
  canvas.dataset.painted = kept.header.token;
}

// ---- one token's way ----------------------------------------------------------------------------------------------

function followed(kept) {
  const { header, blocks } = kept;
  const plot = make("div", "plot");
  plot.tabIndex = 0;
  plot.dataset.focus = "plot";
  plot.setAttribute("role", "img");
  plot.setAttribute("aria-label", `${header.measure.name} of token ${header.chosen}, ${header.label}, at each place, beside the median of all ${header.n} tokens. Left and right read the values.`);
  const value = make("p", "value");
  value.setAttribute("role", "status");
  const key = make("div", "key");
  const entry = (text, more) => {
    const box = make("span");
    const sign = node("svg", { viewBox: "0 0 28 12", "aria-hidden": "true" });
    sign.append(...more);
    box.append(sign, text);
    return box;
  };
  const mine = make("span");
  mine.append(named(header.label), ` (token ${header.chosen})`);
  key.append(
    entry(mine, header.bars ? [node("rect", { x: 8, y: 0, width: 12, height: 12, fill: kept.primary })] : [node("path", { d: "M0 6H28", stroke: kept.primary, "stroke-width": 3 }), node("circle", { cx: 14, cy: 6, r: 4, fill: kept.primary })]),
    entry(make("span", "", `median of all ${header.n} tokens`), [node("path", { d: "M0 6H28", stroke: kept.ink, "stroke-width": 2, "stroke-dasharray": "5 3" })]),
    entry(make("span", "", "from the least to the largest"), [node("rect", { x: 0, y: 1, width: 28, height: 10, fill: kept.ink, opacity: 0.14 })]),
  );
  if (header.measure.name === "Norm")
    key.append(entry(make("span", "", "written vectors (filled: states)"), [node("circle", { cx: 14, cy: 6, r: 4.5, fill: kept.paper, stroke: kept.primary, "stroke-width": 2.5 })]));
  const n = header.columns.length;
  let at = -1;
  const look = (to) => {
    at = Math.max(0, Math.min(n - 1, to));
    value.replaceChildren(`${header.columns[at][2]}: `, make("strong", "", say(header, blocks.values[at])), `; all tokens ${say(header, blocks.least[at])} to ${say(header, blocks.most[at])}, median ${say(header, blocks.median[at])}`);
    const line = plot.querySelector(".at");
    line?.setAttribute("x1", kept.xs[at]);
    line?.setAttribute("x2", kept.xs[at]);
    line?.setAttribute("opacity", 0.6);
  };
  plot.onmousemove = (event) => {
    const box = plot.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * kept.width;
    look(kept.xs.reduce((best, each, i) => (Math.abs(each - x) < Math.abs(kept.xs[best] - x) ? i : best), 0));
  };
  plot.onkeydown = (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by || !plainKey(event)) return;
    event.preventDefault();
    look(at + by);
  };
  const foot = make("div", "foot");
  foot.append(...exports(kept, "Lines", () => lineDrawing(kept)));
  draw(kept, key, plot, value, foot);
  const fit = () => {
    const width = Math.max(280, Math.round(plot.clientWidth));
    if (width === kept.width && plot.firstChild) return;
    kept.width = width;
    const svg = node("svg", { viewBox: `0 0 ${width} 310`, "font-family": getComputedStyle(kept.root).fontFamily });
    const { parts, xs } = lines(kept, width, 310);
    kept.xs = xs;
    svg.append(...parts, node("line", { class: "at", y1: 8, y2: 310 - 66, stroke: kept.ink, opacity: 0 }));
    plot.replaceChildren(svg);
    if (at >= 0) look(at);
  };
  kept.width = undefined;
  kept.observer?.disconnect();
  kept.observer = new ResizeObserver(fit);
  kept.observer.observe(kept.root);
  fit();
  value.textContent = `Values are ${header.measure.meaning}.`;
}

function node(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = plain(text);
  return made;
}

// What XML can hold; the rest becomes the replacement character.
const plain = (text) => [...text].map((c) => (/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u.test(c) ? "\ufffd" : c)).join("");

function ticks(low, high, log) {
  if (log) {
    const list = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++)
      for (const each of high / low > 200 ? [1] : [1, 2, 5]) if (each * 10 ** power >= low * 0.999 && each * 10 ** power <= high) list.push(+(each * 10 ** power).toPrecision(6));
    return list;
  }
  const rough = (high - low) / 4 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = [1, 2, 2.5, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const list = [];
  for (let at = Math.ceil(low / size - 1e-9); at * size <= high + size * 1e-9; at++) list.push(+(at * size).toPrecision(10));
  return list;
}

// The picture as SVG elements for a width and height, and the columns' places along x.
function lines(kept, width, height) {
  const { header, blocks } = kept;
  const n = header.columns.length;
  const [left, right, top, bottom] = [52, 8, 8, 66];
  const finite = (list) => [...list].filter(Number.isFinite);
  const most = Math.max(...finite(blocks.most), 0);
  const { log } = header;
  const least = log ? Math.max(most / 1000, Math.min(most / 2, ...finite(blocks.least).filter((value) => value > 0))) : Math.min(...finite(blocks.least), 0);
  const high = header.measure.name === "Cosine" ? Math.max(most, 0.2) : most || 1;
  const share = (value) => (log ? Math.log(Math.max(value, least) / least) / Math.log(high / least) : (value - least) / (high - least || 1));
  const y = (value) => top + (height - top - bottom) * (1 - share(value));
  const one = (width - left - right) / Math.max(1, n);
  const xs = Array.from({ length: n }, (_, at) => left + (at + 0.5) * one);
  const parts = [];
  for (const tick of ticks(least, high, log))
    parts.push(
      node("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), stroke: kept.ink, opacity: tick ? 0.15 : 0.5 }),
      node("text", { x: left - 6, y: y(tick) + 4, "text-anchor": "end", "font-size": 12, fill: kept.ink }, `${tick}`.replace("-", "−") + header.measure.unit),
    );
  // A written vector and a state differ in kind: each is joined to its own.
  const wrote = header.columns.map(([, , name]) => header.measure.name === "Norm" && name.includes("wrote"));
  const path = (which, kind) => {
    let d = "";
    which.forEach((value, at) => {
      if (wrote[at] === kind && Number.isFinite(value)) d += `${d ? "L" : "M"}${xs[at].toFixed(1)} ${y(value).toFixed(1)}`;
    });
    return d;
  };
  xs.forEach((x, at) => Number.isFinite(blocks.values[at]) && parts.push(node("rect", { x: x - one * 0.36, width: one * 0.72, y: y(blocks.most[at]), height: Math.max(1, y(blocks.least[at]) - y(blocks.most[at])), fill: kept.ink, opacity: 0.14 })));
  if (header.bars) {
    xs.forEach((x, at) => Number.isFinite(blocks.values[at]) && parts.push(node("rect", { x: x - one * 0.22, width: one * 0.44, y: Math.min(y(0), y(blocks.values[at])), height: Math.abs(y(0) - y(blocks.values[at])), fill: kept.primary })));
    xs.forEach((x, at) => Number.isFinite(blocks.median[at]) && parts.push(node("line", { x1: x - one * 0.4, x2: x + one * 0.4, y1: y(blocks.median[at]), y2: y(blocks.median[at]), stroke: kept.ink, "stroke-width": 2 })));
  } else {
    for (const kind of [false, true]) {
      parts.push(node("path", { d: path([...blocks.median], kind), fill: "none", stroke: kept.ink, "stroke-width": 2, "stroke-dasharray": "5 3", opacity: 0.75 }));
      parts.push(node("path", { d: path([...blocks.values], kind), fill: "none", stroke: kept.primary, "stroke-width": 3, "stroke-linejoin": "round" }));
    }
    header.columns.forEach(([, label], at) => {
      const value = blocks.values[at];
      if (!Number.isFinite(value)) return;
      const square = label === "FFN";
      const hollow = wrote[at] ? { fill: kept.paper, stroke: kept.primary, "stroke-width": 2.5 } : { fill: kept.primary };
      parts.push(square ? node("rect", { x: xs[at] - 4.5, y: y(value) - 4.5, width: 9, height: 9, ...hollow }) : node("circle", { cx: xs[at], cy: y(value), r: 5, ...hollow }));
    });
  }
  const longest = Math.max(...header.columns.map(([, label]) => label.length)) * 7;
  const every = header.bars ? Math.ceil((longest + 3) / one) : 1; // of many heads not each has room for its number
  const upright = longest > one * every;
  let group;
  header.columns.forEach(([name, label], at) => {
    const place = upright ? { transform: `translate(${xs[at] + 4} ${height - bottom + 8}) rotate(-90)`, "text-anchor": "end" } : { x: xs[at], y: height - bottom + 18, "text-anchor": "middle" };
    const size = header.columns.filter(([each]) => each === name).length;
    const inGroup = placeInGroup(header.columns, at);
    if (inGroup % every === 0 && (inGroup === 0 || size - inGroup >= every)) parts.push(node("text", { ...place, "font-size": upright ? 11 : 12, fill: kept.ink }, label));
    if (name === group) return;
    group = name;
    parts.push(node("line", { x1: xs[at] - one / 2, x2: xs[at] - one / 2, y1: top, y2: height, stroke: kept.ink, opacity: 0.25 }));
    const room = Math.floor((size * one - 4) / 6.6);
    const short = name.length <= room ? name : name.replace("Layer ", "L").replace("Input", "In");
    if (short.length <= room + 1) parts.push(node("text", { x: xs[at] - one / 2 + 4, y: height - 4, "font-size": 12, "font-weight": 600, fill: kept.ink }, short));
  });
  return { parts, xs };
}

// ---- downloads ----------------------------------------------------------------------------------------------------

function exports(kept, what, drawing) {
  return ["PNG", "SVG"].map((kind) => {
    const button = make("button", "small", `${what} as ${kind}`);
    button.dataset.focus = kind;
    button.onclick = async () => {
      const svg = drawing();
      const text = new XMLSerializer().serializeToString(svg);
      save(kept, kind === "SVG" ? new Blob([text], { type: "image/svg+xml" }) : await pixels(text), kind.toLowerCase());
    };
    return button;
  });
}

// A sheet with title and caption; `fill` draws below them and says how high it became.
function sheet(kept, width, fill) {
  const { header } = kept;
  const most = Math.floor((width - 32) / 6.4);
  const captions = header.caption.flatMap((line) => broken(line, most)).slice(0, 10);
  const svg = node("svg", { width, "font-family": "sans-serif", fill: kept.ink });
  const paper = node("rect", { width: "100%", height: "100%", fill: kept.paper });
  svg.append(paper, node("text", { x: 16, y: 26, "font-size": 16, "font-weight": 600 }, header.title), ...captions.map((line, at) => node("text", { x: 16, y: 46 + at * 17, "font-size": 12 }, line)));
  const height = fill(svg, 58 + captions.length * 17);
  svg.setAttribute("height", height);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return svg;
}

function broken(line, most) {
  const made = [""];
  for (const word of line.split(" ").flatMap((each) => ([...each].length > most ? each.match(new RegExp(`.{1,${most}}`, "gu")) : [each]))) {
    const longer = made.at(-1) ? `${made.at(-1)} ${word}` : word;
    if ([...longer].length > most) made.push(word);
    else made[made.length - 1] = longer;
  }
  return made;
}

function mapDrawing(kept) {
  const { header, blocks } = kept;
  const [m, n] = [header.tokens.length, header.columns.length];
  const cell = Math.max(22, Math.min(64, 720 / n));
  const high = m > 64 ? 14 : 20;
  const left = 150;
  const width = Math.max(680, left + n * cell + 24);
  return sheet(kept, width, (svg, from) => {
    const top = from + 78;
    const tile = document.createElement("canvas");
    tile.width = n;
    tile.height = m;
    const context = tile.getContext("2d");
    for (let y = 0; y < m; y++)
      for (let x = 0; x < n; x++) {
        const word = colourOf(kept, blocks.values[y * n + x]);
        context.fillStyle = word === undefined ? kept.border : css(word);
        context.fillRect(x, y, 1, 1);
      }
    svg.append(node("image", { x: left, y: top, width: n * cell, height: m * high, preserveAspectRatio: "none", style: "image-rendering:pixelated", href: tile.toDataURL() }));
    let group;
    header.columns.forEach(([name, label], x) => {
      svg.append(node("text", { transform: `translate(${left + (x + 0.5) * cell + 4} ${top - 6}) rotate(-90)`, "font-size": 12 }, label));
      if (name !== group) svg.append(node("text", { x: left + x * cell + 2, y: from + 14, "font-size": 12, "font-weight": 600 }, n > 14 ? name.replace("Layer ", "L") : name));
      group = name;
    });
    header.tokens.forEach((label, y) => svg.append(node("text", { x: left - 6, y: top + (y + 0.5) * high + 4, "font-size": Math.min(13, high - 2), "text-anchor": "end" }, [...label].length > 16 ? `${[...label].slice(0, 15).join("")}…` : label)));
    const at = Number(kept.root.dataset.followed);
    if (at >= 0) svg.append(node("rect", { x: left, y: top + at * high, width: n * cell, height: high, fill: "none", stroke: kept.primary, "stroke-width": 2 }));
    const foot = top + m * high + 24;
    const stops = 64;
    for (let i = 0; i < stops; i++) svg.append(node("rect", { x: left + i * 2, y: foot, width: 2.2, height: 12, fill: css(kept.words[Math.round((i / (stops - 1)) * 255)]) }));
    svg.append(node("text", { x: left - 6, y: foot + 11, "font-size": 12, "text-anchor": "end" }, say(header, header.low)), node("text", { x: left + stops * 2 + 6, y: foot + 11, "font-size": 12 }, say(header, header.high)));
    return foot + 32;
  });
}

function lineDrawing(kept) {
  const { header } = kept;
  return sheet(kept, 900, (svg, from) => {
    const group = node("g", { transform: `translate(16 ${from + 20})` });
    group.append(...lines(kept, 868, 320).parts);
    svg.append(node("text", { x: 16, y: from + 6, "font-size": 12 }, `Line or bars: token ${header.chosen}, ${header.label}${header.measure.name === "Norm" ? " (hollow: what was written)" : ""}. Dashed: median of all ${header.n} tokens. Grey: from the least to the largest.`), group);
    return from + 356;
  });
}
