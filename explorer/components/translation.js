// A translation in three pictures, each mounted by itself: its steps, the list of a beam search, and the tree of how it grew.

const KEPT = new WeakMap();
const FAINTEST_LINE = 0.02;
const MANY = 60; // tokens in a line from which on it scrolls in a box of its own
const A_STEP = 900; // milliseconds while playing
const AT_REST = 350; // milliseconds after the last step until the address hears of it

export default function ({ data, parentElement, setTriggerValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = { parts: [] }));
  kept.send = setTriggerValue;
  dress(parentElement);
  const root = (kept.root = parentElement.querySelector(".translation"));
  const before = kept.header;
  if (kept.data !== data) {
    kept.data = data;
    Object.assign(kept, decode(data));
  }
  const style = getComputedStyle(root);
  const theme = style.getPropertyValue("--st-chart-sequential-colors") + style.getPropertyValue("--st-text-color");
  const same = before && before.token === kept.header.token && kept.theme === theme;
  kept.theme = theme;
  kept.words = colours(root);
  ({ steps, beams, tree })[kept.header.kind](kept, before, same);
  root.dataset.token = kept.header.token;
  // A cleanup may belong to a drawing that another has replaced: only what has left the page is ended.
  return () => setTimeout(() => root.isConnected || end(kept));
}

function end(kept) {
  clearTimeout(kept.timer);
  clearTimeout(kept.resting);
  kept.observer?.disconnect();
  kept.deaf?.();
  kept.deaf = undefined;
}

const name = (label) => {
  const token = make("b", "", label);
  token.dir = "auto";
  return token;
};

const number = (value, digits) => value.toFixed(digits).replace("-", "−");
const short = (p) => (p >= 0.01 ? p.toFixed(2) : p >= 0.001 ? p.toFixed(3) : "<.001");
const long = (p) => (p > 0 && p < 0.00005 ? p.toExponential(1) : p.toFixed(4));

// A new drawing keeps the focus and the scrolling of the old one.
function draw(kept, ...parts) {
  const { root } = kept;
  const focus = root.getRootNode().activeElement?.dataset?.focus;
  const place = [".scroll", ".heads"].map((box) => [box, root.querySelector(box)?.scrollLeft, root.querySelector(box)?.scrollTop]);
  root.replaceChildren(...parts);
  for (const [box, left, top] of place) if (left !== undefined) root.querySelector(box)?.scrollTo(left, top);
  if (focus) root.querySelector(`[data-focus="${focus}"]`)?.focus({ preventScroll: true });
}

// Arrow keys walk through a row of buttons of which one can be reached with Tab.
function walk(event, list, at, by, go) {
  if (!plainKey(event)) return;
  const next = { Home: 0, End: list.length - 1 }[event.key] ?? (event.key in by ? at + by[event.key] : undefined);
  if (next === undefined || !list[next]) return;
  event.preventDefault();
  event.stopPropagation();
  list[at].tabIndex = -1;
  list[next].tabIndex = 0;
  list[next].focus();
  go?.(next);
}

// ---- the steps ----------------------------------------------------------------------------------------------------

