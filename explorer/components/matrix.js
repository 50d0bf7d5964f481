// Matrices of the same rows and columns side by side under one crosshair, and one row of them as the tinted sentence.

const KEPT = new WeakMap();
const NARROWEST = 11; // pixels of a cell at which its labels can still be read
const WIDEST = 56;
const NUMBERS_FROM = 38; // pixels of a cell from which its number is written in it
const NO_NUMBER = 65535;
const MOST_SHARP = 100_000; // cells that are painted large enough to be marked

export default function ({ data, parentElement, setTriggerValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = {}));
  kept.send = setTriggerValue;
  dress(parentElement);
  const root = (kept.root = parentElement.querySelector(".matrices"));
  const before = kept.header?.token;
  if (kept.data !== data) {
    kept.data = data;
    Object.assign(kept, decode(data));
    kept.numbers = unfold(kept);
  }
  const style = getComputedStyle(root);
  const theme = ["--st-chart-sequential-colors", "--st-text-color", "--st-background-color"].map((each) => style.getPropertyValue(each)).join();
  const same = before === kept.header.token && kept.theme === theme;
  kept.theme = theme;
  [kept.ink, kept.paper, kept.primary] = ["text", "background", "primary"].map((each) => style.getPropertyValue(`--st-${each}-color`).trim());
  kept.words = [colours(root), twoSided(style)];
  if (!same) (kept.header.kind === "row" ? sentence : panels)(kept);
  attend(kept);
  root.dataset.token = kept.header.token;
  return () => setTimeout(() => root.isConnected || end(kept));
}

function end(kept) {
  kept.observer?.disconnect();
  kept.deaf?.();
}

// The matrices frame the row that the sentence shows; the sentence says which one that is.
function attend(kept) {
  const { header } = kept;
  if (header.kind === "row") return bus.tell({ matrix: { picture: header.picture, row: header.chosen } });
  kept.deaf?.();
  const hear = (detail) => detail.matrix?.picture === header.token && kept.mark(detail.matrix.row);
  kept.deaf = listen(hear);
  hear(bus.now);
}

// Every panel's numbers; above a size they come as a 16-bit code.
function unfold({ header, blocks }) {
  return (header.panels || [0]).map((_, at) => {
    if (blocks[`v${at}`]) return blocks[`v${at}`];
    const [high, low, [from, to]] = [blocks[`high${at}`], blocks[`low${at}`], blocks[`ends${at}`]];
    return Float32Array.from(high, (byte, i) => {
      const code = byte * 256 + low[i];
      return code === NO_NUMBER ? NaN : from + ((to - from) * code) / (NO_NUMBER - 1);
    });
  });
}

// Blue below 0, the page's own colour at 0, orange above: the theme's two first categorical colours.
function twoSided(style) {
  const hex = (colour) => colour.trim().match(/[0-9a-f]{2}/gi).map((pair) => parseInt(pair, 16));
  const [one, other] = style.getPropertyValue("--st-chart-categorical-colors").split(",").map(hex);
  const middle = hex(style.getPropertyValue("--st-background-color"));
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const far = Math.abs(i - 127.5) / 127.5;
    const [r, g, b] = middle.map((c, k) => Math.round(c + ((i > 127.5 ? one : other)[k] - c) * far));
    return (255 << 24) | (b << 16) | (g << 8) | r;
  });
}

function colourOf(kept, { low, high }, value) {
  if (Number.isNaN(value)) return undefined;
  const share = high > low ? (value - low) / (high - low) : 0;
  return kept.words[low < 0 ? 1 : 0][Math.round(255 * Math.max(0, Math.min(1, share)))];
}

function say({ digits, missing }, value, about = "") {
  if (Number.isNaN(value)) return missing || "no number";
  const tiny = value !== 0 && Math.abs(value) < 0.5 * 10 ** -digits;
  return about + (tiny ? value.toExponential(1) : value.toFixed(digits)).replace("-", "−");
}

// An end of a scale.
const short = (value) => `${Number(value.toPrecision(3))}`.replace("-", "−");

