// @ts-check
// A panel on the page: its title, its finding, its figures, and further sentences; figures can be
// pressed, read with the arrow keys, stepped through and taken along as files.

import { guide, isWalked, nearest, placesOf } from "./axis.js";
import { Pen } from "./draw.js";
import { figure } from "./figures.js";
import { go as goInFlow, goOn, held, isSame, standing } from "./flow_levels.js";
import { fly, keysOf, outputs, player, pulse, remember } from "./flow_player.js";
import { besideGuess } from "./flow_question.js";
import { answered, inTheDark, isAsked, isFlow } from "./beam_figure.js";
import { formulaBox } from "./formula.js";
import { change, glide, startOf } from "./gliding.js";
import { bus } from "./bus.js";
import {
  headBeside,
  coarse,
  pointed as weightIn,
  spoken,
  wordOf as wordShown,
  tellVote,
} from "./head_matrices.js";
import { OWN, arrow, hearKeys, isPressed, plainKey, stepped } from "./keys.js";
import {
  COLUMN,
  columnsOf,
  hold,
  isAcross,
  moved,
  opened,
  ROW,
  said,
  unpack,
  value,
} from "./linked_weights.js";
import {
  hear,
  hostOf,
  letter,
  make,
  mount,
  redraw,
  resized,
  still,
  until,
  worded,
} from "./mount.js";
import { fixed, tenths } from "./number_format.js";
import { ahead, Echoes, whole } from "./optimistic_updates.js";
import { bring, frame, pad } from "./scroll_frame.js";
import { sentences } from "./sentences.js";
import { summed } from "./sum_motion.js";
import { swiped } from "./swipe.js";
import { printed } from "./on_paper.js";
import { GAP, inReach, resolved, rewrite, sheet, unframed, widths } from "./panel_layout.js";
import style from "./panel.css.js";
import { offer, shown } from "./svg_export.js";
import { explained, meanings, sentenceOf } from "./terms.js";
import { titleOfVotes } from "./vote_figure.js";

/** @typedef {import("./mount.js").View} View */
const words = sentences("flow");
const beside = sentences("formula");
const TYPE = 0.9; // of the page's letters
const PAUSE = 250; // milliseconds after the last step of a slider, before the address has it
const PLAY = 700; // milliseconds a frame
const READING = 1500; // milliseconds a frame that is read, as a step of a calculation
const MOVE = 300; // of these, that points move
const ABOVE = 360; // pixels of a window that stand above a table of words
const LINES = 14; // letters of height from which on a sentence scrolls
const [LINKED, HEADS] = ["linkedweights", "headmatrices"];
const MANY = 40; // rows of linked pictures from which on these scroll in a frame
const NARROW = 640; // pixels of a window below which linked pictures are folded under the sentence

export default mount("panel", style, (view) => {
  if (view.same) return;
  if (view.aside) {
    const { header, figures: shownFigures } = answered(view.header, view.header.figures);
    view.header = { ...header, figures: shownFigures };
  }
  const { figures } = view.header;
  const now = unframed(view.header);
  const walks = figures.some((/** @type {any} */ each) => each.frames || each.stops);
  if (now === view.alike && !view.recoloured && walks) {
    view.title?.replaceChildren(...titleOf(view)); // the word of a question may stand in it,
    rewrite(view); // and in its formulas
    for (const [at, each] of view.figures.entries()) each.go?.(figures[at].current, true);
    return;
  }
  // It comes in other colours, or while it plays with the names of its words.
  const goesOn = now === view.alike || (view.settle && isSame(view, figures));
  const again = goesOn && view.beam && held(view);
  view.alike = now;
  view.settle?.();
  const before = view.figures || [];
  const [places, below] = [outputs(view), standing(view)];
  view.figures = resolved(figures, view.blocks);
  for (const each of view.figures) if (isFlow(each)) remember(view, each);
  const starts = view.figures.map((/** @type {any} */ each, /** @type {number} */ at) =>
    each.kind === LINKED ? undefined : startOf(before[at], each),
  );
  build(view, starts);
  view.figures.forEach((_, at) => {
    if (starts[at]) {
      glide(view, at, before[at], paint);
      pulse(view, before[at]);
    } else if (view.figures[at].kind === LINKED) change(view, at, before[at], paint); // unpacked by now
    fly(view, at, before[at], places);
  });
  if (again) again();
  goOn(view, before, below);
  const [linked, grid] = [LINKED, HEADS].map((kind) =>
    view.figures.find((/** @type {any} */ each) => each.kind === kind),
  );
  if (grid?.follows === "head") followed(view, grid);
  const vote = view.figures.find((/** @type {any} */ each) => each.row?.length);
  if (vote) tellVote(vote);
  if (!linked) return;
  view.finding.replaceChildren(...said(unpack(linked)));
  bus.tell({ layer: linked.at[0], head: linked.at[1], votes: undefined });
  tellWord(view, linked);
  ahead(view, (address) => go(view, linked, address));
});