function steps(kept, before, same) {
  const { header } = kept;
  const news = !before || before.text !== header.text;
  // A step that this view reported itself is no news: the reader may have gone on since, and reported more than once.
  const echo = (kept.sent ||= []).indexOf(header.step);
  if (news || (echo < 0 && header.step !== kept.reported)) kept.step = header.step;
  if (echo < 0) kept.reported = header.step;
  kept.sent.splice(0, echo + 1);
  if (news) halt(kept);
  // What presenters' remote controls send.
  kept.root.onkeydown = (event) => {
    const by = plainKey(event) && { PageDown: 1, PageUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    go(kept, kept.step + by);
  };
  if (!same) {
    kept.rows = header.says.length;
    kept.n = header.source.length;
    kept.step = Math.max(0, Math.min(kept.rows - 1, kept.step));
    weights(kept);
    kept.parts = [];
    kept.observer?.disconnect();
    kept.observer = new ResizeObserver(() => kept.sized.forEach((fit) => fit()));
    kept.sized = [];
    if (kept.rows) {
      const panels = make("div", "panels");
      const side = make("div", "side");
      side.append(candidates(kept), heads(kept));
      panels.append(matrix(kept), side);
      draw(kept, lineup(kept), stepper(kept), reading(kept), panels);
    } else draw(kept, make("p", "note", "There is no token yet."));
    kept.observer.observe(kept.root);
    kept.sized.forEach((fit) => fit());
  }
  show(kept);
}

// weight[row * n + key], unpacked from what wire.fine made of it; `unknown` is the half-width of what did not travel.
function weights(kept) {
  const { blocks, rows, n } = kept;
  kept.unknown = null;
  if (blocks.exact) kept.weight = blocks.exact;
  else {
    kept.weight = new Float32Array(rows * n);
    kept.unknown = new Float32Array(rows * n);
    for (let i = 0, low = 0; i < rows * n; i++) {
      const known = blocks.high[i] >= blocks.floor[0];
      const code = blocks.high[i] * 256 + (known ? blocks.low[low++] : 127.5);
      kept.weight[i] = (code / 65535) ** 2;
      kept.unknown[i] = known ? 0 : (2 * code * 128) / 65535 ** 2;
    }
  }
  kept.peak = kept.weight.reduce((most, weight) => Math.max(most, weight), 0);
}

const colour = (kept, row, key) => kept.words[shade(kept.weight[row * kept.n + key], kept.peak, false)];

function weightText(kept, row, key) {
  const at = row * kept.n + key;
  const unknown = kept.unknown ? kept.unknown[at] : 0;
  if (!unknown) return long(kept.weight[at]);
  return kept.weight[at] + unknown < 0.0001 ? "< 0.0001" : `≈ ${kept.weight[at].toFixed(4)} ± ${unknown.toFixed(4)}`;
}

function show(kept) {
  if (!kept.rows) return;
  kept.root.dataset.step = kept.step + 1;
  kept.parts.forEach((part) => part(kept.step));
  bus.tell({ translation: kept.step });
}

// The one way to another step: by the reader, who may want it in the address, or by the clock.
function go(kept, step, byClock) {
  const to = Math.max(0, Math.min(kept.rows - 1, step));
  if (!byClock) halt(kept);
  if (to !== kept.step) {
    kept.step = to;
    show(kept);
  }
  if (!byClock) report(kept);
}

function report(kept) {
  clearTimeout(kept.resting);
  kept.resting = setTimeout(() => {
    if (kept.timer || kept.reported === kept.step) return;
    kept.reported = kept.step;
    kept.sent.push(kept.step);
    kept.send("step", kept.step);
  }, AT_REST);
}

function play(kept) {
  if (kept.timer) {
    halt(kept);
    report(kept);
    return;
  }
  if (kept.step >= kept.rows - 1) {
    kept.step = 0;
    show(kept);
  }
  const tick = () => {
    kept.timer = setTimeout(() => {
      go(kept, kept.step + 1, true);
      if (kept.step < kept.rows - 1) tick();
      else {
        halt(kept);
        report(kept);
      }
    }, A_STEP);
  };
  tick();
  kept.playing?.();
}

function halt(kept) {
  clearTimeout(kept.timer);
  kept.timer = undefined;
  kept.playing?.();
}

// Chips, those of one word close together.
function chips(box, list, words) {
  let word;
  list.forEach((chip, at) => {
    if (!at || words[at] !== words[at - 1]) box.append((word = make("span", "word")));
    word.append(chip);
  });
  return box;
}

function chip(tag, label) {
  const made = make(tag, "chip");
  const text = make("span", "label", label);
  text.dir = "auto";
  made.append(text, make("span", "figure"));
  return made;
}

// Source above, output below, lines from the chosen output token up to the source.
function lineup(kept) {
  const { header, rows, n } = kept;
  const box = make("div", "lineup");
  const longer = Math.max(rows, n);
  box.style.setProperty("--size", `${longer <= 16 ? 1.5 : longer <= 40 ? 1.25 : 1}rem`);
  const links = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  links.setAttribute("aria-hidden", "true");
  // A source token leads to the step that looks at it most.
  const most = header.source.map((_, key) => header.says.reduce((best, _, row) => (kept.weight[row * n + key] > kept.weight[best * n + key] ? row : best), 0));
  const source = header.source.map((label, key) => {
    const one = chip("button", label);
    one.tabIndex = key ? -1 : 0;
    one.dataset.focus = `source ${key}`;
    one.title = `Most looked at to say “${header.says[most[key]]}”, step ${most[key] + 1}`;
    one.onclick = () => go(kept, most[key]);
    one.onkeydown = (event) => walk(event, source, key, { ArrowRight: 1, ArrowLeft: -1 });
    return one;
  });
  const output = header.says.map((label, at) => {
    const one = chip("button", label);
    const p = Math.exp(kept.blocks.logprob[at]);
    const bar = make("i", "bar");
    bar.style.setProperty("--p", p);
    one.append(bar);
    const off = header.forced && kept.blocks.rank[at] > 0;
    one.classList.toggle("off", off);
    one.querySelector(".figure").textContent = short(p) + (off ? ` #${kept.blocks.rank[at] + 1}` : "");
    one.setAttribute("aria-label", `Step ${at + 1}: ${label}, probability ${short(p)}${off ? `, rank ${kept.blocks.rank[at] + 1}` : ""}`);
    one.dataset.at = at;
    one.dataset.focus = `output ${at}`;
    one.onclick = () => go(kept, at);
    one.onkeydown = (event) => walk(event, output, at, { ArrowRight: 1, ArrowLeft: -1 }, (to) => go(kept, to));
    return one;
  });
  const line = (title, hint, list, words, className, label) => {
    const row = make("div", `line ${className}`);
    const head = make("div", "title");
    head.append(make("strong", "", title), " ", make("span", "", hint));
    const tokens = chips(make("div", "tokens"), list, words);
    tokens.setAttribute("role", "group");
    tokens.setAttribute("aria-label", label);
    tokens.classList.toggle("many", list.length > MANY);
    tokens.onscroll = () => connect();
    row.append(head, tokens);
    return row;
  };
  const hint = header.forced ? "yours, force-fed; below each token its p, and its rank where the model would have said another" : "below each token its p";
  box.append(
    links,
    line("Source", "tinted by where the chosen word looks, below each token its weight; choose one to go to the word that looks at it most", source, header.source_words, "source", "Source tokens with the weight that the chosen word gives each. Arrow keys move, Enter goes to the word that looks at one most."),
    line("Output", hint, output, header.says_words, "output", "Output tokens. Arrow keys step through them, PageUp and PageDown from anywhere here."),
  );
  const connect = () => {
    const frame = box.getBoundingClientRect();
    const from = output[kept.step].getBoundingClientRect();
    const [above, below] = [".source .tokens", ".output .tokens"].map((line) => box.querySelector(line).getBoundingClientRect());
    const [x, y] = [from.left + from.width / 2 - frame.left, Math.max(below.top, from.top) - frame.top];
    links.setAttribute("viewBox", `0 0 ${frame.width} ${frame.height}`);
    links.replaceChildren(
      ...source.flatMap((one, key) => {
        const weight = kept.weight[kept.step * kept.n + key];
        if (weight < FAINTEST_LINE) return [];
        const to = one.getBoundingClientRect();
        if (to.bottom < above.top || to.top > above.bottom) return []; // scrolled out of its box
        const [x2, y2] = [to.left + to.width / 2 - frame.left, Math.min(to.bottom, above.bottom) - frame.top];
        const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
        path.setAttribute("d", `M ${x} ${y} C ${x} ${(y + y2) / 2}, ${x2} ${(y + y2) / 2}, ${x2} ${y2}`);
        path.setAttribute("stroke-width", 1 + weight * 6);
        path.setAttribute("stroke-opacity", Math.min(1, 0.15 + weight));
        return [path];
      }),
    );
  };
  kept.sized.push(connect);
  kept.parts.push((step) => {
    source.forEach((one, key) => {
      const word = colour(kept, step, key);
      one.style.background = css(word);
      one.style.color = inkOn(word);
      one.dataset.weight = kept.weight[step * kept.n + key];
      one.querySelector(".figure").textContent = short(kept.weight[step * kept.n + key]);
      one.setAttribute("aria-label", `${header.source[key]}, weight ${short(kept.weight[step * kept.n + key])}`);
    });
    output.forEach((one, at) => {
      one.classList.toggle("later", at > step);
      one.classList.toggle("now", at === step);
      one.setAttribute("aria-pressed", at === step);
      one.tabIndex = at === step ? 0 : -1;
    });
    const row = kept.weight.subarray(step * kept.n, (step + 1) * kept.n);
    sight(source[row.indexOf(Math.max(...row))]);
    sight(output[step]);
    connect();
  });
  return box;
}

// Bring a chip into sight inside the box that its line scrolls in, if it does; the page stays where it is.
function sight(one) {
  const box = one.closest(".many");
  if (!box) return;
  const [from, to] = [one.getBoundingClientRect(), box.getBoundingClientRect()];
  if (from.top < to.top) box.scrollTop += from.top - to.top;
  else if (from.bottom > to.bottom) box.scrollTop += from.bottom - to.bottom;
}

function stepper(kept) {
  const box = make("div", "stepper");
  const button = (what, label, act) => {
    const one = make("button", `small ${what}`, label);
    one.dataset.focus = what;
    one.onclick = act;
    return one;
  };
  const back = button("previous", "‹ Previous", () => go(kept, kept.step - 1));
  const start = button("play", "Play", () => play(kept));
  const next = button("next", "Next ›", () => go(kept, kept.step + 1));
  const slider = make("input");
  Object.assign(slider, { type: "range", min: 1, max: kept.rows, step: 1 });
  slider.dataset.focus = "slider";
  slider.setAttribute("aria-label", "Step");
  slider.oninput = () => go(kept, slider.valueAsNumber - 1);
  const where = make("span", "where");
  box.append(back, start, next, slider, where);
  kept.playing = () => (start.textContent = kept.timer ? "Pause" : "Play");
  kept.playing();
  kept.parts.push((step) => {
    slider.value = step + 1;
    slider.setAttribute("aria-valuetext", `Step ${step + 1} of ${kept.rows}: ${kept.header.says[step]}`);
    where.textContent = `Step ${step + 1} of ${kept.rows}`;
    back.disabled = step === 0;
    next.disabled = step === kept.rows - 1;
  });
  return box;
}

// What happens in this step, in words and in the numbers of the formula.
function reading(kept) {
  const { header, blocks } = kept;
  const box = make("div", "reading");
  const says = make("p", "says");
  says.setAttribute("role", "status");
  const looks = make("p", "looks");
  const formula = make("p", "formula");
  box.append(says, looks, formula);
  kept.parts.push((step) => {
    const label = header.says[step];
    const so = header.reads.slice(0, step + 1);
    const p = Math.exp(blocks.logprob[step]);
    const read = make("span", "read", (so.length > 9 ? "… " : "") + so.slice(-9).join(" "));
    read.dir = "auto";
    says.replaceChildren(header.forced ? "After " : "The decoder reads ", read, header.forced ? " the model gives " : " and says ", name(label), header.forced ? " the probability " : " with probability ", make("strong", "p", long(p)));
    if (blocks.rank[step] > 0)
      says.append(` (rank ${(blocks.rank[step] + 1).toLocaleString("en")} of ${header.n_vocab.toLocaleString("en")}); `, header.forced ? "it would have said " : "likeliest here was ", name(header.tops[step][0]), ` (${long(Math.exp(blocks.top_logprobs[step * top(kept)]))}).`);
    else says.append(header.forced ? ": its own first choice too." : ", its first choice.");
    const row = Array.from(kept.weight.subarray(step * kept.n, (step + 1) * kept.n), (weight, key) => [weight, key]).sort((a, b) => b[0] - a[0]);
    looks.replaceChildren("To say ", name(label), " it looks back at ");
    row.slice(0, 4).filter(([weight], i) => !i || weight >= 0.01).forEach(([weight, key], i) => looks.append(i ? ",  " : "", name(header.source[key]), ` ${weight.toFixed(2)}`));
    looks.append(`  (${header.titles[header.names.indexOf(header.name)].toLowerCase()}).`);
    const z = blocks.logit[step];
    const sum = blocks.log_sum[step];
    const power = () => ["e", make("sup", "", "z")];
    formula.replaceChildren(
      "p(", name(label), ") = softmax(z) = ", ...power(), " / Σ ", ...power(), `.   Here z = ${number(z, 3)} and ln Σ `, ...power(),
      ` = ${number(sum, 3)}, so log p = ${number(z, 3)} − ${number(sum, 3)} = ${number(blocks.logprob[step], 3)} and p = ${long(p)}.   The sum so far: log p = ${number(blocks.logprob.subarray(0, step + 1).reduce((sum, one) => sum + one, 0), 3)}.`,
    );
  });
  return box;
}

const top = (kept) => kept.header.tops[0].length;

// What the model held likeliest in this step, and the token that stands in the output where it is none of these.
function candidates(kept) {
  const { header, blocks } = kept;
  const box = make("section", "candidates");
  const list = make("div", "bars");
  list.setAttribute("role", "list");
  box.append(make("h4", "", "What the model could have said here"), list);
  kept.parts.push((step) => {
    const bar = (rank, label, logprob, here) => {
      const row = make("div", here ? "candidate here" : "candidate");
      row.setAttribute("role", "listitem");
      const text = make("span", "label", label);
      text.dir = "auto";
      const track = make("span", "track");
      const fill = make("i");
      fill.style.setProperty("--p", Math.exp(logprob));
      track.append(fill);
      row.append(make("span", "rank", (rank + 1).toLocaleString("en")), text, track, make("span", "value", long(Math.exp(logprob))));
      return row;
    };
    const rank = blocks.rank[step];
    const rows = header.tops[step].map((label, at) => bar(at, label, blocks.top_logprobs[step * top(kept) + at], at === rank));
    if (rank >= top(kept)) rows.push(bar(rank, header.pieces[step], blocks.logprob[step], true));
    list.replaceChildren(...rows);
  });
  return box;
}

// ---- all heads, small ---------------------------------------------------------------------------------------------

function heads(kept) {
  const { header, blocks } = kept;
  const box = make("section", "heads");
  const grid = make("div", "grid");
  grid.style.setProperty("--across", header.n_head + 1);
  grid.setAttribute("role", "group");
  grid.setAttribute("aria-label", "Heads of the cross-attention and their means. Arrow keys move, Enter chooses one.");
  const size = header.rows * header.columns;
  const list = header.names.map((view, at) => {
    const tile = make("button", "tile");
    const canvas = make("canvas");
    canvas.width = header.columns;
    canvas.height = header.rows;
    const image = new ImageData(header.columns, header.rows);
    const pixels = new Uint32Array(image.data.buffer);
    // A byte stands for the square root of a share of the view's largest weight.
    for (let i = 0; i < size; i++) pixels[i] = kept.words[Math.round((blocks.cells[at * size + i] / 255) ** 2 * 255)];
    canvas.getContext("2d").putImageData(image, 0, 0);
    const [layer, head] = view.split(".");
    const label = head ? `${layer}.${head}` : layer ? `mean ${layer}` : "all";
    tile.append(canvas, make("i", "at"), make("span", "", label));
    tile.dataset.view = view;
    tile.dataset.focus = `view ${at}`;
    tile.title = header.titles[at];
    tile.setAttribute("aria-label", `${header.titles[at]}, largest weight ${blocks.peak[at].toFixed(2)}`);
    tile.setAttribute("aria-pressed", view === header.name);
    tile.classList.toggle("mean", head === undefined);
    tile.tabIndex = view === header.name ? 0 : -1;
    tile.onclick = () => kept.send("view", view);
    const across = header.n_head + 1;
    tile.onkeydown = (event) => walk(event, list, at, { ArrowRight: 1, ArrowLeft: -1, ArrowDown: Math.min(across, header.names.length - 1 - at) || undefined, ArrowUp: view ? -across : -1 });
    return tile;
  });
  grid.append(...list);
  const note = make("p", "note", "One square a head, layer.head, each scaled to its own largest weight; source tokens across, output down. The mark is this step. At the end of a layer the mean of its heads, last the mean of all.");
  box.append(make("h4", "", "Cross-attention, head by head"), grid, note);
  kept.parts.push((step) => grid.style.setProperty("--at", (step + 0.5) / kept.rows));
  return box;
}

// ---- the alignment matrix -----------------------------------------------------------------------------------------

function matrix(kept) {
  const { header, rows, n } = kept;
  const what = header.titles[header.names.indexOf(header.name)];
  const box = make("section", "alignment");
  const scroll = make("div", "scroll");
  const frame = make("div", "matrix");
  const canvas = make("canvas", "cells");
  canvas.width = n;
  canvas.height = rows;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Alignment, ${what}: ${rows} produced tokens down, ${n} source tokens across. The numbers are in the table below.`);
  const image = new ImageData(n, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let q = 0; q < rows; q++) for (let k = 0; k < n; k++) pixels[q * n + k] = colour(kept, q, k);
  canvas.getContext("2d").putImageData(image, 0, 0);
  const labels = (className, list, act) => {
    const side = make("div", className);
    list.forEach((label, at) => {
      const span = make("span", "", label);
      span.dir = "auto";
      if (act) span.onclick = () => act(at);
      side.append(span);
    });
    side.setAttribute("aria-hidden", "true");
    return side;
  };
  const left = labels("says-axis", header.says.map((label) => `→ ${label}`), (at) => go(kept, at));
  const above = labels("source-axis", header.source);
  const corner = make("div", "corner");
  corner.append(make("span", "", "says ↓"), make("span", "", "source →"));
  const area = make("div", "area");
  const [held, column] = [make("i", "row"), make("i", "column")];
  area.append(canvas, held, column);
  frame.append(corner, above, left, area);
  scroll.append(frame);
  scroll.tabIndex = 0;
  scroll.dataset.focus = "matrix";
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Alignment matrix. Up and down step through the output, left and right read the row’s weights.");
  const value = make("p", "value");
  value.setAttribute("role", "status");
  let over = null; // the cell looked at, [row, key]
  const look = (cell) => {
    over = cell;
    column.hidden = !cell;
    if (cell) column.style.setProperty("--at", cell[1]);
    [...above.children].forEach((e, at) => e.classList.toggle("on", Boolean(cell) && at === cell[1]));
    if (cell) value.replaceChildren(`Step ${cell[0] + 1}: to say `, name(header.says[cell[0]]), " it looks at ", name(header.source[cell[1]]), "  ", make("strong", "", weightText(kept, ...cell)));
    else value.replaceChildren("Point at a cell, or tap it, for its weight. A row sums to 1.");
  };
  scroll.onkeydown = (event) => {
    if (!plainKey(event)) return;
    const by = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key];
    if (!by) return;
    event.preventDefault();
    const key = over ? over[1] : -1;
    go(kept, kept.step + by[0]);
    if (by[1] || key >= 0) look([kept.step, Math.max(0, Math.min(n - 1, key + by[1]))]);
    bring(kept, scroll, area, over?.[1]);
  };
  scroll.onblur = () => look(null);
  const cellAt = (event) => {
    const place = canvas.getBoundingClientRect();
    const [q, k] = [Math.floor(((event.clientY - place.top) / place.height) * rows), Math.floor(((event.clientX - place.left) / place.width) * n)];
    return q >= 0 && k >= 0 && q < rows && k < n ? [q, k] : null;
  };
  area.onmousemove = (event) => look(cellAt(event));
  area.onmouseleave = () => look(null);
  area.onclick = (event) => {
    const cell = cellAt(event);
    if (!cell) return;
    go(kept, cell[0]);
    look(cell);
  };
  kept.sized.push(() => {
    const room = scroll.clientWidth - (above.offsetLeft || 96) - 4;
    kept.across = Math.max(12, Math.min(room / n, 48));
    kept.down = Math.max(14, Math.min(34, 480 / rows));
    for (const [key, size] of [["--across", `${kept.across}px`], ["--down", `${kept.down}px`], ["--n", n], ["--rows", rows]]) frame.style.setProperty(key, size);
  });
  kept.parts.push((step) => {
    held.style.setProperty("--at", step);
    held.dataset.at = step;
    [...left.children].forEach((e, at) => e.classList.toggle("on", at === step));
    if (over && over[0] !== step) look(null);
    bring(kept, scroll, area);
  });
  look(null);
  const foot = make("div", "foot");
  foot.append(legend(kept.words, "0", `${kept.peak.toFixed(3)}, the largest here`));
  const buttons = make("div", "exports");
  for (const kind of ["PNG", "SVG"]) {
    const button = make("button", "small", `Alignment as ${kind}`);
    button.dataset.focus = kind;
    button.onclick = async () => (kind === "SVG" ? save(kept, drawing(kept), "svg", "image/svg+xml") : save(kept, await pixels(drawing(kept)), "png"));
    buttons.append(button);
  }
  box.append(make("h4", "", `Alignment: ${what.replace("Mean", "mean").replace("Layer", "layer")}`), scroll, value, foot, ...header.caption.slice(0, 2).map((line) => make("p", "note", line)), buttons);
  return box;
}

// Scroll the row of this step, and a column if one is looked at, into sight inside the box, clear of the labels that stay.
function bring(kept, scroll, area, key) {
  const [height, width] = [scroll.clientHeight - area.offsetTop, scroll.clientWidth - area.offsetLeft];
  const within = (start, room, from, size) => (from < start ? from : from + size > start + room ? from + size - room : start);
  scroll.scrollTop = within(scroll.scrollTop, height, kept.step * kept.down, kept.down);
  if (key !== undefined) scroll.scrollLeft = within(scroll.scrollLeft, width, key * kept.across, kept.across);
}

// ---- downloads ----------------------------------------------------------------------------------------------------

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

// The matrix with its labels, scale and caption: what it says does not depend on the page around it.
function drawing(kept) {
  const { header, rows, n } = kept;
  const marks = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  const escape = (text) => [...text].map((c) => marks[c] || (/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u.test(c) ? "\ufffd" : c)).join("");
  const cut = (text, most) => ([...text].length > most ? [...text].slice(0, most - 1).join("") + "…" : text);
  const cell = Math.max(12, Math.min(36, 560 / n));
  const width = Math.max(190 + n * cell + 24, 640);
  const lines = header.caption.flatMap((line) => wrapped(line, Math.floor((width - 32) / 6.6))).slice(0, 12);
  const [left, topEdge] = [190, 120 + lines.length * 17];
  const height = topEdge + rows * cell + 70;
  const style = getComputedStyle(kept.root);
  const [ink, paper, mark] = ["--st-text-color", "--st-background-color", "--st-primary-color"].map((key) => style.getPropertyValue(key));
  const tile = document.createElement("canvas");
  tile.width = n * 8;
  tile.height = rows * 8;
  const context = tile.getContext("2d");
  for (let q = 0; q < rows; q++)
    for (let k = 0; k < n; k++) {
      context.fillStyle = css(colour(kept, q, k));
      context.fillRect(k * 8, q * 8, 8, 8);
    }
  const font = Math.min(13, cell);
  const text = (x, y, size, content, more = "") => `<text x="${x}" y="${y}" font-size="${size}" ${more}>${escape(content)}</text>`;
  const stops = [0, 64, 128, 192, 255].map((i) => `<stop offset="${i / 255}" stop-color="${css(kept.words[i])}"/>`).join("");
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" fill="${ink}">`,
    `<rect width="100%" height="100%" fill="${paper}"/><defs><linearGradient id="scale">${stops}</linearGradient></defs>`,
    text(16, 26, 16, `Cross-attention: ${header.titles[header.names.indexOf(header.name)].toLowerCase()}`, 'font-weight="600"'),
    ...lines.map((line, at) => text(16, 46 + at * 17, 12, line)),
    ...header.source.map((label, k) => text(0, 0, font, cut(label, 9), `transform="translate(${left + (k + 0.5) * cell + font / 3} ${topEdge - 6}) rotate(-90)"`)),
    ...header.says.map((label, q) => text(left - 6, topEdge + (q + 0.5) * cell + font / 3, font, `${cut(label, 14)}  ${short(Math.exp(kept.blocks.logprob[q]))}`, 'text-anchor="end"')),
    `<image x="${left}" y="${topEdge}" width="${n * cell}" height="${rows * cell}" preserveAspectRatio="none" style="image-rendering:pixelated" href="${tile.toDataURL()}"/>`,
    `<rect x="${left}" y="${topEdge + kept.step * cell}" width="${n * cell}" height="${cell}" fill="none" stroke="${mark}" stroke-width="2"/>`,
    text(16, topEdge - 8, 11, "says, p ↓  source →"),
    text(left + 76, height - 24, 12, "0", 'text-anchor="end"'),
    `<rect x="${left + 84}" y="${height - 35}" width="120" height="12" fill="url(#scale)" stroke="${ink}" stroke-opacity="0.4"/>`,
    text(left + 212, height - 24, 12, `${kept.peak.toFixed(3)}   outlined: step ${kept.step + 1}`),
    "</svg>",
  ].join("\n");
}

