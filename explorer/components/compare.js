// Both sides' heads, and their difference, as thumbnails under real buttons; and the line that names the open pair.

const KEPT = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = {}));
  kept.send = setTriggerValue;
  dress(parentElement);
  const root = (kept.root = parentElement.querySelector(".compare"));
  const before = kept.header?.token;
  if (kept.data !== data) {
    kept.data = data;
    Object.assign(kept, decode(data));
  }
  const style = getComputedStyle(root);
  const theme = ["--st-chart-sequential-colors", "--st-background-color"].map((each) => style.getPropertyValue(each)).join();
  const same = before === kept.header.token && kept.theme === theme;
  kept.theme = theme;
  kept.words = { one: colours(root), two: twoSided(style) };
  if (kept.header.kind === "pair") pair(kept);
  else {
    if (!same) grids(kept);
    kept.deaf?.();
    kept.deaf = listen(() => kept.mark());
    kept.mark();
  }
  root.dataset.token = kept.header.token;
  return () => setTimeout(() => root.isConnected || end(kept));
}

function end(kept) {
  kept.observer?.disconnect();
  kept.deaf?.();
}

function pair({ root, header }) {
  const title = make("h3", "", header.title);
  const words = make("p", "words", header.words);
  for (const each of [title, words]) each.dir = "auto";
  root.replaceChildren(title, words);
  bus.tell({ compare: { picture: header.picture, a: header.a, b: header.b }, ...(header.map ? { matrix: header.map } : {}) });
}

// Blue below 0, the page's own colour at 0, orange above: the theme's two first categorical colours.
function twoSided(style) {
  const hex = (colour) => colour.trim().match(/[0-9a-f]{2}/gi).map((two) => parseInt(two, 16));
  const [one, other] = style.getPropertyValue("--st-chart-categorical-colors").split(",").map(hex);
  const middle = hex(style.getPropertyValue("--st-background-color"));
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const far = Math.abs(i - 128) / 127;
    const [r, g, b] = middle.map((c, k) => Math.round(Math.max(0, Math.min(255, c + ((i > 128 ? one : other)[k] - c) * far))));
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
}

// A byte b stands for (b / 255)², and of a difference for ± top x ((b - 128) / 127)², as compare.py has it.
const weightOf = (byte) => (byte / 255) ** 2;
const changeOf = (byte, top) => Math.sign(byte - 128) * top * ((byte - 128) / 127) ** 2;
const signed = (value) => `${value > 0 ? "+" : ""}${value.toFixed(2)}`.replace("-", "−").replace(/^[+−]0\.00$/, "0.00");

function grids(kept) {
  const { header, root } = kept;
  const focus = root.getRootNode().activeElement?.dataset?.place;
  const boards = make("div", "boards");
  const status = make("p", "status");
  status.setAttribute("role", "status");
  kept.rest = () => status.replaceChildren("Point at a cell to read it; choose a head to open it.");
  kept.status = status;
  const note = make("p", "note", `Rows look, columns are looked at, first token top left.${header.panels.length > 2 ? " In B − A orange gained weight, blue lost it; the number is the distance of the two heads, 0 to 1." : ""}${header.fold > 1 ? ` A cell is the largest of ${header.fold} × ${header.fold}.` : ""}`);
  kept.boards = header.panels.map((panel) => board(kept, panel));
  boards.append(...kept.boards.map((each) => each.box));
  root.replaceChildren(boards, status, note);
  kept.rest();
  kept.mark = () => {
    const now = bus.now.compare;
    const ours = now?.picture === header.token ? now : {};
    for (const each of kept.boards) each.mark(each.panel.key === "b" ? ours.b : each.panel.key === "a" || String(ours.a) === String(ours.b) ? ours.a : undefined);
  };
  kept.observer?.disconnect();
  let width = 0;
  const paintAll = () => {
    width = boards.clientWidth;
    for (const each of kept.boards) each.paint();
  };
  paintAll();
  kept.observer = new ResizeObserver(() => boards.clientWidth !== width && paintAll());
  kept.observer.observe(boards);
  if (focus) root.querySelector(`[data-place="${focus}"]`)?.focus({ preventScroll: true });
}