/** Put the panel on the page. @param {View} view @param {any[]} starts what is drawn at first of figures that change step by step */
function build(view, starts) {
  const { header, figures } = view;
  measure(view, view.root); // before anything is put there: afterwards the browser lays out all of it for the answer
  const terms = new Set();
  const sentence = sentenceOf(view, besideGuess(figures.find(isFlow), header.finding), terms);
  const style = { minHeight: view.finding?.style.minHeight || "" };
  const finding = make("p", { class: "finding", dir: "auto", role: "status", style }, ...sentence);
  view.finding = finding;
  view.title =
    header.title && !header.bare ? make("h2", { dir: "auto" }, ...titleOf(view)) : undefined;
  view.focus = view.boxes?.map(focusOf) || [];
  view.cursors = view.boxes?.map(cursorOf) || [];
  const tall = (/** @type {any} */ each) =>
    each.kind === LINKED && each.rows.length > MANY && !each.views.includes("matrix");
  view.boxes = figures.map((each) =>
    make("div", { translate: "no", class: `figure notranslate${tall(each) ? " tall" : ""}` }),
  );
  view.drawn = [];
  view.edges = [];
  view.root.dataset.panel = header.panel;
  const isDark = figures.some((each) => isFlow(each) && isAsked(each));
  view.root.classList.toggle("night", isDark);
  hostOf(view.root).dataset.night = isDark ? "on" : ""; // the page has links on it
  const columns = figures.map((each, at) => {
    const again = (/** @type {any} */ one) => paint(view, at, one);
    const bar = isFlow(each) ? player(view, at, again) : each.frames && slider(view, at, finding);
    const keys = isFlow(each) && !view.aside && keysOf(each);
    return make("div", "column", bar, view.boxes[at], keys);
  });
  const linked = figures.findIndex((/** @type {any} */ each) => each.kind === LINKED);
  const button = linked >= 0 && fold(view, linked);
  const gap = `${GAP * view.type}px`;
  const row = make("div", { class: "figures", style: { columnGap: gap } }, ...columns);
  const tip = make("div", { class: "tip notranslate", translate: "no", role: "status" });
  const [formulas, restate] = formulaBox(
    (view.written = header.formulas),
    (view.formulas ||= { filled: header.first || bus.now.steps?.panel === header.panel }),
  );
  view.restate = (/** @type {any} */ one) => restate({ focus: one?.focus || header.focus }, one);
  const walked = figures.find((each) => each.frames);
  view.restate(walked?.frames[walked.current]);
  const asked = header.formulas.length > 0 && !header.first && !header.bare; // on a press
  const isOpen = view.more ? view.more.open : asked && document.querySelector(".st-key-lesson-bar");
  const more =
    (asked || header.details.length > 0) &&
    make(
      "details",
      isOpen ? { open: "" } : "",
      make("summary", "", beside(asked ? "asked" : "details")),
      asked && formulas,
      ...header.details.map((line) =>
        make("p", { dir: "auto" }, ...explained(header.terms, line, terms)),
      ),
    );
  const toggled = () => {
    const isClosed = more && !(/** @type {HTMLDetailsElement} */ (more).open);
    hostOf(view.root).dataset.details = isClosed ? "closed" : ""; // the page has links beside it
  };
  if (more) /** @type {any} */ (more).ontoggle = () => [toggled(), asked && fit([])];
  view.more = more;
  toggled();
  redraw(
    view,
    [
      view.title,
      button ? make("div", "above", finding, button) : finding,
      header.formulas.length > 0 && !asked && formulas,
      row,
      more,
      tip,
      meanings(header.terms),
    ].filter(Boolean),
  );
  view.tip = tip;
  const fit = (/** @type {any[]} */ instead) =>
    figures.forEach((each, at) =>
      each.follows === "head" ? soon(view, at) : paint(view, at, instead[at]),
    );
  for (const frame of view.gliding || []) cancelAnimationFrame(frame);
  view.gliding = [];
  fit(starts);
  resized(view, row, view.room, () => {
    measure(view, row);
    fit([]);
  });
  view.rebuild = () => build(view, []);
  view.root.onclick = (/** @type {MouseEvent} */ event) =>
    press(view, /** @type {Element} */ (event.target), event);
  view.root.onkeydown = (/** @type {KeyboardEvent} */ event) => key(view, event);
  view.root.onpointermove = (/** @type {PointerEvent} */ event) => hover(view, event);
  view.root.onpointerleave = () => {
    away(view);
    view.finding.style.minHeight = "";
  };
  /** @type {any} */ (view.root).onfocusin = (/** @type {FocusEvent} */ event) =>
    focus(view, /** @type {Element} */ (event.target));
  /** @type {any} */ (view.root).onfocusout = () => away(view);
  offer(view, header.title, (look) => sheet(view, look));
  printed(view);
}

