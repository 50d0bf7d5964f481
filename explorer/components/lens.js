// The logit lens: a table of words, sites down and tokens across, coloured by a measure; and one cell of it opened.

const KEPT = new WeakMap();
const SPARE = 6; // columns drawn on either side of those in sight

export default function ({ data, parentElement, setTriggerValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = {}));
  kept.stop?.();
  kept.send = setTriggerValue;
  if (kept.data !== data) {
    kept.data = data;
    Object.assign(kept, decode(data));
  }
  dress(parentElement);
  const root = (kept.root = parentElement.querySelector(".lens"));
  kept.words = colours(root);
  const stop = (kept.stop = { grid, way, sum }[kept.header.role](kept));
  root.dataset.token = kept.header.token;
  return stop;
}

// What a person typed stands in its own direction and as it is.
function word(text, className = "") {
  const element = make("b", className, text);
  element.dir = "auto";
  return element;
}

// A probability in four decimals, a very small one in one figure and a power of ten.
function chance(p) {
  return p >= 0.00005 || p === 0 ? p.toFixed(4) : p.toExponential(0).replace(/e-(\d+)$/, (_, n) => ` × 10⁻${raised(n)}`);
}

const raised = (digits) => [...digits].map((d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]).join("");
const nats = (kl) => `${kl > 0 && kl < 0.005 ? "< 0.01" : kl.toFixed(2)} nats`;
const place = (rank) => (rank + 1).toLocaleString("en");

// ---- the table ----------------------------------------------------------------------------------------------------

// How near to the top of the scale a cell is, 0 to 1. Darker (on a dark page: lighter) is always nearer to the final answer.
function share(kept, at) {
  const { blocks, header } = kept;
  switch (header.measure) {
    case "Answer":
      return Math.exp(blocks.answer[at]);
    case "Rank":
      return 1 - Math.log(blocks.rank[at] + 1) / Math.log(header.nVocab);
    case "KL":
      return kept.farthest > 0 ? 1 - Math.log1p(blocks.kl[at]) / Math.log1p(kept.farthest) : 1;
    default:
      return Math.exp(blocks.logp[at * header.top]);
  }
}

function scaleText(kept) {
  const { measure, nVocab } = kept.header;
  if (measure === "Rank") return [`rank ${nVocab.toLocaleString("en")}`, "rank 1"];
  if (measure === "KL") return [nats(kept.farthest), "0"];
  return ["0", "1"];
}

function grid(kept) {
  const { header, blocks, root } = kept;
  const n = header.tokens.length;
  kept.farthest = blocks.kl.reduce((most, kl) => Math.max(most, kl), 0);
  const same = kept.text === header.tokens.join(" ") + header.sites.length;
  kept.text = header.tokens.join(" ") + header.sites.length;
  if (!same) kept.focus = undefined;
  const before = same && kept.scroll ? kept.scroll.scrollLeft : 0;
  const focused = root.getRootNode().activeElement?.classList.contains("say");

  const says = make("p", "says");
  says.setAttribute("role", "status");
  const map = overview(kept);
  const scroll = (kept.scroll = make("div", "scroll"));
  const table = make("div", "table");
  table.setAttribute("role", "grid");
  table.setAttribute("aria-label", "What each site would say, sites down, tokens across. Arrow keys move, Enter holds a cell.");
  table.setAttribute("aria-rowcount", header.sites.length + 1);
  table.setAttribute("aria-colcount", n + 1);
  kept.rows = [-1, ...header.sites.keys()].map((site) => row(kept, site));
  table.append(...kept.rows);
  scroll.append(table);
  kept.columns = new Map();
  kept.says = says;

  const foot = make("div", "foot");
  const [low, high] = scaleText(kept);
  foot.append(key(kept), legend(kept.words, low, high));
  root.replaceChildren(says, map.box, scroll, foot);

  const fill = () => {
    const [first, last] = inSight(kept);
    for (const [token, cells] of kept.columns)
      if ((token < first || token > last) && token !== kept.focus[1]) {
        cells.forEach((cell) => cell.remove());
        kept.columns.delete(token);
      }
    for (let token = first; token <= last; token++) need(kept, token);
    map.frame();
  };
  const fit = () => {
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    kept.side = kept.rows[0].firstChild.getBoundingClientRect().width;
    const room = root.clientWidth - 2; // inside the border
    kept.cell = Math.max(4.75 * rem, Math.min(8.5 * rem, Math.floor((room - kept.side) / n)));
    table.style.setProperty("--cell", `${kept.cell}px`);
    table.style.setProperty("--n", n);
    map.box.hidden = kept.side + n * kept.cell <= room + 1;
    map.paint();
    fill();
  };
  kept.fill = fill;
  kept.held ??= [header.sites.length - 1, 0];
  kept.focus ??= [...kept.held];
  fit();
  scroll.scrollLeft = before;
  scroll.onscroll = fill;
  table.onmouseleave = () => look(kept, null);

  // The opened cell says which one is held; a cell of another text is none of this table's.
  const mark = () => {
    const now = bus.now.lens;
    if (!now || now.tokens !== n || now.sites !== header.sites.length) return;
    const moved = !kept.marked || now.held[1] !== kept.held[1] || !same;
    kept.marked = true;
    if (kept.held.join() !== now.held.join()) kept.focus = [...now.held];
    kept.held = [...now.held];
    if (moved) bring(kept, kept.held[1], true);
    fill();
    remark(kept);
    look(kept, null);
  };
  const deaf = listen(mark);
  mark();
  if (focused) need(kept, kept.focus[1])[kept.focus[0] + 1].focus({ preventScroll: true });
  let width = root.clientWidth;
  const watch = new ResizeObserver(() => {
    if (root.clientWidth === width) return;
    width = root.clientWidth;
    fit();
  });
  watch.observe(root);
  return () => {
    deaf();
    watch.disconnect();
  };
}