// In a cell there is room for few figures.
const brief = (value) => (Math.abs(value) < 100 ? value.toFixed(Math.abs(value) < 10 ? 2 : 1) : value.toPrecision(3)).replace(/^-(?=0\.?0*$)/, "").replace("-", "−");

const named = (label) => {
  const token = make("b", "", label);
  token.dir = "auto";
  return token;
};

function draw(kept, ...parts) {
  const { root } = kept;
  const focus = root.getRootNode().activeElement?.dataset?.focus;
  root.replaceChildren(...parts);
  if (focus) root.querySelector(`[data-focus="${focus}"]`)?.focus({ preventScroll: true });
}

// ---- matrices -----------------------------------------------------------------------------------------------------

function panels(kept) {
  const { header } = kept;
  const [m, n] = [header.rows.length, header.columns.length];
  const drawn = header.panels.map((panel, at) => ({ ...panel, at })).filter((panel) => panel.drawn);
  const line = make("p", "value");
  line.setAttribute("role", "status");
  const list = drawn.map((panel) => one(kept, panel, m, n));
  const marked = new Set(header.marks.map(([r, c]) => r * n + c));
  const rest = () => line.replaceChildren(`Point at a cell to read it${header.choose ? `; click a row to open its ${header.sides[0]}` : ""}.${header.marks.length && m * n > MOST_SHARP ? " Marks are left out at this size." : ""}`);
  kept.look = (r, c) => {
    const on = r >= 0 && c >= 0;
    [kept.r, kept.c] = on ? [r, c] : [kept.r, kept.c];
    list.forEach((each) => each.over(on ? r : -1, c));
    if (!on) return rest();
    const exact = header.panels.every((_, at) => kept.blocks[`v${at}`]) ? "" : "≈ ";
    const values = header.panels.flatMap((panel, at) => [header.panels.length > 1 ? ` · ${panel.title} ` : " ", make("strong", "", say(header, kept.numbers[at][r * n + c], exact))]);
    line.replaceChildren(named(header.rows[r]), ` (${r}) → `, named(header.columns[c]), ` (${c})`, ...values, marked.has(r * n + c) ? " · marked" : "");
  };
  kept.mark = (at) => {
    list.forEach((each) => each.hold(at >= 0 && at < m ? at : -1));
    kept.held = at;
    kept.root.dataset.row = at;
  };
  const box = make("div", "panels");
  box.append(...list.map((each) => each.box));
  const foot = make("div", "foot");
  foot.append(...exports(kept, drawn));
  rest();
  draw(kept, box, line, foot);
  kept.observer?.disconnect();
  kept.observer = new ResizeObserver(() => list.forEach((each) => each.fit()));
  kept.observer.observe(kept.root);
  list.forEach((each) => each.fit());
}