// ---- the list of a beam search ------------------------------------------------------------------------------------

function beams(kept, before, same) {
  const { header } = kept;
  if (same) return;
  const box = make("div", "hypotheses");
  box.setAttribute("role", "radiogroup");
  box.setAttribute("aria-label", "Hypotheses of the beam search, best first. Arrow keys move, Enter shows one.");
  const list = header.beams.map((beam, at) => {
    const one = make("button", "hypothesis");
    one.setAttribute("role", "radio");
    one.setAttribute("aria-checked", at === header.chosen);
    one.tabIndex = at === header.chosen ? 0 : -1;
    one.dataset.focus = `beam ${at}`;
    const text = make("span", "text", beam.text || "(nothing: it ends at once)");
    text.dir = "auto";
    const figures = make("span", "figures");
    figures.append(make("span", "", `log p ${number(beam.sum, 3)}`), make("span", "", `÷ ${beam.by.toFixed(3)}`), make("strong", "", `= ${number(beam.score, 3)}`));
    const more = make("span", "more", `${beam.n} tokens${beam.done ? "" : ", not ended"}`);
    one.append(make("span", "rank", `${at + 1}`), text, more, figures);
    one.onclick = () => kept.send("beam", at);
    one.onkeydown = (event) => walk(event, list, at, { ArrowDown: 1, ArrowUp: -1, ArrowRight: 1, ArrowLeft: -1 });
    return one;
  });
  box.append(...list);
  const note = make("p", "note", "log p: the sum of the tokens’ log-probabilities. Every token makes it smaller, so beams are ranked by the sum ÷ ((5 + n) / 6)");
  note.append(make("sup", "", "0.6"), " for n tokens, [EOS] among them. Choose one to see it below.");
  draw(kept, box, note);
}

