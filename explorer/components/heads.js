// All heads: a canvas of thumbnails under a grid of real buttons, and the same heads as a sortable list.

const KEPT = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = { filter: null, view: "grid", sort: ["layer", 1], focus: 0 }));
  kept.send = setTriggerValue;
  if (kept.data !== data) {
    kept.data = data;
    Object.assign(kept, decode(data));
    kept.permitted = permitted(kept.blocks, kept.header.tokens.length * (kept.header.keys || kept.header.tokens).length);
    if (!kept.header.heads.some((head) => head.name === kept.filter)) kept.filter = null;
  }
  dress(parentElement);
  const root = parentElement.querySelector(".heads");
  kept.words = colours(root);
  draw(root, kept);
  kept.deaf?.();
  const [deaf, mine] = [(kept.deaf = listen(() => kept.mark())), kept.observer];
  return () => {
    deaf();
    if (mine) mine.disconnect();
  };
}

function draw(root, kept) {
  const { header } = kept;
  if (kept.observer) kept.observer.disconnect();
  root.replaceChildren();
  root.append(bar(root, kept));
  if (kept.view === "grid") grid(root, kept);
  else list(root, kept);
  root.dataset.token = header.token;
}

function bar(root, kept) {
  const { header } = kept;
  const box = make("div", "bar");
  const chips = make("div", "chips");
  chips.setAttribute("role", "group");
  chips.setAttribute("aria-label", "Show only heads of one pattern");
  const counts = new Map();
  for (const head of header.heads) counts.set(head.name, (counts.get(head.name) || 0) + 1);
  for (const name of header.names.filter((n) => counts.has(n))) {
    const chip = make("button", "chip", `${name} `);
    chip.append(make("b", "", counts.get(name)));
    chip.title = header.meaning[name];
    chip.setAttribute("aria-pressed", kept.filter === name);
    chip.onclick = () => {
      kept.filter = kept.filter === name ? null : name;
      draw(root, kept);
      [...root.querySelectorAll(".chip")].find((c) => c.textContent.startsWith(name + " ")).focus();
    };
    chips.append(chip);
  }
  const toggle = make("div", "toggle");
  toggle.setAttribute("role", "group");
  toggle.setAttribute("aria-label", "Heads as");
  for (const [view, label] of [["grid", "Grid"], ["list", "List"]]) {
    const button = make("button", "", label);
    button.setAttribute("aria-pressed", kept.view === view);
    button.onclick = () => {
      kept.view = view;
      draw(root, kept);
      root.querySelector(`.toggle button[aria-pressed=true]`).focus();
    };
    toggle.append(button);
  }
  box.append(chips, toggle);
  return box;
}

const shown = (kept, head) => !kept.filter || head.name === kept.filter;
const number = (value) => (value === null ? "–" : value.toFixed(2));

function choose(kept, head) {
  kept.send("head", `${head.layer}.${head.head}`);
  bus.tell({ layer: head.layer, head: head.head, chosen: true });
}

function spoken(head) {
  return `Layer ${head.layer}, head ${head.head}: ${head.name} ${figure(head)}`.trim();
}

// What a head's name is seen by, said as it is written.
function figure(head) {
  const value = head.name === "broad" ? head.entropy : head.score;
  return value === null ? "" : number(value).replace("0.", ".");
}

// ---- grid ---------------------------------------------------------------------------------------------------------

function grid(root, kept) {
  const { header } = kept;
  const box = make("div", "grid");
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "All heads, layers down, heads across. Arrow keys move, Enter opens.");
  box.style.setProperty("--heads", header.n_head);
  // Thumbnails of a target and a source are as wide and high as these are long, up to a point.
  box.style.setProperty("--shape", Math.max(0.5, Math.min(2, header.columns / header.rows)));
  box.classList.toggle("many", header.n_head > 8);
  const canvas = make("canvas");
  canvas.setAttribute("aria-hidden", "true");
  box.append(canvas, make("span", "corner"));
  for (let h = 0; h < header.n_head; h++) box.append(make("span", "axis", `H${h}`));
  const cells = [];
  header.heads.forEach((head, at) => {
    if (head.head === 0) box.append(make("span", "axis layer", `L${head.layer}`));
    const cell = make("button", "cell");
    cell.tabIndex = -1;
    cell.setAttribute("aria-label", spoken(head));
    cell.append(make("span", "thumb"), caption(head));
    cell.classList.toggle("dim", !shown(kept, head));
    cell.onclick = () => choose(kept, head);
    cell.onfocus = () => {
      kept.focus = at;
      cells.forEach((other, o) => (other.tabIndex = o === at ? 0 : -1));
      say(status, [spoken(head)]);
    };
    cell.onkeydown = (event) => step(event, cells, at, header.n_head);
    cell.onmousemove = (event) => hover(event, cell, kept, at, status);
    cell.onmouseleave = () => say(status, []);
    box.append(cell);
    cells.push(cell);
  });
  const status = make("div", "status");
  status.setAttribute("role", "status");
  const foot = make("div", "foot");
  const { low, top } = legendText(header.scale, header.log);
  foot.append(status, legend(kept.words, low, top));
  const note = make("p", "note");
  root.append(box, foot, note);
  kept.mark = () => {
    const { layer, head } = bus.now;
    cells.forEach((cell, at) => {
      const on = header.heads[at].layer === layer && header.heads[at].head === head;
      cell.setAttribute("aria-pressed", on);
      if (on) kept.focus = at;
    });
    cells.forEach((cell, at) => (cell.tabIndex = at === kept.focus ? 0 : -1));
  };
  kept.mark();
  const painted = () => {
    const fold = header.fold * paint(box, canvas, cells, kept);
    note.textContent = header.note + (fold > 1 ? ` A pixel is the largest of ${fold} × ${fold} cells.` : "");
  };
  painted();
  let width = box.clientWidth;
  kept.observer = new ResizeObserver(() => {
    if (box.clientWidth !== width) {
      width = box.clientWidth;
      painted();
    }
  });
  kept.observer.observe(box);
}

