// Heads to be switched, all heads before and after, and one head's matrix before, after and the difference.

const KEPT = new WeakMap();
const LARGEST = 460; // pixels of a matrix's side
const MARK = { "": "", zero: "×", mean: "μ", even: "≡", patch: "⇄" };
const PARTS = ["before", "after", "difference"];
const TITLES = { before: "Before", after: "After", difference: "After − before" };

export default function ({ data, parentElement, setTriggerValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = { at: 0 }));
  kept.send = setTriggerValue;
  dress(parentElement);
  const root = (kept.root = parentElement.querySelector(".switches"));
  if (kept.data !== data) {
    kept.data = data;
    Object.assign(kept, decode(data));
  }
  const style = getComputedStyle(root);
  kept.ink = style.getPropertyValue("--st-text-color").trim();
  kept.paper = style.getPropertyValue("--st-background-color").trim();
  kept.words = colours(root);
  kept.signed = twoSided(style);
  kept.observer?.disconnect();
  kept.deaf?.();
  const held = root.contains(root.getRootNode().activeElement);
  ({ board, pairs, trio })[kept.header.kind](kept);
  if (held) root.querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
  root.dataset.token = kept.header.token;
  const [mine, deaf] = [kept.observer, kept.deaf];
  return () => {
    mine?.disconnect();
    deaf?.();
  };
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

// One button of many is in the tab order; arrow keys go from one to the next.
function rove(kept, cells, columns, onFocus) {
  const set = (at) => cells.forEach((cell, i) => (cell.tabIndex = i === at ? 0 : -1));
  cells.forEach((cell, at) => {
    cell.addEventListener("focus", () => {
      kept.at = at;
      set(at);
      onFocus?.(at);
    });
    cell.addEventListener("keydown", (event) => {
      if (!plainKey(event)) return;
      const move = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
      const target = { Home: 0, End: cells.length - 1 }[event.key] ?? at + (move ?? NaN);
      if (!cells[target]) return;
      event.preventDefault();
      cells[target].focus();
    });
  });
  set(Math.min(kept.at, cells.length - 1));
}

function status() {
  const line = make("p", "status");
  line.setAttribute("role", "status");
  return line;
}

// ---- the board ----------------------------------------------------------------------------------------------------

function board(kept) {
  const { root, header } = kept;
  const box = make("div", "board");
  box.style.setProperty("--heads", header.heads);
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", `Heads to switch, layers down. Arrow keys move; Enter makes one ${header.brush}, and again as it was. The first of each row is the whole layer.`);
  const cells = [];
  for (let l = 0; l < header.layers; l++) {
    const all = make("button", "layer", `L${l}`);
    all.setAttribute("aria-label", `All heads of layer ${l}`);
    all.title = `All heads of layer ${l}`;
    all.onclick = () => kept.send("head", `${l}.`);
    cells.push(all);
    for (let h = 0; h < header.heads; h++) {
      const now = header.states[l * header.heads + h];
      const cell = make("button", `one ${now}`, MARK[now] || h);
      cell.setAttribute("aria-pressed", now !== "");
      cell.title = `Layer ${l}, head ${h}: ${header.spoken[now]}`;
      cell.setAttribute("aria-label", cell.title);
      cell.onclick = () => kept.send("head", `${l}.${h}`);
      cells.push(cell);
    }
  }
  box.append(...cells);
  root.replaceChildren(box);
  rove(kept, cells, header.heads + 1);
}

// ---- all heads, twice ---------------------------------------------------------------------------------------------