/** The title as nodes. @param {View} view @returns {(Node | string)[]} */
const titleOf = ({ header, figures: [first], look }) =>
  first?.kind === "sentencevotes"
    ? titleOfVotes({ look }, first, header.title)
    : explained(header.terms, header.title, new Set());

/** Note how wide the figures of a panel may be together, and the pixels of their type. @param {View} view @param {HTMLElement} element as wide as they are */
function measure(view, element) {
  view.room = element.clientWidth;
  view.type = TYPE * letter();
}

/** Paint a figure at the end of this task, once: the word and the head that it follows may come with another view. @param {View} view @param {number} at */
function soon(view, at) {
  const one = view.figures[at];
  if (view.soon === one) return;
  view.soon = one;
  queueMicrotask(() => {
    view.soon = undefined;
    if (view.figures[at] === one && view.root.isConnected) paint(view, at);
  });
}

/** @param {View} view @param {number} at @param {any} [one] in the place of the figure, on its way */
function paint(view, at, one) {
  if (!one) view.gliding[at] = cancelAnimationFrame(view.gliding[at]);
  if (!one && !isFlow(view.figures[at])) view.settle?.();
  const box = view.boxes[at];
  const { type: size, room } = view;
  const width = fitting(view, widths(room, view.figures, size), room, at);
  const height = Math.max(
    22 * size,
    view.figures[at].words?.length ? innerHeight - ABOVE : 0.5 * innerHeight,
  );
  const [shownFigure, look] = inTheDark(inReach(view, one || view.figures[at]), view.look);
  const pen = new Pen(look, size, true, view.header.special);
  pen.scrolls = true;
  const took = figure(pen, shownFigure, { x: 0, y: 0, width, height });
  const [{ kind }, next] = view.figures.slice(at);
  view.edges[at] = kind === "matrix" && next && next.kind !== kind ? Math.ceil(pen.edge) : width;
  const focused = focusOf(box) ?? view.focus[at] ?? null;
  view.focus[at] = null;
  box.parentElement.style.width = `${view.edges[at]}px`;
  if (!patched(view, at, pen, took) && pen.pane) scrolled(view, at, pen.pane, height);
  if (view.figures[at].kind === "tokenrow") rolled(box, took > LINES * size);
  const cells = box.querySelector("[data-cells]");
  const [before] = view.cursors.splice(at, 1, undefined);
  if (cells && before && before[0] === cells.getAttribute("data-start"))
    cells.setAttribute("data-cells", before[1]);
  const targets = [...box.querySelectorAll("g.button")];
  const stop = targets.findIndex((each) => each.getAttribute("aria-pressed") === "true");
  const stops = targets.filter((each) => each.matches(".flow-stop"));
  targets.forEach((each, i) =>
    each.setAttribute(
      "tabindex",
      (stops.length ? stops.includes(each) : i === Math.max(0, stop)) ? "0" : "-1",
    ),
  );
  const all = /** @type {HTMLElement[]} */ ([...box.querySelectorAll("[tabindex]")]);
  // A part that has a name of its own is never another one, whatever a press on it does next.
  const isSame = (/** @type {HTMLElement} */ { dataset }) =>
    focused.part ? dataset.at === focused.part : dataset.select === focused.select;
  const named = focused?.select && all.find(isSame);
  const successor = named || (focused && !focused.part && all[focused.at]);
  if (successor && focusOf(box)?.at !== all.indexOf(successor))
    successor.focus({ preventScroll: true });
}

/** How wide a figure may be: what a matrix beside it leaves of its own width is added. @param {View} view @param {number[]} wide @param {number} room @param {number} at */
function fitting(view, wide, room, at) {
  const left = at > 0 ? wide[at - 1] - view.edges[at - 1] : 0;
  return left > 0 && wide[at] < room
    ? Math.min(wide[at] + left, Math.max(wide[at], room / 2))
    : wide[at];
}

/** Where the arrow keys of a matrix began, with its size, and where they are. @param {Element} box */
function cursorOf(box) {
  const cells = box.querySelector("[data-cells]");
  return cells && [cells.getAttribute("data-start"), cells.getAttribute("data-cells")];
}

