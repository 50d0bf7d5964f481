// One head in three linked views of one selection: the sentence tinted, and the matrix or the lines between two columns.

const KEPT = new WeakMap();
const FAINTEST_LINE = 0.02;
const MOST_LINES = 400;

export default function ({ data, parentElement, setTriggerValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = { fit: false }));
  kept.send = setTriggerValue;
  if (kept.data !== data) {
    kept.data = data;
    Object.assign(kept, decode(data));
    unfold(kept);
  }
  const { header } = kept;
  kept.held = [header.pin, header.column];
  kept.opened = header.cell;
  kept.across = Boolean(header.said);
  kept.over = null;
  dress(parentElement);
  const root = parentElement.querySelector(".head");
  kept.root = root;
  kept.words = colours(root);
  if (kept.observer) kept.observer.disconnect();
  const place = placeOf(root, kept);
  kept.fitted = undefined;
  root.replaceChildren(sentence(kept), ...(header.view === "lines" ? arcs(kept) : header.view === "matrix" ? matrix(kept) : bare(kept)), evidence(kept), exports(kept));
  kept.fitted?.();
  kept.show();
  place();
  // On a phone the head lies below the grid: a choice brings it into sight.
  if (bus.now.chosen && window.innerWidth < 700) root.scrollIntoView({ block: "start", behavior: "smooth" });
  bus.tell({ layer: header.layer, head: header.head, chosen: false });
  root.dataset.token = header.token;
  const mine = kept.observer;
  return () => mine && mine.disconnect();
}

// What a new drawing of the same text must not lose: where its boxes were scrolled to, and which control had the focus.
function placeOf(root, kept) {
  const { view, queries, keys } = kept.header;
  const text = JSON.stringify([view, queries, keys]);
  const same = kept.text === text;
  kept.text = text;
  const boxes = [".scroll", ".tokens.rows", ".tokens.columns"].map((name) => [name, root.querySelector(name)?.scrollLeft, root.querySelector(name)?.scrollTop]);
  const focus = root.getRootNode().activeElement?.dataset.focus;
  return () => {
    for (const [name, left, top] of boxes) if (same && left !== undefined) root.querySelector(name)?.scrollTo(left, top);
    if (focus) root.querySelector(`[data-focus="${focus}"]`)?.focus({ preventScroll: true });
  };
}

// weight[query * keys + key] and, where a byte was saved on the way, the half-width of what is unknown.
function unfold(kept) {
  const { header, blocks } = kept;
  const size = header.queries.length * header.keys.length;
  kept.n = header.keys.length;
  kept.permitted = permitted(blocks, size);
  kept.hidden = blocks.hidden || null;
  kept.unknown = null;
  if (blocks.exact) {
    kept.weight = blocks.exact;
  } else {
    kept.weight = new Float32Array(size);
    kept.unknown = new Float32Array(size);
    const floor = blocks.floor[0];
    for (let i = 0, low = 0; i < size; i++) {
      const known = blocks.high[i] >= floor;
      const code = blocks.high[i] * 256 + (known ? blocks.low[low++] : 127.5);
      kept.weight[i] = (code / 65535) ** 2;
      kept.unknown[i] = known ? 0 : (2 * code * 128) / 65535 ** 2;
    }
    // The row and the column that are held travel exactly.
    if (blocks.row) blocks.row.forEach((w, k) => set(kept, header.pin * kept.n + k, w));
    if (blocks.column) blocks.column.forEach((w, q) => set(kept, q * kept.n + header.column, w));
  }
  kept.full = header.queries.map((_, q) => {
    let most = 0;
    for (let k = 0; k < kept.n; k++) most = Math.max(most, kept.weight[q * kept.n + k]);
    return most;
  });
  kept.peak = Math.max(...kept.full);
}

function set(kept, at, weight) {
  kept.weight[at] = weight;
  kept.unknown[at] = 0;
}

const colour = (kept, q, k) => {
  const { scale, log } = kept.header;
  return kept.words[shade(kept.weight[q * kept.n + k], scale === "row" ? kept.full[q] : scale === "head" ? kept.peak : 1, log)];
};