// The first and last column to draw.
function inSight({ scroll, cell, side, header }) {
  const first = Math.floor(scroll.scrollLeft / cell) - SPARE;
  const last = Math.ceil((scroll.scrollLeft + scroll.clientWidth - side) / cell) + SPARE;
  return [Math.max(0, first), Math.min(header.tokens.length - 1, last)];
}

function row(kept, site) {
  const { header } = kept;
  const line = make("div", site < 0 ? "row top" : "row");
  line.setAttribute("role", "row");
  line.setAttribute("aria-rowindex", site + 2);
  const name = make("span", "name", site < 0 ? "" : header.sites[site]);
  name.setAttribute("role", site < 0 ? "columnheader" : "rowheader");
  name.setAttribute("aria-colindex", 1);
  if (site < 0) name.append(make("span", "", "reads"), ...(header.asksNext ? [make("span", "", "comes next")] : []));
  if (site === header.sites.length - 1) {
    line.classList.add("last");
    name.append(make("em", "", "the model’s answer"));
  }
  line.append(name);
  return line;
}

// The elements of a column, the head first; made when they are first wanted.
function need(kept, token) {
  let cells = kept.columns.get(token);
  if (cells) return cells;
  const { header } = kept;
  cells = [head(kept, token), ...header.sites.map((_, site) => cellOf(kept, site, token))];
  kept.columns.set(token, cells);
  cells.forEach((cell, at) => {
    cell.style.setProperty("--at", token);
    cell.setAttribute("aria-colindex", token + 2);
    kept.rows[at].append(cell);
  });
  return cells;
}

function head(kept, token) {
  const { header } = kept;
  const cell = make("div", "head");
  cell.setAttribute("role", "columnheader");
  cell.append(word(header.tokens[token], "reads"));
  cell.title = `${header.tokens[token]} (token ${token})`;
  const right = header.right[token];
  if (right >= 0) {
    cell.append(word(`${header.asksNext ? "→ " : "hides "}${header.labels[right]}`, "next"));
    cell.title += header.asksNext ? `; “${header.labels[right]}” comes next` : `; it hides “${header.labels[right]}”`;
  } else if (header.asksNext) cell.append(make("b", "next", "→ ?"));
  cell.classList.toggle("on", token === kept.held[1]);
  cell.onclick = () => choose(kept, [kept.held[0], token]);
  return cell;
}

function cellOf(kept, site, token) {
  const { header, blocks, words } = kept;
  const at = site * header.tokens.length + token;
  const best = blocks.words[at * header.top];
  const cell = make("div", "say");
  const colour = words[Math.round(255 * Math.max(0, Math.min(1, share(kept, at))))];
  cell.style.background = css(colour);
  cell.style.color = inkOn(colour);
  const isRight = best === header.right[token];
  if (isRight) cell.append(make("i", "tick", "✓"));
  const said = word(header.labels[best]);
  said.classList.toggle("same", best === header.final[token]);
  cell.append(said);
  cell.setAttribute("role", "gridcell");
  cell.setAttribute("aria-label", `${header.spoken[site]}, token ${token}, ${header.tokens[token]}: ${header.labels[best]}, ${chance(Math.exp(blocks.logp[at * header.top]))}${isRight ? ", right" : ""}`);
  cell.tabIndex = kept.focus[0] === site && kept.focus[1] === token ? 0 : -1;
  cell.setAttribute("aria-selected", kept.held[0] === site && kept.held[1] === token);
  cell.onclick = () => choose(kept, [site, token]);
  cell.onmouseenter = () => look(kept, [site, token]);
  cell.onfocus = () => {
    focusOn(kept, site, token);
    look(kept, [site, token]);
  };
  cell.onblur = () => look(kept, null);
  cell.onkeydown = (event) => step(kept, event, site, token);
  return cell;
}