function caption(head) {
  const line = make("span", "caption");
  line.append(make("span", "name", ["no clear pattern", "text too short"].includes(head.name) ? "–" : head.name));
  if (figure(head)) line.append(make("span", "score", figure(head)));
  return line;
}

function step(event, cells, at, columns) {
  if (!plainKey(event)) return;
  const move = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
  const target = { Home: 0, End: cells.length - 1 }[event.key] ?? at + (move ?? NaN);
  if (cells[target]) {
    event.preventDefault();
    cells[target].focus();
  }
}

// A byte b stands for peak x (b / 255)^2, as wire.thumbnails says.
const weightAt = (kept, at, cell) => kept.blocks.peak[at] * (kept.blocks.cells[at * kept.header.rows * kept.header.columns + cell] / 255) ** 2;

// Draws all thumbnails; returns how many cells each way share a pixel where the screen has too few. They share it as their maximum: a
// browser that shrinks a picture drops or blurs the thin lines that matter.
function paint(box, canvas, cells, kept) {
  const { header, words } = kept;
  const { scale, log } = header;
  const ratio = window.devicePixelRatio || 1;
  const frame = box.getBoundingClientRect();
  canvas.width = Math.round(frame.width * ratio);
  canvas.height = Math.round(frame.height * ratio);
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  const { clientWidth, clientHeight } = cells[0].firstChild;
  const fold = Math.max(1, Math.ceil(header.columns / (clientWidth * ratio)), Math.ceil(header.rows / (clientHeight * ratio)));
  const { rows, columns, bytes } = folded(kept, fold);
  const tile = new OffscreenCanvas(columns, rows);
  const onTile = tile.getContext("2d");
  const image = new ImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  const size = rows * columns;
  cells.forEach((cell, at) => {
    const peak = kept.blocks.peak[at];
    const table = new Uint32Array(256);
    const fill = (full) => {
      for (let b = 0; b < 256; b++) table[b] = words[shade(peak * (b / 255) ** 2, full, log)];
    };
    if (scale !== "row") fill(scale === "head" ? peak : 1);
    for (let r = 0; r < rows; r++) {
      const from = at * size + r * columns;
      if (scale === "row") {
        let most = 0;
        for (let c = 0; c < columns; c++) most = Math.max(most, bytes[from + c]);
        fill(peak * (most / 255) ** 2);
      }
      for (let c = 0; c < columns; c++) pixels[r * columns + c] = table[bytes[from + c]];
    }
    onTile.putImageData(image, 0, 0);
    const thumb = cell.firstChild.getBoundingClientRect();
    const [left, top] = [thumb.left - frame.left + 1, thumb.top - frame.top + 1]; // inside the border
    context.globalAlpha = cell.classList.contains("dim") ? 0.18 : 1;
    context.drawImage(tile, left * ratio, top * ratio, (thumb.width - 2) * ratio, (thumb.height - 2) * ratio);
  });
  canvas.dataset.painted = header.token;
  return fold;
}

function folded({ header, blocks }, fold) {
  const { rows, columns } = header;
  if (fold === 1) return { rows, columns, bytes: blocks.cells };
  const [fewRows, fewColumns] = [Math.ceil(rows / fold), Math.ceil(columns / fold)];
  const bytes = new Uint8Array(header.heads.length * fewRows * fewColumns);
  let from = 0;
  for (let at = 0; at < header.heads.length; at++)
    for (let r = 0; r < rows; r++)
      for (let c = 0; c < columns; c++, from++) {
        const to = (at * fewRows + Math.floor(r / fold)) * fewColumns + Math.floor(c / fold);
        if (blocks.cells[from] > bytes[to]) bytes[to] = blocks.cells[from];
      }
  return { rows: fewRows, columns: fewColumns, bytes };
}

