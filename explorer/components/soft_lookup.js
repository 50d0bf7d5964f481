// @ts-check
// A soft lookup beside the hard one: softmax(scores / T) of recorded scores and the mixture of values
// it makes, for any temperature T.

import { scale as axis, through } from "./axis.js";
import { raster } from "./matrix_canvas.js";
import style from "./soft_lookup.css.js";
import {
  apart,
  called,
  mixture,
  placed,
  soften,
  STEPS,
  temperatureAt,
} from "./soft_lookup_curve.js";
import { fitted, make, mount, put } from "./mount.js";
import { exact, short, spokenLine } from "./number_format.js";
import { cells, END, offer, node, paper, tag, text, written } from "./svg_export.js";
import { wordAt } from "./theme.js";
import { cut, named } from "./tokens.js";

/** @typedef {import("./mount.js").View} View */
/** @typedef {import("./theme.js").Look} Look */

const PAUSE = 250; // milliseconds without a key after which the address is told
const EDGE = { left: 48, right: 14, top: 26, bottom: 42 };

export default mount("lookup", style, (view) => {
  const { header } = view;
  const asked = header.temperature === "inf" ? Infinity : header.temperature;
  // What comes back of our own doing is old news: the slider may have moved on meanwhile.
  const echo = (view.told ||= []).indexOf(asked);
  view.told.splice(0, echo + 1);
  if (!view.same) {
    view.temperature = asked;
    draw(view);
  } else if (echo < 0 && asked !== view.asked) view.set(asked);
  view.asked = asked;
});

const MEANING = {
  0: "hard: the best key takes all",
  Infinity: "even: the mean of all values",
  1: "the model’s own",
};
const meaning = (t) => MEANING[t] ?? (t < 1 ? "sharper than the model" : "softer than the model");
const show = (value, digits = 3) => (Number.isFinite(value) ? exact(value, digits) : "not defined");
const STRIPS = ["soft", "hard", "difference"];

/** What a temperature makes of the row. @param {View} view */
function found({ blocks, hard }, t) {
  const weights = soften(blocks, t);
  const soft = mixture(blocks, weights);
  const vectors = { soft, hard, difference: soft.map((each, d) => each - hard[d]) };
  return { weights, vectors, ...apart(soft, hard) };
}

/** The colour of a number of a strip. @param {View} view @param {Look} look */
const wordOf = ({ top }, look, value) => wordAt(look.two, 0.5 + value / top / 2);

// ---- the picture ---------------------------------------------------------------------------------