/** Put what a pen drew on the page. True where the picture had the same size, of which only what is different is put there. @param {View} view @param {number} at @param {Pen} pen @param {number} took */
function patched(view, at, { parts, pane }, took) {
  const box = view.boxes[at];
  const size = { width: parseInt(box.parentElement.style.width), height: Math.ceil(took) + 2 };
  const fixed = JSON.stringify([size, parts.length, pane && { ...pane, front: "" }]);
  const drawn = view.drawn[at];
  const name = view.figures[at].title || view.header.title;
  view.drawn[at] = { parts, fixed };
  if (drawn?.fixed === fixed) {
    box.firstChild.setAttribute("aria-label", name);
    const old = [...box.firstChild.childNodes];
    const changed = [...parts.keys()].filter((i) => parts[i] !== drawn.parts[i]);
    const made = [...shown(changed.map((i) => parts[i]).join(""), {}).childNodes];
    changed.forEach((i, each) => old[i].replaceWith(made[each]));
    if (pane) box.querySelector("g.front").replaceChildren(...shown(pane.front, {}).childNodes);
    return true;
  }
  box.replaceChildren(shown(parts.join(""), { ...size, role: "group", "aria-label": name }));
  return false;
}

/** A long sentence in a frame that scrolls, its selected token in sight and its first row whole. @param {HTMLElement} box @param {boolean} isLong */
function rolled(box, isLong) {
  box.classList.toggle("rolled", isLong);
  const selected = box.querySelector(".selected");
  if (isLong && !box.querySelector("g.target")) box.tabIndex = 0;
  else box.removeAttribute("tabindex");
  if (!isLong || !selected) return;
  const above = box.getBoundingClientRect().top - box.scrollTop;
  const top = (/** @type {Element} */ each) => each.getBoundingClientRect().top - above;
  const centred = top(selected) - box.clientHeight / 2;
  box.scrollTop =
    Math.max(0, ...[...box.querySelectorAll(".row")].map(top).filter((row) => row <= centred)) - 4;
}

/** A figure in a frame that scrolls, scrolled as it was, its marked cell in sight. @param {View} view @param {number} at @param {import("./scroll_frame.js").Pane} pane @param {number} most */
function scrolled(view, at, pane, most) {
  const { outer, fill } = frame(pane, most);
  view.boxes[at].append(outer);
  pad(outer, pane);
  view.panes = { ...view.panes, [at]: { outer, pane } };
  const before = view.scrolled || [0, 0];
  [outer.scrollLeft, outer.scrollTop] = before;
  const mark = JSON.stringify(pane.mark);
  if (pane.mark && mark !== view.mark) bring(outer, pane, pane.mark);
  view.mark = mark;
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
  if (at < 0) return null;
  return { at, select: active.getAttribute("data-select"), part: active.dataset.at };
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
  const linked = linkedAt(view, part);
  if (linked) return select(view, linked, hold(linked, ...wordOf(part)));
  const [values, names] = ["data-select", "data-names"].map((each) =>
    JSON.parse(part.getAttribute(each) || "[]"),
  );
  const grid = kindAt(view, part, HEADS);
  if (grid?.follows && names[0] === "all") return more(view, grid);
  if (grid?.follows) open(values);
  const steps = view.figures.find(
    (/** @type {any} */ each) => each.whole && each.choice === names[0],
  );
  if (steps) steps.go(Number(values[0]));
  else send(view, names, values);
}

/** @param {View} view @param {string[]} names @param {any[]} values */
function send(view, names, values) {
  if (!names.length) return;
  const select = Object.fromEntries(names.map((name, i) => [name, values[i]]));
  if (view.figures.some(isFlow)) goInFlow(view, select);
  else view.send("select", select);
}

/** @param {Element} cells @param {MouseEvent} event @returns {number[]} */
function cellUnder(cells, event) {
  const [m, n] = JSON.parse(cells.getAttribute("data-cells") || "[]");
  const box = cells.getBoundingClientRect();
  const inside = (/** @type {number} */ part, /** @type {number} */ of) =>
    Math.max(0, Math.min(of - 1, Math.floor(part * of)));
  return [
    inside((event.clientY - box.top) / box.height, m),
    inside((event.clientX - box.left) / box.width, n),
  ];
}

/** @param {View} view @param {Element} cells @param {number[]} cell */
function choose(view, cells, [row, column]) {
  const matrix = owner(view, cells);
  if (matrix.kind === LINKED) return select(view, matrix, opened(matrix, [row, column]));
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
    if (target.isConnected) tell(view, target, cell);
  } else if (enter && target.matches("g.target")) {
    if (kindAt(view, target, "flow") && isPressed(target)) return; // the flow has its own keys
    event.preventDefault();
    press(view, target);
  } else if (target.matches("g.button") && !kindAt(view, target, "flow")) walk(view, target, event);
}