const free = (kept, q, k) => !kept.permitted || kept.permitted[q * kept.n + k] === 1;

function value(kept, q, k) {
  if (!free(kept, q, k)) return notAllowed(q, k);
  const at = q * kept.n + k;
  const unknown = kept.unknown ? kept.unknown[at] : 0;
  const weight = kept.weight[at];
  if (unknown > 0) return weight + unknown < 0.0001 ? "< 0.0001" : `≈ ${weight.toFixed(4)} ± ${unknown.toFixed(4)}`;
  return weight > 0 && weight < 0.00005 ? weight.toExponential(1) : weight.toFixed(4);
}

const name = (label) => {
  const token = make("b", "", label);
  token.dir = "auto";
  return token;
};

const [ROW, COLUMN] = [0, 1];

// The number of a row's or a column's token, which is not its place where others are left out.
const numberOf = (kept, axis, at) => (kept.header.places[axis] ? kept.header.places[axis][at] : at);

// What of a row goes to tokens that are left out, in words; nothing where none are.
const hiddenOf = (kept, q) => (kept.hidden ? `hidden ${share(kept.hidden[q])}` : "");

// Two figures, and neither 0 nor 1 for what is not.
const share = (value) => (value > 0 && value < 0.005 ? "<.01" : value < 1 && value >= 0.995 ? ">.99" : value.toFixed(2));

// Hold the row or the column of a token, or let it go. Where both axes are one text, its row and its column are held together.
function hold(kept, axis, at) {
  const now = kept.held[axis] === at ? -1 : at;
  kept.held = !kept.across ? [now, now] : axis === ROW ? [now, -1] : [-1, now];
  kept.opened = null;
  kept.send("token", kept.across ? [...kept.held, -1] : [now, -1, -1]);
  kept.show();
}

// Open a cell and hold its row; let both go where it was open.
function open(kept, q, k) {
  const [row, column] = kept.opened || [-1, -1];
  if (row === q && column === k && kept.held[ROW] === q) return hold(kept, ROW, q);
  kept.held = kept.across ? [q, -1] : [q, q];
  kept.opened = [q, k];
  kept.send("token", [q, -1, k]);
  kept.show();
}

// What is being looked at, [row, column], -1 for neither: under the pointer, or else held.
const inSight = (kept) => kept.over || kept.held;

// ---- the sentence -------------------------------------------------------------------------------------------------

function sentence(kept) {
  const { header, across } = kept;
  const box = make("div", "sentence");
  const line = make("p", "says");
  line.setAttribute("role", "status");
  const keys = header.keys.map((label, k) => [label, header.special[k]]);
  const above = across && strip(kept, ROW, header.said, "Target");
  const below = strip(kept, across ? COLUMN : ROW, keys, across ? "Source" : "");
  if (across) box.append(above.box);
  box.append(below.box, line);
  // The keys in the colours of a row; between two texts also the target in the colours of a column.
  kept.tint = (query, key = -1) => {
    below.tint(kept.n, query >= 0 ? (k) => [query, k] : null);
    if (across) above.tint(header.queries.length, key >= 0 ? (q) => [q, key] : null);
    line.replaceChildren(...said(kept, query, key));
  };
  return box;
}