function pairs(kept) {
  const { root, header } = kept;
  const box = make("div", "pairs");
  box.style.setProperty("--heads", header.heads);
  box.style.setProperty("--shape", Math.max(0.5, Math.min(2, header.columns / header.rows)));
  box.classList.toggle("many", header.heads > 8);
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "All heads before and after, layers down, heads across. Arrow keys move, Enter opens.");
  const canvas = make("canvas");
  canvas.setAttribute("aria-hidden", "true");
  box.append(canvas, make("span"));
  for (let h = 0; h < header.heads; h++) box.append(make("span", "axis", `H${h}`));
  const line = status();
  const cells = [];
  const most = Math.max(...header.distance.map((value) => value ?? 0), 1e-9);
  for (let l = 0; l < header.layers; l++) {
    box.append(make("span", "axis side", `L${l}`));
    for (let h = 0; h < header.heads; h++) {
      const value = header.distance[l * header.heads + h];
      const cell = make("button", "pair");
      const far = value === null ? "no row has a choice" : `moved ${value.toFixed(3)}`;
      cell.setAttribute("aria-label", `Layer ${l}, head ${h}: ${far}`);
      const bar = make("span", "far");
      const fill = make("i");
      fill.style.width = `${(100 * (value ?? 0)) / most}%`;
      bar.append(fill);
      const thumbs = make("span", "thumbs");
      thumbs.append(make("span", "thumb"), make("span", "thumb"));
      cell.append(thumbs, make("span", "number", value === null ? "–" : value.toFixed(2)), bar);
      cell.onclick = () => {
        kept.send("head", `${l}.${h}`);
        bus.tell({ layer: l, head: h, chosen: true });
      };
      cell.onmouseenter = () => (line.textContent = cell.getAttribute("aria-label"));
      cell.onmouseleave = () => (line.textContent = rest);
      box.append(cell);
      cells.push(cell);
    }
  }
  const rest = `Left before, right after, to one colour scale a head. The number is how far its rows moved.${header.fold > 1 ? ` A pixel is the largest of ${header.fold} × ${header.fold} cells.` : ""}`;
  line.textContent = rest;
  root.replaceChildren(box, line);
  rove(kept, cells, header.heads, (at) => (line.textContent = cells[at].getAttribute("aria-label")));
  const mark = ({ layer, head }) => cells.forEach((cell, at) => cell.setAttribute("aria-pressed", at === layer * header.heads + head));
  kept.deaf = listen(mark);
  mark(bus.now);
  const fit = () => thumbnails(kept, box, canvas, cells);
  kept.observer = new ResizeObserver(fit);
  kept.observer.observe(box);
  fit();
}

// A byte b stands for peak x (b / 255)^2, as wire.thumbnails says; both runs are shown to the larger of the two peaks.
function thumbnails(kept, box, canvas, cells) {
  const { header, blocks, words } = kept;
  const ratio = window.devicePixelRatio || 1;
  const frame = box.getBoundingClientRect();
  canvas.width = Math.round(frame.width * ratio);
  canvas.height = Math.round(frame.height * ratio);
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  const size = header.rows * header.columns;
  const tile = new OffscreenCanvas(header.columns, header.rows);
  const image = new ImageData(header.columns, header.rows);
  const pixels = new Uint32Array(image.data.buffer);
  cells.forEach((cell, at) => {
    const full = Math.max(blocks.peak[at], blocks.peaks[at]);
    [["before", blocks.peak[at]], ["after", blocks.peaks[at]]].forEach(([name, peak], turn) => {
      const table = Uint32Array.from({ length: 256 }, (_, b) => words[shade(peak * (b / 255) ** 2, full, false)]);
      for (let i = 0; i < size; i++) pixels[i] = table[blocks[name][at * size + i]];
      tile.getContext("2d").putImageData(image, 0, 0);
      const thumb = cell.firstChild.children[turn].getBoundingClientRect();
      context.drawImage(tile, (thumb.left - frame.left) * ratio, (thumb.top - frame.top) * ratio, thumb.width * ratio, thumb.height * ratio);
    });
  });
  canvas.dataset.painted = header.token;
}

// ---- one head -----------------------------------------------------------------------------------------------------