/** @param {View} view */
function draw(view) {
  const { header, blocks, look } = view;
  const hardest = soften(blocks, 0);
  view.hardKey = hardest.indexOf(Math.max(...hardest));
  const width = blocks.values.length / header.keys.length;
  view.hard = blocks.values.slice(view.hardKey * width, (view.hardKey + 1) * width);
  // The strips' colours reach to the largest number of the hard value and of the model's own mixture.
  view.top = Math.max(1e-9, ...[...view.hard, ...mixture(blocks, soften(blocks, 1))].map(Math.abs));
  view.root.style.setProperty("--hard", look.categorical[1]);
  const says = spokenLine("temperature");
  const slider = make("input", {
    type: "range",
    min: -1,
    max: STEPS + 1,
    step: 1,
    "aria-label": "Temperature",
    oninput: () => view.set(temperatureAt(header, slider.valueAsNumber)),
    onchange: () => {
      clearTimeout(view.waiting);
      view.waiting = setTimeout(tell, PAUSE);
    },
  });
  const tell = () => {
    view.told.push(view.temperature);
    view.send("temperature", view.temperature === Infinity ? "inf" : view.temperature);
  };
  const commit = (t) => {
    clearTimeout(view.waiting);
    view.set(t);
    tell();
  };
  /** @type {[string, number][]} */
  const stops = [
    ["Hard lookup, T → 0", 0],
    ["The model’s own, T = 1", 1],
    ["Even mean, T → ∞", Infinity],
  ];
  const ends = stops.map(([label, t]) =>
    make("button", { class: "small", onclick: () => commit(t) }, label),
  );
  const lines = header.keys.map((label, k) => {
    const [fill, value] = [make("i"), make("span", "number")];
    const name = make(
      "span",
      { class: `name${header.special[k] ? " special" : ""}`, dir: "auto", title: label },
      label,
    );
    const kind = `bar${k === view.hardKey ? " hard" : ""}${blocks.allowed[k] ? "" : " no"}`;
    return { fill, value, row: make("div", kind, name, make("span", "track", fill), value) };
  });
  const bars = make(
    "div",
    {
      class: "bars",
      tabindex: 0,
      role: "group",
      "aria-label": `Weights of ${header.label}’s keys; the table below has the same numbers.`,
    },
    ...lines.map(({ row }) => row),
  );
  const names = [
    ["soft: Σ weight · value"],
    ["hard: value of ", named(header.keys[view.hardKey])],
    ["soft − hard"],
  ];
  const strips = names.map((name) => {
    const title = make("span", "", ...name);
    const about = `${title.textContent}, ${width} numbers`;
    return [title, make("canvas", { class: "strip", role: "img", "aria-label": about })];
  });
  const values = [make("strong"), make("strong"), make("strong")];
  const figures = ["distance", "of the hard value’s length", "cosine"].map((name, at) =>
    make("div", "", values[at], make("span", "", name)),
  );
  const plot = make("div", "curve");
  view.set = (t) => {
    view.temperature = t;
    slider.value = `${placed(header, t)}`;
    slider.setAttribute("aria-valuetext", `T ${called(t)}, ${meaning(t)}`);
    says.replaceChildren(make("strong", "", `T = ${called(t)}`), ` ${meaning(t)}`);
    const now = found(view, t);
    lines.forEach(({ fill, value }, k) => {
      fill.style.width = `${100 * now.weights[k]}%`;
      value.textContent = blocks.allowed[k] ? show(now.weights[k]) : "not allowed";
    });
    strips.forEach(([, canvas], at) =>
      raster(
        1,
        width,
        (d) => wordOf(view, look, now.vectors[STRIPS[at]][d]),
        /** @type {any} */ (canvas),
      ),
    );
    const part = `${(100 * now.relative).toFixed(now.relative < 0.0995 ? 1 : 0)}%`;
    const told = [
      show(now.distance),
      Number.isFinite(now.relative) ? part : "–",
      show(now.cosine, 2),
    ];
    values.forEach((value, at) => (value.textContent = told[at]));
    view.root.dataset.temperature = called(t);
    view.move?.(t);
  };
  const more = make("p", "more", `${header.keys.length} keys: scroll for the others.`);
  offer(view, "Picture", (on) => sheet(view, on));
  view.root.replaceChildren(
    make("div", "side", says, slider, make("div", "ends", ...ends), bars, more),
    make(
      "div",
      "side",
      make("div", "strips", ...strips.flat()),
      make("div", "figures", ...figures),
      plot,
    ),
  );
  fitted(view, plot, () => {
    const { svg, move } = curve(view, look, Math.max(260, Math.round(plot.clientWidth)), 210);
    view.move = move;
    plot.replaceChildren(svg);
    move(view.temperature);
  });
  view.set(view.temperature);
  more.hidden = bars.scrollHeight <= bars.clientHeight + 1;
  // The key that a hard lookup returns is what the eye looks for first.
  const { row } = lines[view.hardKey];
  const above = row.offsetTop - bars.offsetTop - bars.clientHeight / 2;
  const top = lines.find((line) => line.row.offsetTop - bars.offsetTop >= above) || lines[0];
  bars.scrollTop = above > 0 ? top.row.offsetTop - bars.offsetTop - 2 : 0;
}

// ---- distance against temperature ----------------------------------------------------------------