// A line of tokens to choose from. tint(n, cell): each of n tokens in the colour of the cell [row, column] that stands for it, or in none.
function strip(kept, axis, tokens, title) {
  const box = make("div", "strip");
  const line = make("div", `tokens ${axis === ROW ? "rows" : "columns"}`);
  const past = tokens.length - 1;
  line.setAttribute("role", "group");
  line.setAttribute("aria-label", `${title ? `${title} tokens` : "Tokens"}. Arrow keys move, Enter chooses one.`);
  const list = tokens.map(([label, special], at) => {
    const token = make("button", "token", label);
    token.dir = "auto";
    token.dataset.at = at;
    token.dataset.focus = `token ${axis} ${at}`;
    token.tabIndex = at === Math.max(0, kept.held[axis]) ? 0 : -1;
    token.classList.toggle("special", special);
    token.onclick = () => hold(kept, axis, at);
    token.onmouseenter = token.onfocus = () => look(kept, axis === ROW ? [at, -1] : [-1, at]);
    token.onmouseleave = token.onblur = () => look(kept, null);
    token.onkeydown = (event) => {
      if (!plainKey(event)) return;
      const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: past }[event.key];
      if (list[next]) {
        event.preventDefault();
        token.tabIndex = -1;
        list[next].tabIndex = 0;
        list[next].focus();
      } else if (event.key === "Escape") {
        const held = kept.held[ROW] >= 0 ? ROW : COLUMN;
        if (kept.held[held] >= 0) hold(kept, held, kept.held[held]);
      }
    };
    return token;
  });
  line.append(...list);
  if (title) box.append(make("span", "axis", title));
  box.append(line);
  const tint = (n, cell) => {
    for (let at = 0; at < n; at++) {
      const [q, k] = cell ? cell(at) : [0, 0];
      const may = !cell || free(kept, q, k);
      const word = cell && may ? colour(kept, q, k) : 0;
      list[at].style.background = word ? css(word) : "";
      list[at].style.color = word ? inkOn(word) : "";
      list[at].classList.toggle("no", !may);
      list[at].setAttribute("aria-pressed", at === kept.held[axis]);
    }
  };
  return { box, tint };
}

// The line under the tokens: a cell, a row or a column in words.
function said(kept, query, key) {
  const { header, n, across } = kept;
  const [q, k] = kept.over || [-1, -1];
  if (q >= 0 && k >= 0) {
    const [from, to] = [name(header.queries[q]), name(header.keys[k])];
    const weight = make("strong", free(kept, q, k) ? "" : "no", value(kept, q, k));
    const [i, j] = [numberOf(kept, ROW, q), numberOf(kept, COLUMN, k)];
    const rest = kept.hidden ? `   (${hiddenOf(kept, q)})` : "";
    return across ? [from, ` ${i}  looks at  `, to, ` ${j}   `, weight, rest] : ["query ", from, ` ${i}  →  key `, to, ` ${j}   `, weight, rest];
  }
  if (query >= 0) {
    const row = kept.weight.subarray(query * n, (query + 1) * n);
    const best = strongest(row, 4).filter((k) => free(kept, query, k));
    return [name(header.queries[query]), " looks at ", ...listed(best, (k) => header.keys[k], row), kept.hidden ? `,  ${hiddenOf(kept, query)}` : ""];
  }
  if (key >= 0) {
    const column = header.queries.map((_, q) => kept.weight[q * n + key]);
    return [name(header.keys[key]), " is looked at by ", ...listed(strongest(column, 4), (q) => header.queries[q], column)];
  }
  return [header.hint];
}

const listed = (places, label, weights) => places.flatMap((at, i) => [i ? ",  " : "", name(label(at)), ` ${weights[at].toFixed(2)}`]);

// ---- what is looked at --------------------------------------------------------------------------------------------

// over: [query, key], -1 for none on that axis; null when the pointer has left.
function look(kept, over) {
  kept.over = over;
  kept.show();
}

// Places of the largest weights, largest first.
function strongest(row, most) {
  const best = [];
  for (let k = 0; k < row.length; k++) {
    if (best.length === most && row[k] <= row[best[most - 1]]) continue;
    best.push(k);
    best.sort((a, b) => row[b] - row[a]);
    best.length = Math.min(best.length, most);
  }
  return best;
}

const axisNames = (kept) => (kept.across ? ["target", "source"] : ["query", "key"]);

// ---- matrix -------------------------------------------------------------------------------------------------------

