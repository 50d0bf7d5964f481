// @ts-check
// A panel on the page: its title, its finding, its figures, and further sentences; figures can be
// pressed, read with the arrow keys, stepped through and taken along as files.

import { Pen } from "./draw.js";
import { figure } from "./figures.js";
import { arrow, rove, stepped } from "./keys.js";
import { fitted, letter, make, mount, redraw } from "./mount.js";
import { fixed, tenths } from "./number_format.js";
import { bring, frame } from "./pane.js";
import { GAP, resolved, sheet, widths } from "./panel_layout.js";
import style from "./panel.css.js";
import { offer, shown } from "./svg_export.js";

/** @typedef {import("./mount.js").View} View */
const TYPE = 0.9; // of the page's letters
const PAUSE = 250; // milliseconds after the last step of a slider, before the address has it
const PLAY = 700; // milliseconds a frame
const MOVE = 300; // of these, that points move
const LINES = 14; // letters of height from which on a sentence scrolls
const FEW = 12; // frames that are walked through by buttons too, which stand above them

export default mount("panel", style, (view) => {
  if (view.same) return;
  const { figures } = view.header;
  const now = alike(view.header);
  if (now === view.alike && figures.some((/** @type {any} */ each) => each.frames))
    return view.figures.forEach((/** @type {any} */ each, /** @type {number} */ at) => each.go?.(figures[at].current, true)); // prettier-ignore
  view.alike = now;
  view.figures = resolved(figures, view.blocks);
  build(view);
});

/** A panel without what tells its frames apart: equal for two frames of one slider. @param {any} header */
const alike = (header) =>
  JSON.stringify({ ...header, token: "", finding: "", figures: header.figures.map((/** @type {any} */ each) => ({ ...each, current: 0 })) }); // prettier-ignore

/** @param {View} view */
function build(view) {
  const { header, figures } = view;
  const finding = make("p", { class: "finding", dir: "auto", role: "status" }, header.finding);
  view.focus = view.boxes?.map(focusOf) || [];
  view.boxes = figures.map(() => make("div", "figure"));
  const columns = figures.map((each, at) => {
    const walk = each.frames && slider(view, at, finding);
    const parts = [view.boxes[at], walk];
    return make("div", "column", ...(isWalked(each) ? parts.reverse() : parts));
  });
  const gap = `${GAP * TYPE * letter()}px`;
  const row = make("div", { class: "figures", style: { columnGap: gap } }, ...columns);
  const tip = make("div", { class: "tip", role: "status" });
  const more = header.details.length > 0 && make("details", "", make("summary", "", "Details"), ...header.details.map((line) => make("p", { dir: "auto" }, line))); // prettier-ignore
  redraw(view, [
    header.title && make("div", "head", make("h2", { dir: "auto" }, header.title), explained(header.terms)),
    finding,
    row,
    more,
    tip,
  ].filter(Boolean)); // prettier-ignore
  view.tip = tip;
  fitted(view, row, () => view.boxes.forEach((_, at) => paint(view, at)));
  view.root.onclick = (/** @type {MouseEvent} */ event) => press(view, /** @type {Element} */ (event.target), event); // prettier-ignore
  view.root.onkeydown = (/** @type {KeyboardEvent} */ event) => key(view, event);
  view.root.onpointermove = (/** @type {PointerEvent} */ event) => hover(view, event);
  view.root.onpointerleave = () => (tip.textContent = "");
  offer(view, header.title, (look) => sheet(view, look));
}

/** A mark that opens the meanings of the terms. @param {string[][]} terms */
function explained(terms) {
  if (!terms.length) return "";
  const names = terms.map(([name]) => name).join(", ");
  const mark = make("summary", { "aria-label": `Terms: ${names}`, title: names }, "?");
  const list = make("dl", "", ...terms.flatMap(([name, means]) => [make("dt", "", name), make("dd", "", means)])); // prettier-ignore
  const box = /** @type {HTMLDetailsElement} */ (make("details", "terms", mark, list));
  const close = () => (box.open = false);
  mark.addEventListener("blur", close);
  mark.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => event.key === "Escape" && close()); // prettier-ignore
  return box;
}