function one(kept, panel, m, n) {
  const { header } = kept;
  const box = make("section", "panel");
  const scroll = make("div", "scroll");
  scroll.tabIndex = 0;
  scroll.dataset.focus = `panel ${panel.at}`;
  scroll.setAttribute("role", "group");
  scroll.setAttribute("aria-label", `${panel.title || header.title}: ${header.sides[0]} down, ${header.sides[1]} across. Arrow keys move from cell to cell${header.choose ? ", Enter opens the row" : ""}. The table has the same numbers.`);
  const frame = make("div", "frame");
  const corner = make("div", "corner");
  corner.append(make("span", "", `${header.sides[0]} ↓`), make("span", "", `${header.sides[1]} →`));
  const label = (list, className) => {
    const side = make("div", className);
    side.setAttribute("aria-hidden", "true");
    side.append(...list.map((text) => Object.assign(make("span", "", text), { dir: "auto" })));
    return side;
  };
  const [top, left] = [label(header.columns, "top"), label(header.rows, "left")];
  const area = make("div", header.missing ? "area missing" : "area");
  const canvas = make("canvas");
  const [held, row, column] = ["held", "row", "column"].map((each) => make("i", each));
  area.append(canvas, held, row, column);
  frame.append(corner, top, left, area);
  scroll.append(frame);
  if (panel.title && kept.header.panels.filter((each) => each.drawn).length > 1) box.append(make("h4", "", panel.title));
  const foot = make("div", "foot");
  const fold = make("button", "small", "");
  fold.dataset.focus = `fold ${panel.at}`;
  foot.append(fold, legend(kept.words[panel.low < 0 ? 1 : 0], short(panel.low), short(panel.high)));
  box.append(scroll, foot);
  if (panel.under) box.append(make("p", "under", panel.under));
  [...left.children].forEach((each, at) => (each.onclick = () => choose(at)));
  const choose = (at) => {
    if (!header.choose) return;
    kept.mark(at);
    kept.send("row", at);
  };
  const cellAt = (event) => {
    const space = area.getBoundingClientRect();
    const [r, c] = [Math.floor(((event.clientY - space.top) / space.height) * m), Math.floor(((event.clientX - space.left) / space.width) * n)];
    return r >= 0 && c >= 0 && r < m && c < n ? [r, c] : [-1, -1];
  };
  area.onmousemove = (event) => kept.look(...cellAt(event));
  area.onmouseleave = () => kept.look(-1, -1);
  area.onclick = (event) => cellAt(event)[0] >= 0 && choose(cellAt(event)[0]);
  scroll.onblur = () => kept.look(-1, -1);
  let cell = 0;
  scroll.onkeydown = (event) => {
    const by = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    if (!plainKey(event)) return;
    if (event.key === "Enter" && kept.r >= 0) return choose(kept.r);
    if (!by) return;
    event.preventDefault();
    const [r, c] = kept.r >= 0 ? [kept.r + by[0], kept.c + by[1]] : [Math.max(0, kept.held ?? 0), 0];
    kept.look(Math.max(0, Math.min(m - 1, r)), Math.max(0, Math.min(n - 1, c)));
    bring(scroll, area, kept.r, kept.c, cell);
  };
  let whole = false;
  fold.onclick = () => {
    whole = !whole;
    fit();
  };
  const fit = () => {
    const room = scroll.clientWidth - (top.offsetLeft || 96) - 4;
    const fitting = Math.min(room / n, Math.max(22, Math.min(WIDEST, 520 / m)));
    cell = whole ? fitting : Math.max(fitting, NARROWEST);
    for (const [name, size] of [["--cell", `${cell}px`], ["--n", n], ["--m", m]]) frame.style.setProperty(name, size);
    const every = Math.ceil(10 / cell);
    for (const side of [left, top]) [...side.children].forEach((span, at) => (span.style.visibility = at % every ? "hidden" : ""));
    scroll.classList.toggle("whole", whole);
    fold.hidden = fitting >= NARROWEST;
    fold.textContent = whole ? "Readable size" : "Fit whole matrix";
    paint(kept, panel, canvas, m, n, cell);
  };
  const put = (bar, at) => {
    bar.hidden = at < 0;
    bar.style.setProperty("--at", at);
  };
  const over = (r, c) => {
    put(row, r);
    put(column, r < 0 ? -1 : c);
    top.querySelectorAll(".on").forEach((each) => each.classList.remove("on"));
    left.querySelectorAll(".on").forEach((each) => each.classList.remove("on"));
    if (r >= 0) top.children[c]?.classList.add("on");
    for (const at of [r, kept.held ?? -1]) left.children[at]?.classList.add("on");
  };
  const hold = (at) => {
    put(held, at);
    kept.held = at;
    over(-1, -1);
  };
  for (const bar of [held, row, column]) bar.hidden = true;
  return { box, fit, over, hold };
}

// Scroll the cell that is looked at into view, clear of the labels that stay in place.
function bring(scroll, area, r, c, cell) {
  const [top, left] = [r * cell, c * cell];
  const [height, width] = [scroll.clientHeight - area.offsetTop, scroll.clientWidth - area.offsetLeft];
  if (top < scroll.scrollTop) scroll.scrollTop = top;
  if (top + cell > scroll.scrollTop + height) scroll.scrollTop = top + cell - height;
  if (left < scroll.scrollLeft) scroll.scrollLeft = left;
  if (left + cell > scroll.scrollLeft + width) scroll.scrollLeft = left + cell - width;
}