// The weights as the bytes have them, and the half-width of what is unknown, as wire.fine says.
function unfolded(blocks, name, size) {
  const part = (what) => blocks[`${name}.${what}`];
  if (part("exact")) return { weight: part("exact"), unknown: null };
  const [weight, unknown, floor] = [new Float32Array(size), new Float32Array(size), part("floor")[0]];
  for (let i = 0, low = 0; i < size; i++) {
    const known = part("high")[i] >= floor;
    const code = part("high")[i] * 256 + (known ? part("low")[low++] : 127.5);
    weight[i] = (code / 65535) ** 2;
    unknown[i] = known ? 0 : (2 * code * 128) / 65535 ** 2;
  }
  return { weight, unknown };
}

function trio(kept) {
  const { root, header, blocks } = kept;
  const [m, n] = [header.rows.length, header.keys.length];
  const size = m * n;
  kept.before = unfolded(blocks, "before", size);
  kept.after = unfolded(blocks, "after", size);
  kept.may = { before: permitted({ runs: blocks["before.runs"] }, size), after: permitted({ runs: blocks["after.runs"] }, size) };
  kept.difference = Float32Array.from(kept.before.weight, (w, at) => kept.after.weight[at] - w);
  kept.full = kept.before.weight.reduce((most, w, at) => Math.max(most, w, kept.after.weight[at]), 0);
  kept.far = kept.difference.reduce((most, w) => Math.max(most, Math.abs(w)), 0);
  const line = status();
  const box = make("div", "trio");
  const panels = PARTS.map((name) => panel(kept, name));
  box.append(...panels.map((each) => each.box));
  const rest = "Point at a cell, or use the arrow keys on a matrix, to read it in all three. Rows are queries, columns keys." + (kept.may.before || kept.may.after ? " Hatched: not allowed." : "");
  const look = (q, k) => {
    kept.cell = q === undefined ? undefined : [q, k];
    for (const each of panels) each.look(q, k);
    if (q === undefined) {
      line.textContent = rest;
      return;
    }
    line.replaceChildren(named(header.rows[q]), " looks at ", named(header.keys[k]), ": ", make("strong", "", value(kept, "before", q * n + k)), " before, ", make("strong", "", value(kept, "after", q * n + k)), " after, difference ", make("strong", "", change(kept, q * n + k)));
  };
  for (const each of panels) {
    const { area } = each;
    area.onmousemove = (event) => {
      const frame = area.getBoundingClientRect();
      const [k, q] = [Math.floor(((event.clientX - frame.left) / frame.width) * n), Math.floor(((event.clientY - frame.top) / frame.height) * m)];
      if (q >= 0 && k >= 0 && q < m && k < n) look(q, k);
    };
    area.onmouseleave = () => look();
    area.onkeydown = (event) => {
      const by = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0] }[event.key];
      if (!by || !plainKey(event)) return;
      event.preventDefault();
      const [q, k] = kept.cell ?? [0, -by[1]];
      look(Math.max(0, Math.min(m - 1, q + by[0])), Math.max(0, Math.min(n - 1, k + by[1])));
    };
  }
  const foot = make("div", "foot");
  foot.append(legend(kept.words, "0", kept.full.toFixed(2)), legend(kept.signed, `−${kept.far.toFixed(2)}`, `+${kept.far.toFixed(2)}`), ...exports(kept));
  root.replaceChildren(box, line, foot);
  look();
  bus.tell({ layer: header.layer, head: header.head, chosen: false });
  const fit = () => {
    const across = getComputedStyle(box).gridTemplateColumns.split(" ").length;
    const room = (box.clientWidth - (across - 1) * 20) / across;
    panels.forEach((each) => each.fit(room));
  };
  let width = 0;
  kept.observer = new ResizeObserver(() => {
    if (box.clientWidth !== width) {
      width = box.clientWidth;
      fit();
    }
  });
  kept.observer.observe(box);
}

const named = (label) => {
  const token = make("b", "", label);
  token.dir = "auto";
  return token;
};

function value(kept, name, at) {
  if (kept.may[name] && !kept.may[name][at]) return "not allowed";
  const { weight, unknown } = kept[name];
  return unknown?.[at] > 0 ? `≈ ${weight[at].toFixed(3)}` : weight[at].toFixed(4);
}