/** @param {View} view @param {Look} look */
function curve(view, look, width, height) {
  const { header } = view;
  const { left, right, top, bottom } = EDGE;
  const at = (t) => found(view, t).distance;
  const points = Array.from({ length: 81 }, (_, i) => {
    const place = (i * STEPS) / 80;
    return [place, at(header.coldest * (header.hottest / header.coldest) ** (place / STEPS))];
  });
  const most = Math.max(...points.map(([, y]) => y), at(Infinity)) || 1;
  const across = axis(0, STEPS, left, width - right);
  const x = (place) => across(Math.max(0, Math.min(STEPS, place)));
  const y = axis(0, most, height - bottom, top);
  const says = (place, content, more = {}) =>
    node("text", { fill: look.ink, "font-size": 13, ...place, ...more }, content);
  const line = (place, more) => node("line", { stroke: look.ink, opacity: 0.5, ...place, ...more });
  const own = x(placed(header, 1));
  const spot = node("circle", {
    class: "spot",
    r: 7,
    fill: look.primary,
    stroke: look.paper,
    "stroke-width": 2,
  });
  const svg = node(
    "svg",
    {
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `Distance between soft and hard against the temperature: 0 at T = 0, ${show(at(1))} at T = 1, ${show(at(Infinity))} at T = ∞.`,
    },
    says({ x: 0, y: 15 }, "distance from the hard lookup", { "font-weight": 600 }),
    ...[0, most / 2, most].flatMap((value) => [
      line(
        { x1: left, x2: width - right, y1: y(value), y2: y(value) },
        { opacity: value ? 0.15 : 0.5 },
      ),
      says({ x: left - 6, y: y(value) + 4 }, value ? short(value, 2) : "0", END),
    ]),
    ...[0.01, 0.1, 1, 10, 100].map((t) =>
      says({ x: x(placed(header, t)), y: height - bottom + 17 }, `${t}`, {
        "text-anchor": "middle",
      }),
    ),
    says({ x: (left + width - right) / 2, y: height - 6 }, "temperature T", {
      "text-anchor": "middle",
    }),
    line({ x1: own, x2: own, y1: y(most), y2: y(0) }, { "stroke-dasharray": "4 4" }),
    node("path", {
      d: through(points.map(([place, value]) => [x(place), y(value)])),
      fill: "none",
      stroke: look.primary,
      "stroke-width": 3,
      "stroke-linejoin": "round",
    }),
    spot,
  );
  const move = (t) => {
    spot.setAttribute("cx", `${x(placed(header, t))}`);
    spot.setAttribute("cy", `${y(at(t))}`);
  };
  return { svg, move };
}

// ---- the file ------------------------------------------------------------------------------------

// Weights, strips and curve on a sheet with title and caption.
/** @param {View} view @param {Look} look */
function sheet(view, look) {
  const { header, blocks, temperature: t } = view;
  const pitch = 20;
  const now = found(view, t);
  const caption = [...header.caption, `T = ${called(t)}: ${meaning(t)}.`];
  return paper(look, { title: header.title, caption, width: 1000 }, (top) => {
    const bars = [...now.weights].flatMap((weight, k) => {
      const y = top + k * pitch;
      const bar = { x: 138, y: y + 2, height: pitch - 5 };
      const hard = {
        fill: "none",
        stroke: look.categorical[1],
        "stroke-width": 2,
        "stroke-dasharray": "5 3",
      };
      return [
        text(130, y + 14, cut(header.keys[k], 15), END),
        tag("rect", { ...bar, width: 270 * weight, fill: look.primary }),
        k === view.hardKey ? tag("rect", { ...bar, width: 270, ...hard }) : "",
        text(416, y + 14, blocks.allowed[k] ? show(weight) : "not allowed"),
      ];
    });
    const strips = STRIPS.flatMap((kind, at) => {
      const y = top + at * 34;
      const vector = now.vectors[kind];
      const canvas = raster(1, vector.length, (d) => wordOf(view, look, vector[d]));
      const place = { x: 610, y: y - 10, width: 330, height: 24 };
      return [
        text(600, y + 6, kind.replace("difference", "soft − hard"), END),
        cells(canvas, place),
      ];
    });
    const told = `distance ${show(now.distance)} · ${show(now.relative)} of the hard value’s length · cosine ${show(now.cosine, 2)}`;
    const { svg, move } = curve(view, look, 440, 210);
    move(t);
    const plot = tag("g", { transform: `translate(520 ${top + 136})` }, written(svg.childNodes));
    const height = top + Math.max(header.keys.length * pitch + 16, 360);
    return [
      [...bars, ...strips, text(520, top + 110, told, { "font-size": 13 }), plot].join(""),
      height,
    ];
  });
}