function board(kept, panel) {
  const { header } = kept;
  const change = panel.key === "change";
  const box = make("section", "board");
  const title = make("h4", "", panel.title);
  title.title = panel.title;
  title.dir = "auto";
  const grid = make("div", "grid");
  grid.setAttribute("role", "group");
  grid.setAttribute("aria-label", `${panel.title}: layers down, heads across. Arrow keys move, Enter opens.`);
  grid.style.setProperty("--heads", panel.n_head);
  grid.style.setProperty("--shape", Math.max(0.5, Math.min(2, header.n_column / header.n_row)));
  grid.classList.toggle("many", panel.n_head > 8);
  grid.classList.toggle("spaced", Boolean(kept.blocks.distance));
  const canvas = make("canvas");
  canvas.setAttribute("aria-hidden", "true");
  grid.append(canvas, make("span", "corner"));
  for (let h = 0; h < panel.n_head; h++) grid.append(make("span", "axis", `H${h}`));
  const cells = [];
  for (let at = 0; at < panel.n_layer * panel.n_head; at++) {
    const [layer, head] = [Math.floor(at / panel.n_head), at % panel.n_head];
    if (head === 0) grid.append(make("span", "axis layer", `L${layer}`));
    const cell = make("button", "cell");
    const far = change ? kept.blocks.distance[at] : undefined;
    cell.dataset.place = `${panel.key} ${at}`;
    cell.tabIndex = at ? -1 : 0;
    cell.setAttribute("aria-label", `${panel.title}, layer ${layer}, head ${head}${far === undefined ? "" : `: distance ${far.toFixed(2)}`}`);
    cell.append(make("span", "thumb"));
    if (kept.blocks.distance) cell.append(make("span", "far", change ? far.toFixed(2).replace(/^0/, "") : "\u00a0")); // an empty line keeps the grids' rows in line
    cell.onclick = () => kept.send("head", [panel.key, layer, head]);
    cell.onfocus = () => {
      cells.forEach((other) => (other.tabIndex = other === cell ? 0 : -1));
      kept.status.replaceChildren(cell.getAttribute("aria-label"));
    };
    cell.onblur = kept.rest;
    cell.onkeydown = (event) => step(event, cells, at, panel.n_head);
    cell.onmousemove = (event) => hover(kept, panel, at, cell, event);
    cell.onmouseleave = kept.rest;
    grid.append(cell);
    cells.push(cell);
  }
  const ends = change ? [signed(-panel.top), signed(panel.top)] : [header.log ? "0.001" : "0", "1"];
  box.append(title, grid, legend(kept.words[change ? "two" : "one"], ...ends));
  const mark = (head) => {
    const on = head ? head[0] * panel.n_head + head[1] : -1;
    cells.forEach((cell, at) => {
      cell.setAttribute("aria-pressed", at === on);
      if (on >= 0) cell.tabIndex = at === on ? 0 : -1;
    });
  };
  return { box, panel, mark, paint: () => paint(kept, panel, grid, canvas, cells) };
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

function hover(kept, panel, at, cell, event) {
  const { header, blocks, status } = kept;
  const { n_row: rows, n_column: columns, fold } = header;
  const thumb = cell.firstChild.getBoundingClientRect();
  const c = Math.floor(((event.clientX - thumb.left) / thumb.width) * columns);
  const r = Math.floor(((event.clientY - thumb.top) / thumb.height) * rows);
  if (c < 0 || r < 0 || c >= columns || r >= rows) return status.replaceChildren(cell.getAttribute("aria-label"));
  const label = (list, k) => {
    const [first, last] = [k * fold, Math.min(k * fold + fold, list.length) - 1];
    const name = make("b", "", first === last ? list[first] : `${list[first]} … ${list[last]}`);
    name.dir = "auto";
    return name;
  };
  const place = at * rows * columns + r * columns + c;
  const said = header.panels.length > 2 || panel.key === "change" ? header.panels : [panel];
  const values = said.map((each) => `${{ a: "A", b: "B", change: "B − A" }[each.key]} ${each.key === "change" ? signed(changeOf(blocks.change[place], each.top)) : weightOf(blocks[each.key][place]).toFixed(2)}`);
  status.replaceChildren(`L${Math.floor(at / panel.n_head)} H${at % panel.n_head}  `, label(header.rows, r), " → ", label(header.columns, c), `  ${fold > 1 ? "largest: " : ""}${values.join(" · ")}`);
}

function paint(kept, panel, grid, canvas, cells) {
  const { header, blocks, words } = kept;
  const { n_row: rows, n_column: columns } = header;
  const change = panel.key === "change";
  const table = Uint32Array.from({ length: 256 }, (_, byte) => {
    if (!change) return words.one[shade(weightOf(byte), 1, header.log)];
    const share = (byte - 128) / 127;
    return words.two[128 + Math.round(127 * Math.sign(share) * share ** 2)];
  });
  const ratio = window.devicePixelRatio || 1;
  const frame = grid.getBoundingClientRect();
  canvas.width = Math.round(frame.width * ratio);
  canvas.height = Math.round(frame.height * ratio);
  const context = canvas.getContext("2d");
  // Where the screen has fewer pixels than cells, cells share one as the one that is furthest from nothing.
  const { clientWidth, clientHeight } = cells[0].firstChild;
  if (!clientWidth || !clientHeight) return; // not on screen; the observer paints when it is
  const fold = Math.max(1, Math.ceil(columns / (clientWidth * ratio)), Math.ceil(rows / (clientHeight * ratio)));
  const [few, wide] = [Math.ceil(rows / fold), Math.ceil(columns / fold)];
  const tile = new OffscreenCanvas(wide, few);
  const onTile = tile.getContext("2d");
  const image = new ImageData(wide, few);
  const pixels = new Uint32Array(image.data.buffer);
  const bytes = blocks[panel.key];
  const strength = change ? (byte) => Math.abs(byte - 128) : (byte) => byte;
  const packed = new Uint8Array(few * wide);
  context.imageSmoothingEnabled = false;
  cells.forEach((cell, at) => {
    packed.fill(change ? 128 : 0);
    const from = at * rows * columns;
    for (let r = 0; r < rows; r++)
      for (let c = 0; c < columns; c++) {
        const byte = bytes[from + r * columns + c];
        const to = Math.floor(r / fold) * wide + Math.floor(c / fold);
        if (strength(byte) > strength(packed[to])) packed[to] = byte;
      }
    for (let i = 0; i < packed.length; i++) pixels[i] = table[packed[i]];
    onTile.putImageData(image, 0, 0);
    const thumb = cell.firstChild.getBoundingClientRect();
    context.drawImage(tile, (thumb.left - frame.left + 1) * ratio, (thumb.top - frame.top + 1) * ratio, (thumb.width - 2) * ratio, (thumb.height - 2) * ratio);
  });
  canvas.dataset.painted = header.token;
}