/** @param {View} view @param {number} at */
function paint(view, at) {
  const box = view.boxes[at];
  const size = TYPE * letter();
  const width = widths(box.parentElement.parentElement.clientWidth, view.figures, size)[at];
  const height = Math.max(22 * size, 0.5 * innerHeight);
  const pen = new Pen(view.look, size, true);
  pen.scrolls = true;
  const took = figure(pen, view.figures[at], { x: 0, y: 0, width, height });
  const focus = focusOf(box) ?? view.focus[at] ?? null;
  view.focus[at] = null;
  box.parentElement.style.width = `${width}px`;
  const group = { width, height: Math.ceil(took) + 2, role: "group" };
  const name = view.figures[at].title || view.header.title;
  box.replaceChildren(shown(pen.parts.join(""), { ...group, "aria-label": name }));
  if (pen.pane) scrolled(view, at, pen.pane, height);
  if (view.figures[at].kind === "tokenrow") rolled(box, took > LINES * size);
  const targets = [...box.querySelectorAll("g.target")];
  rove(targets, {
    held: targets.findIndex((each) => each.getAttribute("aria-pressed") === "true"),
  });
  if (focus !== null)
    /** @type {any} */ (box.querySelectorAll("[tabindex]")[focus])?.focus({ preventScroll: true });
}

/** A long sentence in a frame that scrolls, its selected token in sight. @param {HTMLElement} box @param {boolean} isLong */
function rolled(box, isLong) {
  box.classList.toggle("rolled", isLong);
  const selected = box.querySelector(".selected");
  if (isLong && !box.querySelector("g.target")) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
  if (!isLong || !selected) return;
  const [frame, one] = [box, selected].map((each) => each.getBoundingClientRect());
  box.scrollTop += one.top + one.height / 2 - frame.top - frame.height / 2;
}

/** A figure in a frame that scrolls, scrolled as it was, its marked cell in sight. @param {View} view @param {number} at @param {import("./pane.js").Pane} pane @param {number} most */
function scrolled(view, at, pane, most) {
  const { outer, fill } = frame(pane, most);
  view.boxes[at].append(outer);
  view.panes = { ...view.panes, [at]: { outer, pane } };
  const before = view.scrolled || [0, 0];
  [outer.scrollLeft, outer.scrollTop] = before;
  if (pane.mark) bring(outer, pane, pane.mark);
  fill();
  outer.addEventListener("scroll", () => {
    view.scrolled = [outer.scrollLeft, outer.scrollTop];
    view.tip.textContent = "";
  });
}

/** Which part of a figure has the focus, null for none. @param {Element} box */
function focusOf(box) {
  const active = /** @type {any} */ (box.getRootNode()).activeElement;
  const at = [...box.querySelectorAll("[tabindex]")].indexOf(active);
  return at < 0 ? null : at;
}

// ---- pressing and reading ------------------------------------------------------------------------

/** The figure that an element belongs to. @param {View} view @param {Element} target */
function owner(view, target) {
  const at = view.boxes.findIndex((/** @type {Element} */ box) => box.contains(target));
  const whole = view.figures[at];
  if (!["steps", "stack"].includes(whole?.kind)) return whole;
  if (whole.whole) return { ...whole.whole, go: whole.go };
  const { figures } = whole.kind === "stack" ? whole : whole.frames[whole.current];
  return figures.find((/** @type {any} */ each) => each.select.length) || figures[0];
}

/** @param {View} view @param {Element} target @param {MouseEvent} [event] */
function press(view, target, event) {
  const cells = target.closest("[data-cells]");
  if (cells && event) return choose(view, cells, cellUnder(cells, event));
  const part = target.closest("[data-select]");
  if (!part) return;
  const [values, names] = ["data-select", "data-names"].map((each) => JSON.parse(part.getAttribute(each) || "[]")); // prettier-ignore
  const steps = view.figures.find((/** @type {any} */ each) => each.whole && each.choice === names[0]); // prettier-ignore
  if (steps) steps.go(Number(values[0]));
  else send(view, names, values);
}

