// @ts-check
// The plane that tokens walk through, its slider, and the texts as rows of tokens to choose from.

import { bus } from "./bus.js";
import { fitted, hear, make, put, redraw, until } from "./mount.js";
import { bounds, inFrame, nearest, paint, scene, sized, spot } from "./paths_plane.js";
import { colours, SHAPES, svgPen } from "./draw_backends.js";
import { fixed, percent } from "./number_format.js";
import { offer, paper, tag } from "./svg_export.js";
import { button, stepper, still } from "./stepper.js";
import { calm, chips, cut, named } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */

const A_MOVE = 650; // milliseconds from one site to the next while playing
const A_STOP = 350; // milliseconds at each site

/** @param {View} view @param {(view: View, kind: number) => SVGElement} mark */
export function walk(view, mark) {
  if (!view.same) drawn(view, mark);
  hear(view, (now) => follow(view, now.embedding));
}

/** @param {View} view */
function drawn(view, mark) {
  const { header } = view;
  view.n = header.titles.length;
  view.points = header.texts.flatMap(({ labels, kind, places }, of) =>
    labels.map((label, at) => ({
      label: cut(calm(label), 16),
      raw: label,
      of,
      kind,
      place: places[at],
    })),
  );
  view.step = view.at = Math.min(view.step ?? view.n - 1, view.n - 1);
  view.over = null;
  view.seen = new Set();
  // Who was followed in another text may not be in this one.
  view.chosen = [];
  view.heard = undefined;
  bounds(view);
  view.outside = make("span", "outside");
  const shares = header.explained.map((share, axis) => `${header.axes[axis]}: ${percent(share)}`);
  const whole = percent(header.explained[0] + header.explained[1]);
  const explained = make(
    "div",
    "explained",
    make("strong", "", `Explained variance ${whole}`),
    make("span", "", shares.join("  ·  ")),
    view.outside,
  );
  view.stepper = stepper(view, {
    n: view.n,
    label: "Site",
    first: 0,
    pause: still() ? A_MOVE + A_STOP : A_STOP,
    says: (at) => [header.titles[at], `${header.titles[at]}, site ${at + 1} of ${view.n}`],
    go: (step, done, byClock) => move(view, byClock ? A_MOVE : A_MOVE / 2, done),
    show: () => show(view),
    told: (step) => {
      if (view.reported === step) return;
      view.reported = step;
      view.send("stage", step);
    },
  });
  until(view, "move", () => cancelAnimationFrame(view.frame));
  const reading = make("div", { class: "reading", role: "status" });
  const [rows, pressed] = lines(view, mark);
  const [options, toggled] = switches(view);
  view.tell = () => {
    read(view, reading);
    pressed();
    toggled();
  };
  redraw(view, [explained, picture(view), view.stepper.box, reading, ...rows, options]);
  fitted(view, view.box, () => sized(view));
  show(view);
}

// What the other component says: which points are followed, and the site that the address asked for.
/** @param {View} view */
function follow(view, said) {
  if (said && said.token !== view.heard) {
    view.heard = said.token;
    view.chosen = said.chosen.filter((at) => at !== null && at < view.points.length);
    view.trails = said.trails;
    view.close = said.frame === "Close";
    bounds(view);
    // A site that this view reported itself is no news: the reader may have gone on since.
    if (said.stage !== view.reported && said.stage < view.n) {
      view.step = view.at = said.stage;
      view.stepper.go(said.stage, true);
    }
    view.reported = said.stage;
  }
  show(view);
}

/** The dots go to a site in a straight line. @param {View} view */
function move(view, time, done) {
  cancelAnimationFrame(view.frame);
  view.frame = 0;
  const [from, to] = [view.at, view.step];
  if (still() || from === to) {
    view.at = to;
    return done();
  }
  let began;
  const tick = (now) => {
    began ??= now;
    const share = Math.min(1, (now - began) / time);
    view.at = share === 1 ? to : from + (to - from) * share * share * (3 - 2 * share);
    paint(view);
    view.frame = share < 1 ? requestAnimationFrame(tick) : 0;
    if (share === 1) done();
  };
  view.frame = requestAnimationFrame(tick);
}

/** @param {View} view */
function show(view) {
  view.root.dataset.stage = view.step;
  view.stepper.mark();
  view.tell();
  if (bus.now.stage !== view.step) bus.tell({ stage: view.step });
  if (!view.frame) paint(view);
}

/** @param {View} view */
function picture(view) {
  const { points, n, header } = view;
  const canvas = (view.canvas = make("canvas"));
  const at = (event) => {
    const frame = canvas.getBoundingClientRect();
    return nearest(view, event.clientX - frame.left, event.clientY - frame.top);
  };
  put(canvas, {
    onpointermove: (event) => point(view, at(event)),
    onpointerleave: () => point(view, null),
    onclick: (event) => pick(view, at(event)),
  });
  const names = (on) => {
    view.focused = on;
    paint(view);
  };
  view.box = make(
    "div",
    {
      class: "picture",
      tabindex: 0,
      role: "img",
      data: { focus: "picture" },
      "aria-label": `Paths of ${points.length} points over ${n} sites in the plane of ${header.axes.join(" and ")}. The tables below have the same numbers. While this has the focus, all names are shown.`,
      onfocus: () => view.box.matches(":focus-visible") && names(true),
      onblur: () => names(false),
    },
    canvas,
  );
  return view.box;
}