// Cells as pixels where there are many, else at the screen's own size, so that marks are sharp.
function paint(kept, panel, canvas, m, n, cell) {
  const size = m * n > MOST_SHARP ? 1 : Math.max(8, Math.round(cell * (window.devicePixelRatio || 1)));
  canvas.width = n * size;
  canvas.height = m * size;
  const context = canvas.getContext("2d");
  cells(kept, panel, m, n, (r, c, colour) => {
    context.fillStyle = colour;
    context.fillRect(c * size, r * size, size, size);
  });
  if (cell >= NUMBERS_FROM) {
    context.font = `${Math.round(size * 0.3)}px ${getComputedStyle(kept.root).fontFamily}`;
    [context.textAlign, context.textBaseline] = ["center", "middle"];
    kept.numbers[panel.at].forEach((value, at) => {
      const word = colourOf(kept, panel, value);
      if (word === undefined) return;
      context.fillStyle = inkOn(word);
      context.fillText(brief(value), ((at % n) + 0.5) * size, (Math.floor(at / n) + 0.54) * size);
    });
  }
  for (const [r, c] of size > 1 ? kept.header.marks : []) {
    const word = colourOf(kept, panel, kept.numbers[panel.at][r * n + c]);
    context.fillStyle = context.strokeStyle = word === undefined ? kept.ink : inkOn(word);
    context.lineWidth = Math.max(1, size / 12);
    context.strokeRect((c + 0.14) * size, (r + 0.14) * size, size * 0.72, size * 0.72);
  }
  canvas.dataset.painted = kept.header.token;
}

function cells(kept, panel, m, n, fill) {
  for (let r = 0; r < m; r++)
    for (let c = 0; c < n; c++) {
      const word = colourOf(kept, panel, kept.numbers[panel.at][r * n + c]);
      if (word !== undefined) fill(r, c, css(word));
    }
}

// ---- the sentence -------------------------------------------------------------------------------------------------

function sentence(kept) {
  const { header } = kept;
  const [values] = kept.numbers;
  const box = make("div", "tokens");
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", `${header.title}. Arrow keys move from token to token${header.choose ? ", Enter opens one" : ""}.`);
  const line = make("p", "value");
  line.setAttribute("role", "status");
  const best = [...values.keys()].filter((at) => !Number.isNaN(values[at])).sort((a, b) => values[b] - values[a]).slice(0, 4);
  const rest = () => line.replaceChildren(named(header.label), ` ${header.says} `, ...best.flatMap((at, i) => [i ? ", " : "", named(header.columns[at]), ` ${values[at] > 0 && values[at] < 0.005 ? "< 0.01" : brief(values[at])}`]));
  const list = header.columns.map((label, at) => {
    const token = make("button", header.special[at] ? "token special" : "token", label);
    token.dir = "auto";
    token.dataset.focus = `token ${at}`;
    token.tabIndex = at === Math.max(0, header.choose ? header.chosen : 0) ? 0 : -1;
    const word = colourOf(kept, header, values[at]);
    if (word === undefined) token.classList.add("no");
    else Object.assign(token.style, { background: css(word), color: inkOn(word) });
    if (header.choose) token.setAttribute("aria-pressed", at === header.chosen);
    token.setAttribute("aria-label", `Token ${at}, ${label}: ${say(header, values[at])}`);
    token.onclick = () => header.choose && kept.send("row", at);
    token.onmouseenter = token.onfocus = () => line.replaceChildren(named(header.label), ` ${header.says} `, named(label), ` (${at}) `, make("strong", "", say(header, values[at])));
    token.onmouseleave = token.onblur = rest;
    token.onkeydown = (event) => {
      const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: header.columns.length - 1 }[event.key];
      if (!plainKey(event) || !list[to]) return;
      event.preventDefault();
      token.tabIndex = -1;
      list[to].tabIndex = 0;
      list[to].focus();
    };
    return token;
  });
  box.append(...list);
  rest();
  draw(kept, box, line);
}

// ---- downloads ----------------------------------------------------------------------------------------------------