/** The keys that go from one button of a figure to another; Escape lets a word go. @param {View} view @param {Element} target @param {KeyboardEvent} event */
function walk(view, target, event) {
  const linked = linkedAt(view, target);
  const [axis] = [ROW, COLUMN].filter((each) => linked?.selected[each] >= 0);
  if (event.key === "Escape" && axis !== undefined && plainKey(event))
    return select(view, linked, hold(linked, axis, linked.selected[axis]));
  const box = view.boxes.find((/** @type {Element} */ each) => each.contains(target));
  const list = /** @type {any[]} */ ([...box.querySelectorAll("g.button")]);
  const [down, right] = arrow(event) || [NaN, NaN];
  const ends = { Home: 0, End: list.length - 1 };
  const across = (/** @type {Element | undefined} */ one) => one?.getBoundingClientRect();
  const [own, next] = [target, list[list.indexOf(target) + 1]].map(across);
  const isLeftwards = own && next && Math.abs(own.top - next.top) < 1 && next.right <= own.left;
  const by = down * (kindAt(view, target, HEADS)?.shape[1] || 1) + (isLeftwards ? -right : right);
  const to = plainKey(event) ? (ends[event.key] ?? list.indexOf(target) + by) : NaN;
  if (!list[to]) return;
  event.preventDefault();
  list.forEach((each, at) => each.setAttribute("tabindex", at === to ? "0" : "-1"));
  list[to].focus();
}

/** The finding does not shrink while the pointer is here: no picture moves away under it. @param {View} view */
function reserve(view) {
  view.finding.style.minHeight = `${view.finding.getBoundingClientRect().height}px`;
}

/** @param {View} view @param {PointerEvent} event */
function hover(view, event) {
  reserve(view);
  const target = /** @type {Element} */ (event.target);
  const cells = target.closest("[data-cells]");
  if (cells) return tell(view, cells, cellUnder(cells, event));
  view.tip.textContent = "";
  const part = target.closest("[data-select]");
  if (!part) return away(view);
  const linked = event.pointerType !== "touch" && linkedAt(view, part);
  const grid = kindAt(view, part, HEADS);
  const flow = kindAt(view, part, "flow");
  if (flow) return overFlow(view, flow, part);
  if (linked) look(view, linked, pointed(part));
  else if (grid?.follows) hint(view, grid, part, event);
  else if (kindAt(view, part, "plane"))
    say(view, pointsUnder(part, event).join(", "), part.getBoundingClientRect());
  else away(view);
}

const REACH = 8; // pixels around the pointer in which points are named together

/** The names of a point and of those that lie under it. @param {Element} part @param {PointerEvent} event */
function pointsUnder(part, { clientX: x, clientY: y }) {
  const targets = [...(part.parentElement?.querySelectorAll("g.target") || [])];
  const under = targets.filter((each) => {
    const { left, top, width, height } = each.getBoundingClientRect();
    return each === part || Math.hypot(left + width / 2 - x, top + height / 2 - y) < REACH;
  });
  return under.map((each) => each.getAttribute("aria-label"));
}

// ---- all heads -----------------------------------------------------------------------------------

/** The figure of a kind around an element, undefined for another. @param {View} view @param {Element} target @param {string} kind */
function kindAt(view, target, kind) {
  const one =
    view.figures[view.boxes.findIndex((/** @type {Element} */ box) => box.contains(target))];
  return one?.kind === kind ? one : undefined;
}

/** Follow the head and the word on screen. @param {View} view @param {any} grid */
function followed(view, grid) {
  const at = view.figures.indexOf(grid);
  const now = () => JSON.stringify([wordShown(grid), bus.now.layer, bus.now.head, bus.now.votes]);
  let drawn = now();
  bus.tell({
    coarse: (/** @type {number} */ layer, /** @type {number} */ head) => coarse(grid, layer, head),
  });
  hear(view, () => {
    if (drawn === now()) return;
    drawn = now();
    soon(view, at);
  });
  swiped(view, (by) => {
    const names = headBeside(grid, by);
    open(names);
    send(view, grid.select, names);
  });
}

/** A head was chosen: its picture shows it at once. @param {string[]} head */
function open([layer, head]) {
  const { word } = bus.now;
  const token = word?.axis === ROW && word.at >= 0 ? { token: `${word.at}` } : {};
  bus.tell({
    layer: Number(layer),
    head: Number(head),
    ahead: { layer, head, selected: "none", ...token },
  });
}

/** All heads of a large model, or the strongest; the button keeps the focus. @param {View} view @param {any} grid */
function more(view, grid) {
  grid.all = !grid.all;
  paint(view, view.figures.indexOf(grid));
  /** @type {SVGElement | null} */ (view.root.querySelector("g.more"))?.focus({
    preventScroll: true,
  });
}

