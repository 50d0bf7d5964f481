// @ts-check
// Curves over the steps of a training, panels one below the other, and the step that is looked at.

import { scale, through, ticks } from "./axis.js";
import style from "./line_chart.css.js";
import { plainKey } from "./keys.js";
import { fitted, make, mount, redraw } from "./mount.js";
import { count, fixed, short, spokenLine } from "./number_format.js";
import { offer, node, paper, tag, written } from "./svg_export.js";
import { stepper } from "./stepper.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {import("./theme.js").Look} Look */

const A_STEP = 900; // milliseconds while playing
const EDGE = { left: 40, right: 128, top: 22, foot: 26, between: 20 };
const HIGH = [118, 168]; // pixels of a panel, and of the lowest
const APART = 14; // between names at the ends of lines
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "5 5", "3 2 3 6"]; // so that no line is told by colour alone

export default mount("curves", style, (view) => {
  const { header, before, root } = view;
  view.n = header.steps.length;
  const other = `${before?.steps}` !== `${header.steps}`;
  // A step that this view reported itself is no news: the reader may have gone on since.
  const echo = (view.sent ||= []).indexOf(header.at);
  const asked = other || (echo < 0 && header.at !== view.reported);
  if (echo < 0) view.reported = header.at;
  view.sent.splice(0, echo + 1);
  if (asked) view.step = Math.max(0, header.at);
  if (other) {
    view.stepper?.halt();
    view.stepper = view.n > 1 ? steps(view) : undefined;
  }
  if (!view.same || other) drawn(view);
  // What presenters' remote controls send.
  root.onkeydown = (event) => {
    const by = plainKey(event) && { PageDown: 1, PageUp: -1 }[event.key];
    if (!by || !view.stepper) return;
    event.preventDefault();
    view.stepper.go(view.step + by);
  };
  show(view);
});

/** @param {View} view */
function steps(view) {
  const said = (/** @type {number} */ step) => `Step ${count(view.header.steps[step])}`;
  const report = (/** @type {number} */ step) => {
    if (view.reported === step) return;
    view.reported = step;
    view.sent.push(step);
    view.send("step", step);
  };
  return stepper(view, {
    n: view.n,
    label: "Checkpoint",
    first: 0,
    pause: A_STEP,
    says: (step) => [said(step), said(step)],
    // What is drawn elsewhere of a step follows while it plays too.
    go: (step, done, byClock) => {
      if (byClock) report(step);
      done();
    },
    show: () => show(view),
    told: report,
  });
}

/** @param {View} view */
function drawn(view) {
  const { header, look } = view;
  const value = spokenLine("value");
  const plot = make("div", {
    class: "plot",
    role: "img",
    "aria-label": `${header.about} ${ends(header)}`,
    onmousemove: (event) => {
      if (view.picture) view.read(stepAt(view, plot, event));
    },
    onmouseleave: () => show(view),
    onclick: (event) => {
      if (!view.stepper) return;
      const step = stepAt(view, plot, event);
      const apart = header.steps.map((each) =>
        Math.abs(view.picture.x(each) - view.picture.x(step)),
      );
      view.stepper.go(apart.indexOf(Math.min(...apart)));
    },
  });
  view.read = (/** @type {number} */ step) => {
    value.textContent = reading(header, step);
    view.picture?.mark(step);
  };
  offer(view, "Curves", (on) => file(view, on));
  redraw(view, [view.stepper?.box, plot, value].filter(Boolean));
  fitted(view, view.root, () => {
    const width = Math.max(280, Math.round(plot.clientWidth));
    view.picture = picture(header, look, width);
    const size = { viewBox: `0 0 ${width} ${view.picture.height}`, "font-family": look.font };
    plot.replaceChildren(node("svg", size, ...view.picture.parts, view.picture.line));
    show(view);
  });
}

/** @param {View} view */
function show(view) {
  const { header } = view;
  view.stepper?.mark();
  const step = header.steps[view.step] ?? header.high;
  view.root.dataset.step = step;
  view.read(step);
}

/** The step under the pointer. @param {View} view @param {HTMLElement} plot @param {MouseEvent} event */
function stepAt({ picture: drawn, header }, plot, event) {
  const box = plot.getBoundingClientRect();
  const x = ((event.clientX - box.left) / box.width) * drawn.width;
  const all = header.panels.flatMap((panel) => panel.lines.flatMap((line) => line.points));
  let best = header.high;
  for (const [step] of all)
    if (Math.abs(drawn.x(step) - x) < Math.abs(drawn.x(best) - x)) best = step;
  return best;
}

/** The point of a line at a step, or the last one before. */
const pointAt = ({ points }, step) => points.filter(([at]) => at <= step).at(-1) ?? points[0];

function reading({ panels }, step) {
  const told = panels.flatMap(({ lines, digits }) =>
    lines
      .filter(({ points }) => points.length)
      .map((line) => `${line.name} ${fixed(pointAt(line, step)[1], digits)}`),
  );
  return `Step ${count(step)}: ${told.join(" · ")}`;
}

const ends = ({ panels, high }) =>
  panels.some(({ lines }) => lines.some(({ points }) => points.length))
    ? `At the end, ${reading({ panels }, high)}.`
    : "Nothing yet.";