function matrix(kept) {
  const { header, n } = kept;
  const rows = header.queries.length;
  const [down, right] = axisNames(kept);
  const scroll = make("div", "scroll");
  const frame = make("div", "matrix");
  const canvas = make("canvas", "cells");
  canvas.width = n;
  canvas.height = rows;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Attention of ${header.title}: ${rows} ${down} tokens down, ${n} ${right} tokens across. The table view has the numbers.`);
  const image = new ImageData(n, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let q = 0; q < rows; q++) for (let k = 0; k < n; k++) pixels[q * n + k] = free(kept, q, k) ? colour(kept, q, k) : 0;
  canvas.getContext("2d").putImageData(image, 0, 0);
  const labels = (className, list, axis) => {
    const box = make("div", className);
    list.forEach((label, at) => {
      const span = make("span", "", label);
      span.dir = "auto";
      span.onclick = () => hold(kept, axis, at);
      box.append(span);
    });
    box.setAttribute("aria-hidden", "true");
    return box;
  };
  const left = labels("queries", header.queries, ROW);
  const top = labels("keys", header.keys, COLUMN);
  const corner = make("div", "corner");
  corner.append(make("span", "", `${down} ↓`), make("span", "", `${right} →`));
  const area = make("div", kept.permitted ? "area masked" : "area");
  const [row, column, pinRow, pinColumn] = ["row", "column", "row pinned", "column pinned"].map((c) => make("i", c));
  const cell = make("i", "opened pinned");
  area.append(canvas, pinRow, pinColumn, row, column, cell);
  frame.append(corner, top, left, area);
  const strip = kept.hidden && hiddenStrip(kept, frame);
  scroll.append(frame);
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Matrix. Arrow keys move from cell to cell, Enter holds the row and opens the cell.");
  scroll.dataset.focus = "matrix";
  scroll.onkeydown = (event) => {
    const by = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    const [q, k] = kept.over && kept.over[COLUMN] >= 0 ? kept.over : [Math.max(0, kept.held[ROW]), -1];
    if (!plainKey(event)) return;
    if (by) {
      event.preventDefault();
      look(kept, [Math.max(0, Math.min(rows - 1, k < 0 ? q : q + by[0])), Math.max(0, Math.min(n - 1, k < 0 ? 0 : k + by[1]))]);
      bring(scroll, area, kept);
    } else if (event.key === "Enter" && k >= 0) open(kept, q, k);
  };
  scroll.onblur = () => look(kept, null);

  const cellAt = (event) => {
    const box = canvas.getBoundingClientRect();
    return [Math.floor(((event.clientY - box.top) / box.height) * rows), Math.floor(((event.clientX - box.left) / box.width) * n)];
  };
  area.onmousemove = (event) => {
    const [q, k] = cellAt(event);
    if (q >= 0 && k >= 0 && q < rows && k < n) look(kept, [q, k]);
  };
  area.onmouseleave = () => look(kept, null);
  area.onclick = (event) => open(kept, ...cellAt(event));

  const named = make("span", "note");
  const fit = make("button", "small", "");
  fit.onclick = () => {
    kept.fit = !kept.fit;
    size();
  };
  const size = () => {
    const margin = top.offsetLeft || 96;
    const room = scroll.clientWidth - margin - 4 - (strip ? strip.offsetWidth : 0);
    const fitting = Math.min(room / n, Math.max(22, Math.min(40, 360 / rows)));
    const readable = Math.max(fitting, 11);
    kept.cell = kept.fit ? fitting : readable;
    frame.style.setProperty("--cell", `${kept.cell}px`);
    frame.style.setProperty("--n", n);
    frame.style.setProperty("--rows", rows);
    const every = Math.ceil(10 / kept.cell);
    for (const box of [left, top]) [...box.children].forEach((span, at) => (span.style.visibility = at % every ? "hidden" : ""));
    scroll.classList.toggle("whole", kept.fit);
    fit.textContent = kept.fit ? "Readable size" : "Fit whole matrix";
    named.textContent = every > 1 ? `One token in ${every} is named.` : "";
    fit.hidden = fitting >= 11;
    kept.show();
  };
  kept.observer = new ResizeObserver(size);
  kept.observer.observe(scroll);
  kept.fitted = size;

  const put = (line, at) => {
    line.hidden = at < 0;
    line.style.setProperty("--at", at);
  };
  kept.show = () => {
    const [q, k] = kept.over || [-1, -1];
    put(row, q);
    put(column, k);
    put(pinRow, kept.held[ROW]);
    put(pinColumn, kept.held[COLUMN]);
    put(cell, kept.opened && kept.opened[ROW] === kept.held[ROW] ? kept.opened[COLUMN] : -1);
    cell.style.setProperty("--row", kept.held[ROW]);
    left.querySelectorAll(".on").forEach((e) => e.classList.remove("on"));
    top.querySelectorAll(".on").forEach((e) => e.classList.remove("on"));
    for (const at of [q, kept.held[ROW]]) left.children[at]?.classList.add("on");
    for (const at of [k, kept.held[COLUMN]]) top.children[at]?.classList.add("on");
    if (kept.across) kept.tint(...inSight(kept));
    else kept.tint(q >= 0 ? q : kept.held[ROW]);
  };
  const { low, top: high } = legendText(header.scale, header.log, header.scale === "head" ? kept.peak.toFixed(3) : undefined);
  const foot = make("div", "foot");
  foot.append(fit, named, ...(kept.permitted ? [hatched()] : []), legend(kept.words, low, high));
  return [scroll, foot];
}

// Beside each row what of it is hidden: a bar and a number, right of the cells and apart from them.
function hiddenStrip(kept, frame) {
  frame.classList.add("with-hidden");
  const top = make("div", "hidden-top", "hidden");
  const strip = make("div", "hidden-side");
  for (const value of kept.hidden) {
    const row = make("span", "", share(value));
    row.style.setProperty("--share", value);
    strip.append(row);
  }
  top.setAttribute("aria-hidden", "true");
  strip.setAttribute("aria-hidden", "true");
  frame.children[1].after(top);
  frame.append(strip);
  return strip;
}

function hatched() {
  const box = make("span", "hatched");
  box.append(make("i"), "not allowed");
  return box;
}

// Scroll the cell that is looked at into view, clear of the labels that stay in place.
function bring(scroll, area, kept) {
  const [q, k] = kept.over;
  const [top, left] = [q * kept.cell, k * kept.cell];
  const [height, width] = [scroll.clientHeight - area.offsetTop, scroll.clientWidth - area.offsetLeft];
  if (top < scroll.scrollTop) scroll.scrollTop = top;
  if (top + kept.cell > scroll.scrollTop + height) scroll.scrollTop = top + kept.cell - height;
  if (left < scroll.scrollLeft) scroll.scrollLeft = left;
  if (left + kept.cell > scroll.scrollLeft + width) scroll.scrollLeft = left + kept.cell - width;
}

// ---- lines --------------------------------------------------------------------------------------------------------

function arcs(kept) {
  const { header, n } = kept;
  const rows = header.queries.length;
  const scroll = make("div", "scroll");
  const box = make("div", "lines");
  const canvas = make("canvas");
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Attention of ${header.title} as lines from ${axisNames(kept)[ROW]} tokens, left, to ${axisNames(kept)[COLUMN]} tokens, right.`);
  const column = (className, list, axis) => {
    const side = make("div", className);
    list.forEach((label, at) => {
      const token = make("span", "", label);
      token.dir = "auto";
      token.onmouseenter = () => look(kept, axis === ROW ? [at, -1] : [-1, at]);
      token.onmouseleave = () => look(kept, null);
      token.onclick = () => hold(kept, axis, at);
      if (axis === ROW && kept.hidden) token.prepend(make("small", "", `${share(kept.hidden[at])} hidden `));
      side.append(token);
    });
    return side;
  };
  const left = column("side queries", header.queries, ROW);
  const right = column("side keys", header.keys, COLUMN);
  box.append(left, canvas, right);
  scroll.append(box);
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Lines. They scroll where they are longer than the frame.");
  scroll.dataset.focus = "lines";
  // More lines than this are one block of ink: of all of them only the strongest are drawn. Those of one token are always all drawn.
  const byWeight = Float32Array.from(kept.weight).sort();
  const faintest = Math.max(FAINTEST_LINE, byWeight[Math.max(0, byWeight.length - MOST_LINES)]);
  const ink = getComputedStyle(kept.root).getPropertyValue("--st-primary-color");
  const pitch = Math.max(18, Math.min(30, 480 / Math.max(rows, n)));
  box.style.setProperty("--pitch", `${pitch}px`);
  const paint = () => {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, pitch * Math.max(rows, n)];
    canvas.style.height = `${height}px`;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.strokeStyle = ink;
    const [q0, k0] = kept.over || [-1, -1];
    const [heldRow, heldColumn] = kept.held;
    const least = Math.max(q0, k0, ...kept.held) >= 0 ? FAINTEST_LINE : faintest;
    for (let q = 0; q < rows; q++) {
      for (let k = 0; k < n; k++) {
        if (q0 >= 0 ? q !== q0 : k0 >= 0 ? k !== k0 : Math.max(...kept.held) >= 0 && q !== heldRow && k !== heldColumn) continue;
        const weight = kept.weight[q * n + k];
        if (weight < least) continue;
        context.globalAlpha = Math.min(1, 0.12 + weight * 0.88);
        context.lineWidth = 0.75 + weight * 4;
        context.beginPath();
        context.moveTo(0, (q + 0.5) * pitch);
        context.bezierCurveTo(width * 0.4, (q + 0.5) * pitch, width * 0.6, (k + 0.5) * pitch, width, (k + 0.5) * pitch);
        context.stroke();
      }
    }
  };
  kept.show = () => {
    const [q0, k0] = kept.over || [-1, -1];
    const query = q0 >= 0 ? q0 : k0 >= 0 ? -1 : kept.held[ROW];
    const key = k0 >= 0 ? k0 : q0 >= 0 ? -1 : kept.held[COLUMN];
    [...left.children].forEach((e, at) => e.classList.toggle("on", at === query));
    [...right.children].forEach((e, at) => e.classList.toggle("on", at === key));
    kept.tint(query, kept.across ? key : -1);
    paint();
  };
  kept.observer = new ResizeObserver(paint);
  kept.observer.observe(scroll);
  return [scroll, make("p", "note", `Width and darkness: the weight. Weights under ${faintest.toFixed(2)} are not drawn${faintest > FAINTEST_LINE ? `, of a chosen token’s those under ${FAINTEST_LINE}` : ""}.`)];
}