function exports(kept, drawn) {
  return ["PNG", "SVG"].map((kind) => {
    const button = make("button", "small", `Picture as ${kind}`);
    button.dataset.focus = kind;
    button.onclick = async () => {
      const svg = new XMLSerializer().serializeToString(sheet(kept, drawn));
      save(kept, kind === "SVG" ? new Blob([svg], { type: "image/svg+xml" }) : await pixels(svg), kind.toLowerCase());
    };
    return button;
  });
}

// What XML can hold; the rest becomes the replacement character.
const plain = (text) => [...text].map((c) => (/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u.test(c) ? "\ufffd" : c)).join("");

function node(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = plain(text);
  return made;
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

// The matrices with labels, scales and caption on a sheet of their own: what it says does not depend on the page around it.
function sheet(kept, drawn) {
  const { header } = kept;
  const [m, n] = [header.rows.length, header.columns.length];
  const cell = Math.max(6, Math.min(32, 640 / Math.max(n, m)));
  const font = Math.min(13, cell);
  const cut = (text, most) => ([...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text);
  const [left, above] = [130, 110];
  const wide = left + n * cell + 24;
  const width = Math.max(680, wide * drawn.length);
  const lines = header.caption.flatMap((each) => broken(each, Math.floor((width - 32) / 6.4)).slice(0, 6));
  const from = 56 + lines.length * 17;
  const height = from + above + m * cell + 72;
  const svg = node("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif", fill: kept.ink });
  svg.append(node("rect", { width: "100%", height: "100%", fill: kept.paper }), node("text", { x: 16, y: 26, "font-size": 16, "font-weight": 600 }, header.title));
  lines.forEach((each, at) => svg.append(node("text", { x: 16, y: 46 + at * 17, "font-size": 12 }, each)));
  drawn.forEach((panel, place) => {
    const group = node("g", { transform: `translate(${place * wide} ${from})` });
    const tile = document.createElement("canvas");
    [tile.width, tile.height] = [n, m];
    const context = tile.getContext("2d");
    cells(kept, panel, m, n, (r, c, colour) => {
      context.fillStyle = colour;
      context.fillRect(c, r, 1, 1);
    });
    if (panel.title) group.append(node("text", { x: 16, y: 16, "font-size": 14, "font-weight": 600 }, panel.title));
    header.columns.forEach((label, at) => group.append(node("text", { transform: `translate(${left + (at + 0.5) * cell + font / 3} ${above - 6}) rotate(-90)`, "font-size": font }, cut(label, 10))));
    header.rows.forEach((label, at) => group.append(node("text", { x: left - 6, y: above + (at + 0.5) * cell + font / 3, "font-size": font, "text-anchor": "end" }, cut(label, 15))));
    group.append(node("image", { x: left, y: above, width: n * cell, height: m * cell, preserveAspectRatio: "none", style: "image-rendering:pixelated", href: tile.toDataURL() }));
    group.append(node("rect", { x: left, y: above, width: n * cell, height: m * cell, fill: "none", stroke: kept.ink, "stroke-opacity": 0.4 }));
    for (const [r, c] of header.marks) {
      const word = colourOf(kept, panel, kept.numbers[panel.at][r * n + c]);
      group.append(node("rect", { x: left + (c + 0.14) * cell, y: above + (r + 0.14) * cell, width: cell * 0.72, height: cell * 0.72, fill: "none", stroke: word === undefined ? kept.ink : inkOn(word), "stroke-width": 1.5 }));
    }
    const foot = above + m * cell + 22;
    const words = kept.words[panel.low < 0 ? 1 : 0];
    for (let i = 0; i < 64; i++) group.append(node("rect", { x: left + i * 2, y: foot, width: 2.2, height: 12, fill: css(words[Math.round((i / 63) * 255)]) }));
    group.append(node("text", { x: left - 6, y: foot + 11, "font-size": 12, "text-anchor": "end" }, short(panel.low)), node("text", { x: left + 134, y: foot + 11, "font-size": 12 }, short(panel.high)));
    if (panel.under) group.append(node("text", { x: 16, y: foot + 34, "font-size": 13 }, panel.under.split("\n")[0]));
    svg.append(group);
  });
  return svg;
}