function change(kept, at) {
  const unknown = (kept.before.unknown?.[at] || 0) + (kept.after.unknown?.[at] || 0);
  const text = kept.difference[at].toFixed(unknown > 0 ? 3 : 4);
  return (unknown > 0 ? "≈ " : "") + (kept.difference[at] > 0 ? `+${text}` : text.replace("-", "−"));
}

function colourAt(kept, name, at) {
  if (name === "difference") return kept.signed[Math.round(127.5 + 127.5 * (kept.far > 0 ? kept.difference[at] / kept.far : 0))];
  if (kept.may[name] && !kept.may[name][at]) return undefined;
  return kept.words[shade(kept[name].weight[at], kept.full, false)];
}

function panel(kept, name) {
  const { header } = kept;
  const [m, n] = [header.rows.length, header.keys.length];
  const box = make("div", "panel");
  const area = make("div", "area");
  const [canvas, row, column] = [make("canvas"), make("i", "row"), make("i", "column")];
  area.tabIndex = 0;
  area.setAttribute("role", "img");
  area.setAttribute("aria-label", `${TITLES[name]}: ${header.title}. Arrow keys read the cells; the table below has the same numbers.`);
  area.append(canvas, row, column);
  row.hidden = column.hidden = true;
  const [top, left] = [make("div", "top"), make("div", "left")];
  const label = (text) => {
    const one = make("span", "", text);
    one.dir = "auto";
    return one;
  };
  box.append(make("h4", "", TITLES[name]), make("span"), top, left, area);
  return {
    box,
    area,
    look(q, k) {
      row.hidden = column.hidden = q === undefined;
      row.style.setProperty("--at", q);
      column.style.setProperty("--at", k);
      for (const [list, at] of [[left, q], [top, k]]) for (const one of list.children) one.classList.toggle("on", +one.dataset.at === at);
    },
    fit(room) {
      const aside = Math.min(88, room * 0.26);
      const cell = Math.min((room - aside) / n, LARGEST / Math.max(m, n), 40);
      const [wide, high] = [n * cell, m * cell];
      for (const [property, size] of [["--wide", `${wide}px`], ["--high", `${high}px`], ["--cell", `${cell}px`], ["--aside", `${aside}px`]]) box.style.setProperty(property, size);
      const step = Math.max(1, Math.ceil(13 / cell));
      for (const [list, names] of [[left, header.rows], [top, header.keys]])
        list.replaceChildren(
          ...names.flatMap((text, at) => {
            if (at % step) return [];
            const one = label(text);
            one.dataset.at = at;
            one.style.setProperty("--at", at);
            return [one];
          }),
        );
      box.style.setProperty("--font", `${Math.max(10, Math.min(15, cell * 0.8))}px`);
      const ratio = window.devicePixelRatio || 1;
      canvas.width = Math.max(n, Math.round(wide * ratio));
      canvas.height = Math.max(m, Math.round(high * ratio));
      const context = canvas.getContext("2d");
      const [dx, dy] = [canvas.width / n, canvas.height / m];
      for (let q = 0; q < m; q++)
        for (let k = 0; k < n; k++) {
          const word = colourAt(kept, name, q * n + k);
          if (word === undefined) continue;
          context.fillStyle = css(word);
          context.fillRect(Math.floor(k * dx), Math.floor(q * dy), Math.ceil(dx), Math.ceil(dy));
        }
      canvas.dataset.painted = header.token;
    },
  };
}

// ---- downloads ----------------------------------------------------------------------------------------------------

function exports(kept) {
  return ["PNG", "SVG"].map((kind) => {
    const button = make("button", "small", `Matrices as ${kind}`);
    button.onclick = async () => (kind === "SVG" ? save(kept, drawing(kept), "svg", "image/svg+xml") : save(kept, await pixels(drawing(kept)), "png"));
    return button;
  });
}