// Of all cells one can be reached with Tab.
function focusOn(kept, site, token) {
  const [s, t] = kept.focus;
  const before = kept.columns.get(t)?.[s + 1];
  if (before) before.tabIndex = -1;
  kept.focus = [site, token];
  need(kept, token)[site + 1].tabIndex = 0;
}

function step(kept, event, site, token) {
  if (!plainKey(event)) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    return choose(kept, [site, token]);
  }
  const last = kept.header.tokens.length - 1;
  const move = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowDown: [1, 0], ArrowUp: [-1, 0], Home: [0, -token], End: [0, last - token] }[event.key];
  if (!move) return;
  event.preventDefault();
  const [s, t] = [site + move[0], token + move[1]];
  if (s < 0 || t < 0 || s >= kept.header.sites.length || t > last) return;
  const cell = need(kept, t)[s + 1];
  bring(kept, t, false);
  cell.focus({ preventScroll: true });
  cell.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function choose(kept, held) {
  kept.held = held;
  focusOn(kept, ...held);
  remark(kept);
  look(kept, null);
  kept.send("cell", held.join("."));
}

function remark(kept) {
  const [site, token] = kept.held;
  for (const [t, cells] of kept.columns)
    cells.forEach((cell, at) => {
      if (at === 0) return cell.classList.toggle("on", t === token);
      cell.setAttribute("aria-selected", t === token && at === site + 1);
      cell.tabIndex = kept.focus[0] === at - 1 && kept.focus[1] === t ? 0 : -1;
    });
  kept.rows.forEach((line, at) => line.classList.toggle("on", at === site + 1));
}

// Scroll a column into sight, clear of the heads of the rows: to the middle, or no further than it takes.
function bring(kept, token, toMiddle) {
  const { scroll, cell, side } = kept;
  const [left, room] = [token * cell, scroll.clientWidth - side];
  const [before, after] = [left < scroll.scrollLeft, left + cell > scroll.scrollLeft + room];
  if (before || after) scroll.scrollLeft = toMiddle ? left + cell / 2 - room / 2 : before ? left - cell / 2 : left + 1.5 * cell - room;
  kept.fill();
}

// One line on the cell that is pointed at, else on the one that is held.
function look(kept, over) {
  const { header, blocks, says } = kept;
  const [site, token] = over || kept.held;
  const at = site * header.tokens.length + token;
  const parts = [`${header.spoken[site]}, at `, word(header.tokens[token]), ` (token ${token}): `];
  for (let r = 0; r < header.top; r++) {
    const id = blocks.words[at * header.top + r];
    parts.push(word(header.labels[id], r ? "" : "first"), `${id === header.right[token] ? " ✓" : ""} ${chance(Math.exp(blocks.logp[at * header.top + r]))}${r < header.top - 1 ? ", " : ". "}`);
  }
  parts.push("Final answer ", word(header.labels[header.final[token]]), `: rank ${place(blocks.rank[at])}, probability ${chance(Math.exp(blocks.answer[at]))}. KL to the final ${nats(blocks.kl[at])}.`);
  says.replaceChildren(...parts);
}

function key(kept) {
  const { header } = kept;
  const box = make("p", "key");
  box.append(word("word", "same"), " the model’s final answer for this token");
  if (header.right.some((one) => one >= 0)) box.append(make("span", "", header.asksNext ? " · ✓ the word that really comes next" : " · ✓ the word that is hidden"));
  return box;
}