function hover(event, cell, kept, at, status) {
  const { header } = kept;
  const { rows, columns, fold, tokens, keys } = header;
  const thumb = cell.firstChild.getBoundingClientRect();
  const c = Math.floor(((event.clientX - thumb.left) / thumb.width) * columns);
  const r = Math.floor(((event.clientY - thumb.top) / thumb.height) * rows);
  const head = header.heads[at];
  if (c < 0 || r < 0 || c >= columns || r >= rows) return say(status, [spoken(head)]);
  const to = keys || tokens;
  const name = (list, k) => {
    const [first, last] = [k * fold, Math.min(k * fold + fold, list.length) - 1];
    return first === last ? list[first] : `${list[first]} … ${list[last]}`;
  };
  const most = fold > 1 ? "largest about " : "";
  const value = free(kept, r, c) ? most + weightAt(kept, at, r * columns + c).toFixed(3) : notAllowed(r, c);
  say(status, [`L${head.layer} H${head.head}  `, ["b", name(tokens, r)], " looks at ", ["b", name(to, c)], `  ${value}`]);
}

// True where any of the cells behind one of a thumbnail's is allowed.
function free({ header, permitted }, r, c) {
  if (!permitted) return true;
  const { fold, tokens, keys } = header;
  const n = (keys || tokens).length;
  for (let q = r * fold; q < Math.min(r * fold + fold, tokens.length); q++)
    for (let k = c * fold; k < Math.min(c * fold + fold, n); k++) if (permitted[q * n + k]) return true;
  return false;
}

function say(status, parts) {
  status.replaceChildren(...parts.map((part) => {
    if (typeof part === "string") return document.createTextNode(part);
    const token = make(part[0], "", part[1]);
    token.dir = "auto";
    return token;
  }));
}

// ---- list ---------------------------------------------------------------------------------------------------------

// Key, label, what it sorts by, what it shows, and which way a first press sorts: 1 up, -1 down. Heads without a value come last.
const COLUMNS = [
  ["layer", "Head", (h) => h.layer * 1000 + h.head, (h) => `L${h.layer} H${h.head}`, 1],
  ["name", "Pattern", (h) => h.name, (h) => h.name, 1],
  ["score", "Score", (h) => h.score, (h) => number(h.score), -1],
  ["chance", "Chance", (h) => h.chance, (h) => number(h.chance), 1],
  ["entropy", "Entropy", (h) => h.entropy, (h) => number(h.entropy), 1],
  ["distance", "Distance", (h) => h.distance, (h) => (h.distance === null ? "–" : h.distance.toFixed(1)), 1],
  ["sink", "Sink", (h) => h.sink, (h) => number(h.sink), -1],
];

function list(root, kept) {
  const { header } = kept;
  const table = make("table");
  const top = table.createTHead().insertRow();
  const columns = COLUMNS.filter(([key]) => key !== "distance" || header.columns_mean.distance);
  for (const [key, label, , , first] of columns) {
    const cell = make("th");
    cell.scope = "col";
    const [by, way] = kept.sort;
    if (by === key) cell.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
    const button = make("button", "", label + (by === key ? (way > 0 ? " ↑" : " ↓") : ""));
    button.title = header.columns_mean[key] || "";
    button.onclick = () => {
      kept.sort = [key, by === key ? -way : first];
      draw(root, kept);
      root.querySelectorAll("th button")[columns.findIndex((c) => c[0] === key)].focus();
    };
    cell.append(button);
    top.append(cell);
  }
  const [by, way] = kept.sort;
  const value = COLUMNS.find((column) => column[0] === by)[2];
  const sorted = header.heads.filter((head) => shown(kept, head));
  const compare = (a, b) => (a === b ? 0 : a === null ? 1 : b === null ? -1 : way * (a < b ? -1 : 1));
  sorted.sort((a, b) => compare(value(a), value(b)));
  const body = table.createTBody();
  for (const head of sorted) {
    const row = body.insertRow();
    row.onclick = () => choose(kept, head);
    columns.forEach(([key, , , text]) => {
      const cell = row.insertCell();
      if (key !== "layer") cell.textContent = text(head);
      else {
        const button = make("button", "open", text(head));
        button.setAttribute("aria-label", `Open ${spoken(head)}`);
        cell.append(button);
      }
    });
    row.head = head;
  }
  const scroll = make("div", "scroll");
  scroll.append(table);
  root.append(scroll, make("p", "note", header.list_note));
  kept.mark = () => {
    const { layer, head } = bus.now;
    for (const row of body.rows) row.classList.toggle("on", row.head.layer === layer && row.head.head === head);
  };
  kept.mark();
}