/** The picture for a width. @param {any} header @param {Look} look @param {number} width */
function picture(header, look, width) {
  const narrow = width < 420;
  const right = width - (narrow ? 96 : EDGE.right);
  const along = scale(
    header.low,
    header.high,
    EDGE.left + (header.zero ? 14 : 0),
    right,
    header.log,
  );
  const x = (/** @type {number} */ step) =>
    header.log
      ? step > 0
        ? along(step)
        : EDGE.left
      : scale(header.zero ? 0 : header.low, header.high, EDGE.left, right)(step);
  let top = EDGE.top;
  const parts = [];
  const places = [];
  header.panels.forEach((panel, at) => {
    const bottom = top + HIGH[at === header.panels.length - 1 ? 1 : 0];
    const y = reach(panel, bottom, top);
    parts.push(...frame(panel, look, y, top, right), ...curves(panel, look, x, y, right, narrow));
    places.push({ panel, y });
    top = bottom + EDGE.top + EDGE.between;
  });
  const bottom = top - EDGE.top - EDGE.between;
  parts.push(...under(header, look, x, bottom, right));
  const line = node("g", { class: "now" });
  const mark = (/** @type {number} */ step) => {
    const rule = { x1: x(step), x2: x(step), y1: EDGE.top - 6, y2: bottom, stroke: look.ink };
    const dots = places.flatMap(({ panel, y }) =>
      panel.lines
        .filter(({ points, dashed }) => points.length && !dashed)
        .map((each) => {
          const [, value] = pointAt(each, step);
          const fill = look.categorical[each.colour % look.categorical.length];
          return node("circle", { cx: x(step), cy: y(value), r: each.bold ? 5 : 3.5, fill });
        }),
    );
    line.replaceChildren(node("line", { ...rule, "stroke-width": 1.5, opacity: 0.7 }), ...dots);
  };
  return { parts, line, mark, x, width, height: bottom + EDGE.foot };
}

/** A panel's axis of values. */
function reach({ low, high, lines }, bottom, top) {
  const all = lines.flatMap(({ points }) => points.map(([, value]) => value));
  const [least, most] = [Math.min(low, ...all), Math.max(high, ...all)];
  return Object.assign(scale(least, most, bottom, top), { least, most });
}

/** @param {any} panel @param {Look} look */
function frame({ name }, look, y, top, right) {
  const grid = ticks(y.least, y.most).flatMap((value) => [
    node("line", {
      x1: EDGE.left,
      x2: right,
      y1: y(value),
      y2: y(value),
      stroke: look.ink,
      opacity: 0.14,
    }),
    node(
      "text",
      { x: EDGE.left - 6, y: y(value) + 4, "text-anchor": "end", "font-size": 12, fill: look.ink },
      short(value),
    ),
  ]);
  const title = { x: 0, y: top - 8, "font-size": 13, "font-weight": 600, fill: look.ink };
  return [...grid, node("text", title, name)];
}

/** @param {any} panel @param {Look} look */
function curves({ lines }, look, x, y, right, narrow) {
  const named = [];
  const paths = lines.flatMap((line) => {
    if (!line.points.length) return [];
    const stroke = look.categorical[line.colour % look.categorical.length];
    const d = through(line.points.map(([step, value]) => [x(step), y(value)]));
    named.push({ line, stroke, y: y(line.points.at(-1)[1]), to: 0 });
    return node("path", {
      d,
      fill: "none",
      stroke: line.dashed ? look.ink : stroke,
      "stroke-width": line.bold ? 3.25 : 1.75,
      "stroke-dasharray": dashes(line),
      "stroke-linejoin": "round",
      opacity: line.dashed ? 0.6 : 1,
    });
  });
  named.sort((a, b) => a.y - b.y);
  named.forEach((each, at) => (each.to = Math.max(each.y, at ? named[at - 1].to + APART : 0)));
  const over = named.length ? named[named.length - 1].to - y(y.least) : 0;
  if (over > 0) named.forEach((each) => (each.to -= over));
  const labels = named.map(({ line, stroke, to }) =>
    node(
      "text",
      {
        x: right + 6,
        y: to + 4,
        "font-size": narrow ? 11 : 12,
        "font-weight": line.bold ? 700 : 400,
        fill: line.dashed ? look.ink : stroke,
      },
      line.name,
    ),
  );
  return [...paths, ...labels];
}

/** The line that matters is whole; the others are told apart without colour too. */
const dashes = ({ dashed, bold, colour }) =>
  dashed ? "2 4" : bold ? undefined : DASHES[colour % DASHES.length] || undefined;

/** Steps under the lowest panel. @param {any} header @param {Look} look */
function under(header, look, x, bottom, right) {
  const low = header.zero && !header.log ? 0 : header.low;
  const all = ticks(low, header.high, header.log);
  let last = -Infinity;
  const marks = [...(header.zero && header.log ? [0] : []), ...all].filter((step) => {
    const fits = x(step) - last > 44;
    if (fits) last = x(step);
    return fits;
  });
  const ink = { "font-size": 12, fill: look.ink };
  return [
    ...marks.map((step) =>
      node("text", { ...ink, x: x(step), y: bottom + 18, "text-anchor": "middle" }, count(step)),
    ),
    node("text", { ...ink, x: right + 24, y: bottom + 18 }, "steps"),
  ];
}

/** @param {View} view @param {Look} look */
function file(view, look) {
  const { header } = view;
  const drawn = picture(header, look, 868);
  drawn.mark(header.steps[view.step] ?? header.high);
  const head = { title: header.title, caption: header.caption, width: 900 };
  return paper(look, head, (top) => [
    tag("g", { transform: `translate(16 ${top})` }, written([...drawn.parts, drawn.line])),
    top + drawn.height + 8,
  ]);
}