/** Say the head, and the weight under the pointer. @param {View} view @param {any} grid @param {Element} part @param {PointerEvent} [event] */
function hint(view, grid, part, event) {
  const [layer, head] = JSON.parse(part.getAttribute("data-select") || "[]").map(Number);
  const at = layer * grid.shape[1] + head;
  const thumb = part.querySelector(".thumb")?.getBoundingClientRect();
  if (!thumb) return;
  const share = event
    ? [(event.clientY - thumb.top) / thumb.height, (event.clientX - thumb.left) / thumb.width]
    : [-1];
  const inside = share.every((each) => each >= 0 && each < 1);
  view.finding.replaceChildren(...(inside ? weightIn(grid, at, share) : [spoken(grid, at)]));
}

// ---- the whole machine ----------------------------------------------------------------------------

/** The head under the pointer is drawn alone and said. @param {View} view @param {any} flow @param {Element} [part] */
function overFlow(view, flow, part) {
  const [values, names] = ["data-select", "data-names"].map((each) =>
    JSON.parse(part?.getAttribute(each) || "[]"),
  );
  const isHead = names.includes("head") && values[2] !== "";
  const over = isHead
    ? { attention: values[0], layer: Number(values[1]), head: Number(values[2]) }
    : undefined;
  const label = part?.getAttribute("aria-label");
  if (JSON.stringify(over) !== JSON.stringify(flow.over)) {
    flow.over = over;
    paint(view, view.figures.indexOf(flow));
  }
  if (part && label && (isHead || part.matches(".flow-ffn")))
    say(view, label, part.getBoundingClientRect());
}

// ---- linked weights ------------------------------------------------------------------------------

/** @param {View} view @param {Element} target */
const linkedAt = (view, target) => kindAt(view, target, LINKED);

/** The axis and the place of a word. @param {Element} part @returns {[number, number]} */
function wordOf(part) {
  const [[at], [name]] = ["data-select", "data-names"].map((each) =>
    JSON.parse(part.getAttribute(each) || "[]"),
  );
  return [name === "column" ? COLUMN : ROW, Number(at)];
}

/** A word as what is pointed at. @param {Element} part */
function pointed(part) {
  const [axis, at] = wordOf(part);
  return axis === ROW ? [at, -1] : [-1, at];
}

/** @param {View} view @param {any} linked @param {number[] | null} over */
function look(view, linked, over) {
  if (`${linked.over}` === `${over}`) return;
  linked.over = over;
  drawn(view, linked);
}

/** @param {View} view @param {any} linked */
function drawn(view, linked) {
  view.finding.replaceChildren(...said(linked));
  paint(view, view.figures.indexOf(linked));
}

/** Nothing is pointed at. @param {View} view */
function away(view) {
  view.tip.textContent = "";
  for (const each of view.figures) {
    if (each.kind === LINKED && each.over) look(view, each, null);
    if (each.kind === "flow" && each.over) overFlow(view, each);
    if (each.kind !== HEADS || !each.follows) continue;
    view.finding.replaceChildren(...sentenceOf(view, view.header.finding));
  }
}

/** A word with the focus of the keyboard is as one under the pointer. @param {View} view @param {Element} target */
function focus(view, target) {
  const linked = target.matches("g.button:focus-visible") && linkedAt(view, target);
  if (linked) look(view, linked, pointed(target));
  const grid = target.matches("g.cell:focus-visible") && kindAt(view, target, HEADS);
  if (grid && grid.follows) hint(view, grid, target);
}

/** Show a selection at once, and say it. @param {View} view @param {any} linked @param {Record<string, number>} what */
function select(view, linked, what) {
  linked.over = null;
  drawn(view, linked);
  changed(view, linked);
  view.send("select", what);
}

/** The page's own picture is another one now: whatever comes is drawn anew. @param {View} view @param {any} linked */
function changed(view, linked) {
  const finding = view.finding.textContent || "";
  view.header = { ...view.header, token: "", finding };
  tellWord(view, linked);
}

/** The selected word, for the grid of all heads. @param {View} view @param {any} linked */
function tellWord(view, linked) {
  const { selected, places, sizes, firsts } = linked;
  const axis = selected[ROW] >= 0 ? ROW : COLUMN;
  const at =
    selected[axis] < 0 ? -1 : ((firsts || places)[axis]?.[selected[axis]] ?? selected[axis]);
  const word = { axis, at, rows: sizes[ROW], columns: sizes[COLUMN] };
  if (JSON.stringify(word) !== JSON.stringify(bus.now.word)) bus.tell({ word });
}