// Beside the table and the zoom view only the sentence stays.
function bare(kept) {
  kept.show = () => kept.tint(...(kept.across ? inSight(kept) : [kept.over && kept.over[ROW] >= 0 ? kept.over[ROW] : kept.held[ROW]]));
  return [];
}

// ---- evidence -----------------------------------------------------------------------------------------------------

function evidence(kept) {
  const { header, n } = kept;
  const box = make("p", "evidence");
  if (!header.evidence.length) return box;
  box.append("Strongest: ");
  for (const [q, k] of header.evidence) {
    const cell = make("button", "small");
    cell.dataset.focus = `evidence ${q} ${k}`;
    cell.append(name(header.queries[q]), kept.across ? " looks at " : " → ", name(header.keys[k]), ` ${kept.weight[q * n + k].toFixed(2)}`);
    cell.onclick = () => open(kept, q, k);
    cell.onmouseenter = cell.onfocus = () => look(kept, [q, k]);
    cell.onmouseleave = cell.onblur = () => look(kept, null);
    box.append(cell);
  }
  return box;
}

// ---- downloads ----------------------------------------------------------------------------------------------------

function exports(kept) {
  const box = make("div", "exports");
  for (const kind of ["PNG", "SVG"]) {
    const button = make("button", "small", `Matrix as ${kind}`);
    button.dataset.focus = kind;
    button.onclick = async () => (kind === "SVG" ? save(kept, drawing(kept), "svg", "image/svg+xml") : save(kept, await pixels(drawing(kept)), "png"));
    box.append(button);
  }
  return box;
}