// ---- how the beams grew -------------------------------------------------------------------------------------------

function tree(kept, before, same) {
  const { header } = kept;
  if (!same) grown(kept);
  kept.deaf?.();
  kept.deaf = listen((now) => mark(kept, now.translation));
  if (bus.now.translation !== undefined) mark(kept, bus.now.translation);
}

function grown(kept) {
  const { header } = kept;
  const across = Math.max(...header.steps.map((held) => held.length));
  const last = header.steps.length - 1;
  // Who still has heirs in the last step, and who is on the way to the chosen hypothesis.
  const alive = header.steps.map(() => new Set());
  const way = header.steps.map(() => -1);
  header.steps[last].forEach((_, at) => {
    for (let step = last, place = at; step >= 0; place = header.steps[step][place].parent, step--) {
      alive[step].add(place);
      if (at === header.chosen) way[step] = place;
    }
  });
  const scroll = make("div", "scroll grown");
  scroll.tabIndex = 0;
  scroll.dataset.focus = "tree";
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", `How ${across} beams grew in ${last + 1} steps, from top to bottom. The table below has the same.`);
  const box = make("div", "tree");
  box.style.setProperty("--across", across);
  box.style.setProperty("--steps", header.steps.length + 1);
  const lines = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  lines.setAttribute("viewBox", `0 0 ${across} ${header.steps.length + 1}`);
  lines.setAttribute("preserveAspectRatio", "none");
  lines.setAttribute("aria-hidden", "true");
  const rows = header.steps.map((held, step) => {
    const row = make("div", "generation");
    row.append(make("span", "count", `${step + 1}`));
    held.forEach((beam, at) => {
      const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
      const from = step ? beam.parent + 0.5 : across / 2;
      line.setAttribute("d", `M ${from} ${step + 0.5} L ${at + 0.5} ${step + 1.5}`);
      line.setAttribute("class", way[step] === at ? "way" : alive[step].has(at) ? "alive" : "");
      lines.append(line);
      const node = make("span", "node");
      node.classList.toggle("way", way[step] === at);
      node.classList.toggle("dead", !alive[step].has(at));
      node.classList.toggle("carried", beam.carried);
      node.style.setProperty("--x", at + 0.5);
      const label = make("span", "label", beam.carried ? "ended" : beam.label);
      label.dir = "auto";
      node.append(label, make("span", "figure", beam.carried ? number(beam.score, 2) : short(beam.p)));
      node.title = `Step ${step + 1}, rank ${at + 1}: ${beam.label}, p ${long(beam.p)}, score ${number(beam.score, 3)}${beam.carried ? ", ended before" : ""}`;
      row.append(node);
    });
    return row;
  });
  const root = make("div", "generation");
  const start = make("span", "node way");
  start.style.setProperty("--x", across / 2);
  start.append(make("span", "label", "[BOS]"));
  root.append(start);
  box.append(lines, root, ...rows);
  scroll.append(box);
  kept.generations = rows;
  kept.scroll = scroll;
  draw(kept, scroll, make("p", "note", "Each row is a step, best hypothesis left; a node is the token added, with its p, and hangs on the hypothesis it continues. Drawn strong: the way to the one shown. Faded: dropped later."));
}

// The row of the step that is on screen; it scrolls only inside its own box.
function mark(kept, step) {
  kept.generations.forEach((row, at) => row.classList.toggle("on", at === step));
  const row = kept.generations[step];
  if (!row) return;
  const { scroll } = kept;
  if (row.offsetTop < scroll.scrollTop) scroll.scrollTop = row.offsetTop;
  else if (row.offsetTop + row.offsetHeight > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = row.offsetTop + row.offsetHeight - scroll.clientHeight;
}