/** Go to the head and the word of an address, from what is here of them. @param {View} view @param {any} linked @param {Record<string, string>} address */
function go(view, linked, address) {
  const [layer, head] = [whole(address.layer, 1e3), whole(address.head, 1e3)];
  unpack(linked);
  if (isAcross(linked) || linked.firsts || linked.places.some(Boolean)) return; // tokens are other ones than the address's
  const token = whole(address.token, linked.n);
  /** @type {any} */
  let before;
  const isOther = layer >= 0 && head >= 0 && `${linked.at}` !== `${[layer, head]}`;
  if (isOther) {
    const made = bus.now.coarse?.(layer, head);
    if (made?.rows !== linked.rows.length || made.weight.length !== linked.weight.length) return;
    before = { ...linked };
    moved(linked, layer, head, made);
    view.header.title = `Layer ${layer}, head ${head}`;
    const title = view.root.querySelector("h2");
    if (title) title.replaceChildren(...worded(view.header.title));
  } else if (token === linked.selected[ROW]) return;
  else if (token < 0 && address.selected !== "none") return; // which word is selected, the page says
  Object.assign(linked, { selected: [token, token], cell: null, over: null });
  drawn(view, linked);
  change(view, view.figures.indexOf(linked), before, paint);
  changed(view, linked);
  if (isOther) bus.tell({ layer, head });
}

/** On a phone the sentence is the picture: the others are opened below it. @param {View} view @param {number} at */
function fold(view, at) {
  const one = view.figures[at];
  if (innerWidth >= NARROW || !one.views.length) return undefined;
  one.folded = !view.unfolded;
  const label = () =>
    `${one.folded ? "Show" : "Hide"} ${one.views.join(" and ").replace("links", "lines")}`;
  const onclick = () => {
    one.folded = view.unfolded;
    view.unfolded = !view.unfolded;
    button.textContent = label();
    paint(view, at);
  };
  const button = make(
    "button",
    { class: "small fold", data: { focus: `fold ${at}` }, onclick },
    label(),
  );
  return button;
}

/** Say a cell of a matrix beside it. @param {View} view @param {Element} cells @param {number[]} cell */
function tell(view, cells, [row, column]) {
  const whole = owner(view, cells);
  const { rows, values, words, sides, missing, digits, unit } = whole;
  const columns = whole.kind === LINKED ? columnsOf(whole) : whole.columns;
  const named = (/** @type {number} */ side, /** @type {string} */ label) =>
    `${sides[side]} ${label}`.trim();
  const number = (/** @type {string} */ word) => {
    if (whole.kind === LINKED) return value(whole, row, column);
    const each = values[row * columns.length + column];
    if (Number.isNaN(each)) return word ? "" : missing || "–";
    return unit === "%" ? tenths(each) : fixed(each, digits + (word ? 0 : 1)) + (unit || "");
  };
  const word = words?.[row * columns.length + column];
  const line = words?.length
    ? `${rows[row]}, “${columns[column]}”: ${word ? `“${word}” ` : ""}${number(word)}`
    : `${named(0, rows[row])} → ${named(1, columns[column])}: ${number("")}`;
  if (whole.kind === LINKED) look(view, whole, [row, column]);
  const { left, top, width, height } = cells.getBoundingClientRect();
  const [wide, high] = [width / columns.length, height / rows.length];
  say(view, line, { left: left + column * wide, top: top + row * high, width: wide });
}

/** Say something beside a box of the window: to its right where there is room. @param {View} view @param {string} what @param {{ left: number, top: number, width: number }} box */
function say({ tip, root }, what, { left, top, width }) {
  tip.textContent = what;
  const all = root.getBoundingClientRect();
  const right = left - all.left + width + 8;
  tip.style.left = "0"; // where it has its whole width
  const has = right + tip.offsetWidth <= all.width;
  const before = Math.max(0, left - all.left - tip.offsetWidth - 8);
  tip.style.left = `${has ? right : Math.min(before, all.width - tip.offsetWidth)}px`;
  tip.style.top = `${top - all.top - 8}px`;
}

// ---- frames --------------------------------------------------------------------------------------