/** @param {View} view @param {string[]} names @param {any[]} values */
const send = (view, names, values) =>
  names.length &&
  view.send("select", Object.fromEntries(names.map((name, i) => [name, values[i]])));

/** @param {Element} cells @param {MouseEvent} event @returns {number[]} */
function cellUnder(cells, event) {
  const [m, n] = JSON.parse(cells.getAttribute("data-cells") || "[]");
  const box = cells.getBoundingClientRect();
  const inside = (/** @type {number} */ part, /** @type {number} */ of) => Math.max(0, Math.min(of - 1, Math.floor(part * of))); // prettier-ignore
  return [
    inside((event.clientY - box.top) / box.height, m),
    inside((event.clientX - box.left) / box.width, n),
  ];
}

/** @param {View} view @param {Element} cells @param {number[]} cell */
function choose(view, cells, [row, column]) {
  const matrix = owner(view, cells);
  if (matrix.go) return matrix.go(row);
  const keys = [matrix.keys?.[row] ?? `${row}`, matrix.column_keys?.[column] ?? `${column}`];
  send(view, matrix.select, keys);
}

/** @param {View} view @param {KeyboardEvent} event */
function key(view, event) {
  const target = /** @type {Element} */ (event.target);
  const enter = event.key === "Enter" || event.key === " ";
  if (target.matches("[data-cells]")) {
    const [m, n, row, column] = JSON.parse(target.getAttribute("data-cells") || "[]");
    const by = arrow(event);
    if (enter) choose(view, target, [row, column]);
    if (!by && !enter) return;
    event.preventDefault();
    const cell = by ? stepped([row, column], by, m, n) : [row, column];
    target.setAttribute("data-cells", JSON.stringify([m, n, ...cell]));
    const at = view.boxes.findIndex((/** @type {Element} */ box) => box.contains(target));
    if (view.panes?.[at]) bring(view.panes[at].outer, view.panes[at].pane, cell);
    tell(view, target, cell);
  } else if (enter && target.matches("g.target")) {
    event.preventDefault();
    press(view, target);
  }
}

/** @param {View} view @param {PointerEvent} event */
function hover(view, event) {
  const cells = /** @type {Element} */ (event.target).closest("[data-cells]");
  if (cells) tell(view, cells, cellUnder(cells, event));
  else view.tip.textContent = "";
}

/** Say a cell of a matrix beside it. @param {View} view @param {Element} cells @param {number[]} cell */
function tell(view, cells, [row, column]) {
  const { rows, columns, values, words, sides, missing, digits, unit } = owner(view, cells);
  const value = values[row * columns.length + column];
  const word = words?.[row * columns.length + column];
  const named = (/** @type {number} */ side, /** @type {string} */ label) => `${sides[side]} ${label}`.trim(); // prettier-ignore
  const exact = unit === "%" ? tenths(value) : fixed(value, digits + (word ? 0 : 1)) + (unit || "");
  const number = Number.isNaN(value) ? missing || "–" : exact;
  view.tip.textContent = words?.length
    ? `${rows[row]}, “${columns[column]}”: ${word ? `“${word}” ` : ""}${word && Number.isNaN(value) ? "" : number}`
    : `${named(0, rows[row])} → ${named(1, columns[column])}: ${number}`;
  const box = cells.getBoundingClientRect();
  const root = view.root.getBoundingClientRect();
  const [left, wide] = [box.left - root.left + (column / columns.length) * box.width, box.width / columns.length]; // prettier-ignore
  const right = left + wide + 8;
  const has = right + view.tip.offsetWidth <= root.width; // room to the right of the cell
  view.tip.style.left = `${has ? right : Math.max(0, left - view.tip.offsetWidth - 8)}px`;
  view.tip.style.top = `${box.top - root.top + (row / rows.length) * box.height - 8}px`;
}