// A line in pieces of at most so many characters, broken at spaces where there are any.
function wrapped(line, most) {
  const lines = [""];
  for (const word of line.split(" ").flatMap((w) => ([...w].length > most ? [...w].join("").match(new RegExp(`.{1,${most}}`, "gu")) : [w]))) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if ([...longer].length > most) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

// The matrix with its labels, scale and caption, on its own: what it says does not depend on the page around it.
function drawing(kept) {
  const { header, n } = kept;
  const rows = header.queries.length;
  const [down, right] = axisNames(kept);
  const marks = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  const escape = (text) => [...text].map((c) => marks[c] || (/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u.test(c) ? "\ufffd" : c)).join("");
  const cut = (text, most) => ([...text].length > most ? [...text].slice(0, most - 1).join("") + "…" : text);
  const cell = Math.max(12, Math.min(36, 560 / n));
  const beside = kept.hidden ? 76 : 0;
  const width = Math.max(120 + n * cell + 24 + beside, 640);
  const most = Math.floor((width - 32) / 6.6);
  const longest = kept.across ? 5 : 9; // lines of the picture for each line of the caption: between two texts both have to fit
  const lines = header.caption.flatMap((line) => {
    const all = wrapped(line, most);
    return all.length > longest ? [...all.slice(0, longest - 1), cut(all[longest - 1], most - 2) + " …"] : all;
  });
  const [left, top] = [120, 120 + lines.length * 17];
  const height = top + rows * cell + 70;
  const style = getComputedStyle(kept.root);
  const ink = style.getPropertyValue("--st-text-color");
  const paper = style.getPropertyValue("--st-background-color");
  const tile = document.createElement("canvas");
  tile.width = n * 8;
  tile.height = rows * 8;
  const context = tile.getContext("2d");
  for (let q = 0; q < rows; q++)
    for (let k = 0; k < n; k++) {
      if (!free(kept, q, k)) continue;
      context.fillStyle = css(colour(kept, q, k));
      context.fillRect(k * 8, q * 8, 8, 8);
    }
  const font = Math.min(13, cell);
  const text = (x, y, size, content, more = "") => `<text x="${x}" y="${y}" font-size="${size}" ${more}>${escape(content)}</text>`;
  const { low, top: high } = legendText(header.scale, header.log, header.scale === "head" ? kept.peak.toFixed(3) : undefined);
  const stops = [0, 64, 128, 192, 255].map((i) => `<stop offset="${i / 255}" stop-color="${css(kept.words[i])}"/>`).join("");
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" fill="${ink}">`,
    `<rect width="100%" height="100%" fill="${paper}"/><defs><linearGradient id="scale">${stops}</linearGradient>`,
    `<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V6" stroke="${ink}" stroke-opacity="0.3"/></pattern></defs>`,
    text(16, 26, 16, header.title, 'font-weight="600"'),
    ...lines.map((line, at) => text(16, 46 + at * 17, 12, line)),
    ...header.keys.map((label, k) => text(0, 0, font, cut(label, 9), `transform="translate(${left + (k + 0.5) * cell + font / 3} ${top - 6}) rotate(-90)"`)),
    ...header.queries.map((label, q) => text(left - 6, top + (q + 0.5) * cell + font / 3, font, cut(label, 14), 'text-anchor="end"')),
    kept.permitted ? `<rect x="${left}" y="${top}" width="${n * cell}" height="${rows * cell}" fill="url(#hatch)"/>` : "",
    `<image x="${left}" y="${top}" width="${n * cell}" height="${rows * cell}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${tile.toDataURL()}"/>`,
    ...(kept.hidden ? [text(left + n * cell + 16, top - 8, 12, "hidden")] : []),
    ...[...(kept.hidden || [])].flatMap((value, q) => [
      `<rect x="${left + n * cell + 16}" y="${top + q * cell + cell * 0.15}" width="${24 * value}" height="${cell * 0.7}" fill-opacity="0.35"/>`,
      text(left + n * cell + 44, top + (q + 0.5) * cell + font / 3, font, share(value)),
    ]),
    text(16, top - 8, 11, `${down} ↓  ${right} →`),
    text(left + 76, height - 24, 12, low, 'text-anchor="end"'),
    `<rect x="${left + 84}" y="${height - 35}" width="120" height="12" fill="url(#scale)" stroke="${ink}" stroke-opacity="0.4"/>`,
    text(left + 212, height - 24, 12, high),
    "</svg>",
  ].join("\n");
}