/** @param {View} view */
function pick(view, at) {
  const { kind, place } = view.points[at] || {};
  if (kind < 2) view.send("pick", [kind, place]);
}

/** @param {View} view */
function point(view, at) {
  if (view.over === at) return;
  view.over = at;
  view.canvas.style.cursor = at === null ? "" : "pointer";
  show(view);
}

// What is seen at this site of the followed word, or of the one pointed at, in words and numbers.
/** @param {View} view */
function read(view, box) {
  const { blocks, n, step, points, header, over, chosen } = view;
  const own = points.flatMap(({ kind }, at) => (kind < 2 ? [blocks.error[at * n + step]] : []));
  const mean = own.reduce((sum, error) => sum + error, 0) / Math.max(1, own.length);
  view.outside.textContent = `variance not shown at this layer: ${percent(mean)} on average`;
  const told = (over === null ? chosen : [over]).map((at) => {
    const i = at * n + step;
    const { raw, of } = points[at];
    const c = blocks.coordinates;
    const seen = Math.hypot(c[2 * i] - c[2 * i - 2], c[2 * i + 1] - c[2 * i - 1]);
    const moved = `, moved ${fixed(blocks.moved[i], 2)} since ${header.titles[step - 1]}, ${fixed(seen, 2)} of it within this plot.`;
    return make(
      "p",
      "",
      named(raw),
      `${header.texts.length > 1 ? ` (${header.texts[of].name})` : ""} at `,
      make("span", "", `${header.titles[step]}: projection error `),
      make("strong", "error", percent(blocks.error[i])),
      `, norm ${fixed(blocks.norm[i], 2)}`,
      step ? moved : ".",
    );
  });
  box.replaceChildren(
    ...(told.length ? told : [make("p", "note", "Choose a token to follow it.")]),
  );
}

/** The texts as rows of tokens: the way to choose one. @param {View} view */
function lines(view, mark) {
  let next = 0;
  const all = [];
  const rows = view.header.texts.flatMap((text) => {
    const first = next;
    next += text.labels.length;
    if (text.kind > 1) return [];
    const chosen = view.chosen.find((at) => at >= first && at < next) ?? first;
    const { box, list } = chips(text.labels, {
      about: `Tokens of ${text.name}. Arrow keys move, Enter follows one.`,
      focus: `${text.kind}`,
      held: chosen - first,
      dressed: (at) => ({ class: "chip", data: { at: first + at } }),
      choose: (at) => pick(view, first + at),
      look: (at) => point(view, at < 0 ? null : first + at),
    });
    all.push(...list);
    const name = make("span", "name", mark(view, text.kind), text.name);
    const of = colours(view.look)[text.kind];
    return [make("div", { class: "line", vars: { of } }, name, box)];
  });
  const pressed = () =>
    all.forEach((chip) =>
      chip.setAttribute("aria-pressed", `${view.chosen.includes(Number(chip.dataset.at))}`),
    );
  return /** @type {const} */ ([rows, pressed]);
}

const NOTE =
  "Filled: in the plane. The emptier a dot, the larger its projection error. A ring marks the start. Point at a dot to read its name.";

/** @param {View} view */
function switches(view) {
  const sent = (name, on, off, is) => () => view.send("switch", [name, is() ? off : on]);
  const all = () => view.trails === "All";
  const trails = button("trails", "All paths", sent("trails", "All", "Chosen", all));
  const close = button(
    "close",
    "Close up",
    sent("frame", "Close", "All", () => view.close),
  );
  const every = button("every", "All names", () => {
    view.allNames = !view.allNames;
    show(view);
  });
  const lost = make("span", "note");
  const toggled = () => {
    trails.setAttribute("aria-pressed", `${all()}`);
    close.setAttribute("aria-pressed", `${!!view.close}`);
    every.setAttribute("aria-pressed", `${!!view.allNames}`);
    const out = view.points.filter(
      (_, at) => view.view && !inFrame(view, spot(view, at, view.step)),
    );
    const total = view.points.length;
    lost.textContent = out.length ? `${out.length} of ${total} dots lie outside the frame.` : "";
  };
  offer(view, "Picture", (look) => drawing(view, look));
  const box = make("div", "switches", trails, every, close, lost, make("p", "note", NOTE));
  return /** @type {const} */ ([box, toggled]);
}

/** @param {View} view @param {import("./theme.js").Look} look */
function drawing(view, look) {
  const { header, step } = view;
  const kinds = header.texts.map(({ kind, name }) => `${SHAPES[kind]}: ${name}`).join(", ");
  const shares = header.axes
    .map((axis, at) => `${axis} ${percent(header.explained[at])}`)
    .join(", ");
  const last = `Explained variance: ${shares}; ${view.outside.textContent}. ${kinds}. The emptier a mark, the larger its projection error.`;
  const { width, height } = view.view;
  const head = {
    title: `Paths of tokens, at ${header.titles[step]}`,
    caption: [...header.caption, last],
    width,
  };
  return paper(look, head, (y) => [
    tag(
      "svg",
      { x: 0, y, width, height, overflow: "hidden" },
      svgPen(look, (pen) => scene(view, look, pen)),
    ),
    y + height,
  ]);
}