// ---- frames --------------------------------------------------------------------------------------

/** Whether a figure is a few frames that are no sequence in time. @param {any} one */
const isWalked = (one) => one.kind === "steps" && one.frames.length <= FEW && !one.plays;

/** The slider of a figure of frames. @param {View} view @param {number} at @param {Element} finding */
function slider(view, at, finding) {
  const { frames, choice, title, current, plays } = view.figures[at];
  const last = frames.length - 1;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const input = make("input", { type: "range", min: 0, max: last, value: current, "aria-label": title || "Step", data: { focus: `slider ${at}` } }); // prettier-ignore
  const label = make("output", "", frames[current].label);
  /** @type {any} */
  let [later, next] = [];
  let sent = current;
  const go = (/** @type {number} */ to, echo = false) => {
    sent = to;
    input.value = `${to}`;
    label.textContent = frames[to].label;
    input.setAttribute("aria-valuetext", frames[to].label);
    if (frames[to].sentence) finding.textContent = frames[to].sentence;
    move(view, at, to, still);
    follow(view, choice, frames[to].x ?? to);
    clearTimeout(later);
    // While it plays the address waits for the last frame: what it brings would begin anew.
    if (!next && !echo) later = setTimeout(() => send(view, [choice], [frames[to].key || frames[to].label]), PAUSE); // prettier-ignore
  };
  const pause = () => {
    clearTimeout(next);
    next = undefined;
    play.textContent = "Play";
  };
  const run = (/** @type {number} */ to) => {
    if (!view.root.isConnected) return;
    if (to === last) pause();
    else next = setTimeout(run, PLAY, to + 1);
    go(to);
  };
  const start = () => {
    if (next) {
      pause();
      return go(Number(input.value));
    }
    play.textContent = "Pause";
    run(Number(input.value) < last ? Number(input.value) + 1 : 0);
  };
  const play = make("button", { type: "button", onclick: start }, "Play");
  view.figures[at].go = (/** @type {number} */ to, echo = false) => {
    if (echo && (to === sent || to === view.figures[at].current)) return; // the reader has gone on
    pause();
    go(to, echo);
  };
  const walk = (/** @type {string} */ name, /** @type {number} */ by) => {
    const onclick = () =>
      view.figures[at].go(Math.max(0, Math.min(last, Number(input.value) + by)));
    const data = { focus: `${name} ${at}` };
    return isWalked(view.figures[at]) && make("button", { type: "button", onclick, data }, name);
  };
  input.oninput = () => view.figures[at].go(Number(input.value));
  return make("div", "slider", plays && play, walk("Back", -1), walk("Next", 1), input, label);
}

/** Go to a frame, through what lies between where points move. @param {View} view @param {number} at @param {number} to @param {boolean} still */
function move(view, at, to, still) {
  const figure = view.figures[at];
  cancelAnimationFrame(view.moving);
  const from = figure.current;
  if (still || figure.kind !== "plane" || Math.abs(to - from) > 1) {
    figure.current = to;
    return paint(view, at);
  }
  const began = performance.now();
  const tick = (/** @type {number} */ now) => {
    const share = Math.min(1, Math.max(0, (now - began) / MOVE));
    figure.current = share === 1 ? to : from + (to - from) * share * share * (3 - 2 * share);
    paint(view, at);
    if (share < 1 && view.root.isConnected) view.moving = requestAnimationFrame(tick);
  };
  tick(began);
}

/** Mark a frame in the charts beside its slider. @param {View} view @param {string} choice @param {number} x */
function follow(view, choice, x) {
  view.figures.forEach((/** @type {any} */ figure, /** @type {number} */ at) => {
    const charts = [figure, ...(figure.figures || [])].filter((one) => choice && one.follows === choice); // prettier-ignore
    for (const chart of charts) chart.guides = [[x, ""]];
    if (charts.length) paint(view, at);
  });
}