function wrapped(line, most) {
  const lines = [""];
  for (const word of line.split(" ").flatMap((w) => ([...w].length > most ? [...w].join("").match(new RegExp(`.{1,${most}}`, "gu")) : [w]))) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if ([...longer].length > most) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

// The three matrices with labels, scales and caption, on their own.
function drawing(kept) {
  const { header } = kept;
  const [m, n] = [header.rows.length, header.keys.length];
  const marks = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  const escape = (text) => [...text].map((c) => marks[c] || (/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u.test(c) ? "\ufffd" : c)).join("");
  const cut = (text, most) => ([...text].length > most ? [...text].slice(0, most - 1).join("") + "…" : text);
  const cell = Math.max(2, Math.min(30, 360 / Math.max(m, n)));
  const [aside, above] = [110, 100];
  const one = Math.max(aside + n * cell + 20, 260);
  const width = 3 * one + 20;
  const lines = header.caption.flatMap((line) => wrapped(line, Math.floor(width / 6.6)).slice(0, 6));
  const top = 60 + lines.length * 17 + above;
  const height = top + m * cell + 50;
  const text = (x, y, size, content, more = "") => `<text x="${x}" y="${y}" font-size="${size}" ${more}>${escape(content)}</text>`;
  const font = Math.min(13, Math.max(8, cell));
  const step = Math.max(1, Math.ceil(font / cell));
  const parts = PARTS.flatMap((name, at) => {
    const left = at * one + aside;
    const tile = document.createElement("canvas");
    [tile.width, tile.height] = [n * 4, m * 4];
    const context = tile.getContext("2d");
    for (let q = 0; q < m; q++)
      for (let k = 0; k < n; k++) {
        const word = colourAt(kept, name, q * n + k);
        if (word === undefined) continue;
        context.fillStyle = css(word);
        context.fillRect(k * 4, q * 4, 4, 4);
      }
    const words = name === "difference" ? kept.signed : kept.words;
    const [low, high] = name === "difference" ? [`−${kept.far.toFixed(3)}`, `+${kept.far.toFixed(3)}`] : ["0", kept.full.toFixed(3)];
    const stops = [0, 64, 128, 192, 255].map((i) => `<stop offset="${i / 255}" stop-color="${css(words[i])}"/>`).join("");
    return [
      text(left, top - above + 6, 14, TITLES[name], 'font-weight="600"'),
      ...header.keys.flatMap((label, k) => (k % step ? [] : [text(0, 0, font, cut(label, 9), `transform="translate(${left + (k + 0.5) * cell + font / 3} ${top - 6}) rotate(-90)"`)])),
      ...header.rows.flatMap((label, q) => (q % step ? [] : [text(left - 6, top + (q + 0.5) * cell + font / 3, font, cut(label, 13), 'text-anchor="end"')])),
      `<rect x="${left}" y="${top}" width="${n * cell}" height="${m * cell}" fill="none" stroke="${kept.ink}" stroke-opacity="0.4"/>`,
      kept.may[name] ? `<rect x="${left}" y="${top}" width="${n * cell}" height="${m * cell}" fill="url(#hatch)"/>` : "",
      `<image x="${left}" y="${top}" width="${n * cell}" height="${m * cell}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${tile.toDataURL()}"/>`,
      `<defs><linearGradient id="scale${at}">${stops}</linearGradient></defs>`,
      text(left + 46, height - 18, 12, low, 'text-anchor="end"'),
      `<rect x="${left + 52}" y="${height - 29}" width="90" height="12" fill="url(#scale${at})" stroke="${kept.ink}" stroke-opacity="0.4"/>`,
      text(left + 148, height - 18, 12, high),
    ];
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" fill="${kept.ink}">`,
    `<rect width="100%" height="100%" fill="${kept.paper}"/>`,
    `<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><path d="M0 0V6" stroke="${kept.ink}" stroke-opacity="0.3"/></pattern></defs>`,
    text(16, 26, 16, header.title + (kept.may.before || kept.may.after ? " (hatched: not allowed)" : ""), 'font-weight="600"'),
    ...lines.map((line, at) => text(16, 46 + at * 17, 12, line)),
    ...parts,
    "</svg>",
  ].join("\n");
}