// Every cell as a few pixels, where the table is wider than its frame; the box is what the table shows.
function overview(kept) {
  const { header, words } = kept;
  const [rows, n] = [header.sites.length, header.tokens.length];
  const box = make("div", "map");
  const canvas = make("canvas");
  const glass = make("span", "glass");
  box.append(canvas, glass);
  box.setAttribute("aria-hidden", "true"); // the table below says the same, cell by cell
  canvas.width = n;
  canvas.height = rows;
  const paint = () => {
    const image = new ImageData(n, rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let at = 0; at < n * rows; at++) pixels[at] = words[Math.round(255 * Math.max(0, Math.min(1, share(kept, at))))];
    canvas.getContext("2d").putImageData(image, 0, 0);
  };
  const frame = () => {
    const { scroll, cell, side } = kept;
    const [from, width] = [scroll.scrollLeft / (n * cell), (scroll.clientWidth - side) / (n * cell)];
    glass.style.left = `${100 * from}%`;
    glass.style.width = `${100 * Math.min(1, width)}%`;
  };
  const to = (event) => {
    const { scroll, cell, side } = kept;
    const at = (event.clientX - box.getBoundingClientRect().left) / box.clientWidth;
    scroll.scrollLeft = at * n * cell - (scroll.clientWidth - side) / 2;
  };
  box.onpointerdown = (event) => {
    box.setPointerCapture(event.pointerId);
    to(event);
  };
  box.onpointermove = (event) => event.buttons && to(event);
  return { box, paint, frame };
}

// ---- one token through all sites --------------------------------------------------------------------------------------

function way(kept) {
  const { header, root } = kept;
  const focus = root.getRootNode().activeElement?.dataset.at;
  const title = make("h4", "", "The answer ");
  title.append(word(header.answer), " on its way, at ", word(header.where), ` (token ${header.at})`);
  const table = make("table");
  const heads = table.createTHead().insertRow();
  for (const text of ["site", "says", "p of the answer", "its rank", "KL"]) {
    const cell = make("th", "", text);
    cell.scope = "col";
    heads.append(cell);
  }
  const body = table.createTBody();
  const buttons = header.way.map((one, site) => {
    const line = body.insertRow();
    const button = make("button", "", header.sites[site]);
    button.dataset.at = site;
    button.tabIndex = site === Number(focus ?? header.site) ? 0 : -1;
    button.setAttribute("aria-label", `${header.spoken[site]}: ${one.word}. The answer ${chance(one.p)}, rank ${place(one.rank)}`);
    button.setAttribute("aria-pressed", site === header.site);
    button.onclick = () => kept.send("cell", `${site}.${header.at}`);
    line.onclick = (event) => event.target !== button && button.click();
    line.classList.toggle("on", site === header.site);
    line.insertCell().append(button);
    line.insertCell().append(word(one.word, one.same ? "same" : ""));
    const track = make("span", "track");
    track.append(make("span", "ink"));
    track.firstChild.style.width = `${100 * one.p}%`;
    line.insertCell().append(track, make("span", "figure", chance(one.p)));
    line.insertCell().textContent = place(one.rank);
    line.insertCell().textContent = one.kl > 0 && one.kl < 0.005 ? "< 0.01" : one.kl.toFixed(2);
    return button;
  });
  body.onkeydown = (event) => {
    const at = buttons.indexOf(event.target);
    const next = buttons[{ ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key]];
    if (at < 0 || !next || !plainKey(event)) return;
    event.preventDefault();
    buttons.forEach((button) => (button.tabIndex = button === next ? 0 : -1));
    next.focus();
  };
  root.replaceChildren(title, table);
  if (focus !== undefined) buttons[focus]?.focus({ preventScroll: true });
  bus.tell({ lens: { held: [header.site, header.at], sites: header.sites.length, tokens: header.nTokens } });
  return () => {};
}

// ---- the sum of a logit ---------------------------------------------------------------------------------------------

// Each group's bar begins where the one before it ended, so that the last one ends at the logit.
function sum(kept) {
  const { header, root } = kept;
  let at = 0;
  const ends = header.groups.map((group) => (at += group.value));
  const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const share = (value) => `${(100 * value) / (high - low || 1)}%`;
  const list = make("ol", "sum");
  const line = (name, from, to, value) => {
    const row = make("li");
    const track = make("span", "track");
    const ink = make("span", `ink ${value < 0 ? "down" : "up"}`);
    const zero = make("span", "zero");
    ink.style.left = share(Math.min(from, to) - low);
    ink.style.width = share(Math.abs(to - from));
    zero.style.left = share(-low);
    track.append(ink, zero);
    row.append(make("span", "", name), track, make("span", "figure", `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(3)}`));
    list.append(row);
    return row;
  };
  header.groups.forEach((group, g) => line(group.name, ends[g] - group.value, ends[g], group.value));
  line("sum", 0, header.total, header.total).className = "total";
  root.replaceChildren(list);
  return () => {};
}