/** The slider of a figure of frames. @param {View} view @param {number} at @param {Element} finding */
function slider(view, at, finding) {
  const { frames, choice, title, current, plays } = view.figures[at];
  const last = frames.length - 1;
  const walked = isWalked(view.figures[at]);
  const [places, low, high] = placesOf(view.figures, view.figures[at]);
  const [pace, led] = [walked ? READING : PLAY, view.figures.some(isFlow)];
  const names = led ? [words("play"), words("stop")] : ["Play", "Pause"];
  const input = make("input", {
    type: "range",
    min: low,
    max: high,
    step: "any",
    value: places[current],
    "aria-label": title || "Step",
    "aria-valuetext": frames[current].label,
    data: { focus: `slider ${at}` },
  });
  const label = make("output", "", frames[current].label);
  /** @type {any} */
  let [later, next] = [];
  const echoes = new Echoes();
  let on = current; // the frame at which the slider stands
  const go = (/** @type {number} */ to, echo = false) => {
    on = to;
    input.value = `${places[to]}`;
    label.textContent = frames[to].label;
    input.setAttribute("aria-valuetext", frames[to].label);
    if (frames[to].sentence) finding.replaceChildren(...sentenceOf(view, frames[to].sentence));
    view.restate(frames[to]);
    follow(view, choice, frames[to], to);
    move(view, at, to);
    clearTimeout(later);
    later = undefined;
    // While it plays the address waits for the last frame: what it brings would begin anew.
    if (!next && !echo) later = setTimeout(report, PAUSE, to);
  };
  const report = (/** @type {number} */ to) => {
    later = undefined;
    echoes.sent.push(to);
    send(view, [choice], [frames[to].key || frames[to].label]);
  };
  const pause = () => {
    clearTimeout(next);
    next = undefined;
    view.root.removeEventListener("pointerdown", stop);
    play.textContent = names[0];
  };
  const run = (/** @type {number} */ to) => {
    if (!view.root.isConnected) return;
    if (to === last) pause();
    else next = setTimeout(run, pace, to + 1);
    go(to);
  };
  const start = () => {
    if (next) {
      pause();
      return go(on);
    }
    play.textContent = names[1];
    if (walked) view.root.addEventListener("pointerdown", stop);
    run(on < last ? on + 1 : 0);
  };
  const stop = (/** @type {Event} */ { target }) => target !== play && start();
  const shortcut = walked ? { "aria-keyshortcuts": "Space" } : {};
  const play = led
    ? view.play // one player
    : make("button", { type: "button", onclick: start, ...shortcut }, names[0]);
  view.figures[at].go = (/** @type {number} */ to, echo = false) => {
    if (echo && (echoes.takes(to) || later || to === view.figures[at].current)) return; // the reader has gone on
    pause();
    if (to === view.figures[at].current && to === on) return; // the end of the walk
    go(to, echo);
  };
  const step = (/** @type {number} */ by) =>
    view.figures[at].go(Math.max(0, Math.min(last, on + by)));
  const walk = (/** @type {string} */ name, /** @type {number} */ by) => {
    const data = { focus: `${name} ${at}` };
    return walked && make("button", { type: "button", onclick: () => step(by), data }, name);
  };
  if (walked) {
    view.figures[at].toggle = start;
    if (!led) hearKeys(view, (event, inside) => stepKey(view, at, event, inside));
  }
  input.oninput = () => {
    view.figures[at].go(nearest(places, Number(input.value)));
    input.value = `${places[on]}`;
  };
  input.onkeydown = (/** @type {KeyboardEvent} */ event) => {
    const by = arrow(event);
    if (by) event.preventDefault();
    if (by) step(by[1] || -by[0]);
  };
  const own = (plays || walked) && !led && play;
  return make("div", "slider", own, walk("Back", -1), walk("Next", 1), input, label);
}

/** What a key does to steps in sight, undefined for nothing: Space plays them, left and right go to the one before or after; not in a lesson or a presentation, which have these keys. @param {View} view @param {number} at @param {KeyboardEvent} event @param {Element | null} inside */
function stepKey(view, at, event, inside) {
  const { top, bottom } = view.boxes[at].getBoundingClientRect();
  if (bus.now.presenter || bus.now.steps || bottom < 0 || top > innerHeight) return undefined;
  const { go, current, frames, toggle } = view.figures[at];
  const [, right] = arrow(event) || [0, 0];
  const to = current + right;
  if (right && frames[to] && !inside?.closest("[data-cells], input, g.target")) return () => go(to);
  return event.key === " " && !inside?.closest(OWN) ? toggle : undefined;
}

/** Go to a frame, through what lies between where points move. @param {View} view @param {number} at @param {number} to */
function move(view, at, to) {
  const figure = view.figures[at];
  cancelAnimationFrame(view.moving);
  const from = figure.current;
  if (still() || figure.kind !== "plane" || Math.abs(to - from) > 1) {
    figure.current = to;
    paint(view, at);
    return still() || to !== from + 1 || figure.kind !== "steps" || summed(view, at);
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

/** Mark a frame in the charts beside its slider, and show its matrix in the place of the one there. @param {View} view @param {string} choice @param {any} frame @param {number} to its number */
function follow(view, choice, { x = null, beside, label }, to) {
  view.figures.forEach((/** @type {any} */ figure, /** @type {number} */ at) => {
    if (!choice) return;
    if (figure.kind === "matrix" && figure.follows === choice && beside) {
      view.figures[at] = { ...figure, ...beside };
      paint(view, at);
      if (figure.values !== beside.values) change(view, at, figure, paint);
      return;
    }
    const charts = [figure, ...(figure.figures || [])].filter((one) => one.follows === choice);
    for (const chart of charts) guide(chart, x ?? to, label);
    if (charts.length) paint(view, at);
  });
}
