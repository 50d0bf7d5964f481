// Paths of tokens, in three pictures mounted by themselves: the plane with its slider, the curves of the one word that is followed, and its
// nearest words.

const KEPT = new WeakMap();
const A_MOVE = 650; // milliseconds from one site to the next while playing
const A_STOP = 350; // milliseconds at each site
const AT_REST = 350; // milliseconds after the last step until the address hears of it
const NEAR = 18; // pixels from which a dot is pointed at
const SHAPES = ["circle", "diamond", "square", "triangle"];

export default function ({ data, parentElement, setTriggerValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = {}));
  kept.send = setTriggerValue;
  dress(parentElement);
  const root = (kept.root = parentElement.querySelector(".paths"));
  const before = kept.header;
  if (kept.data !== data) {
    kept.data = data;
    Object.assign(kept, decode(data));
  }
  const style = getComputedStyle(root);
  const value = (name) => style.getPropertyValue(name).trim();
  const theme = ["--st-chart-categorical-colors", "--st-text-color", "--st-background-color"].map(value).join(" ");
  const same = before && before.token === kept.header.token && kept.theme === theme;
  kept.theme = theme;
  const list = value("--st-chart-categorical-colors").split(",");
  kept.ink = value("--st-text-color");
  kept.paper = value("--st-background-color");
  kept.font = value("--st-font") || "sans-serif";
  kept.colours = [list[0].trim(), list[1].trim(), kept.ink, kept.ink];
  ({ walk, around, near })[kept.header.kind](kept, same);
  root.dataset.token = kept.header.token;
  // A cleanup may belong to a drawing that another has replaced: only what has left the page is ended.
  return () => setTimeout(() => root.isConnected || end(kept));
}

function end(kept) {
  clearTimeout(kept.resting);
  cancelAnimationFrame(kept.frame);
  kept.frame = 0;
  kept.observer?.disconnect();
  kept.deaf?.();
  kept.deaf = undefined;
}

// A new drawing keeps the focus of the old one.
function draw(kept, ...parts) {
  const focus = kept.root.getRootNode().activeElement?.dataset?.focus;
  kept.root.replaceChildren(...parts);
  if (focus) kept.root.querySelector(`[data-focus="${focus}"]`)?.focus({ preventScroll: true });
}

const number = (value, digits) => value.toFixed(digits).replace("-", "−");
const percent = (share) => `${(share * 100).toFixed(share > 0 && share < 0.01 ? 2 : 1)} %`;
const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const name = (label) => {
  const token = make("b", "", label);
  token.dir = "auto";
  return token;
};
// Control and direction signs would turn what stands beside them.
const plain = (text) => text.replace(/[\u0000-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufff9-\uffff]/g, "\ufffd");
const cut = (text, most) => ([...text].length > most ? [...text].slice(0, most - 1).join("") + "…" : text);

function button(kept, what, label, act) {
  const one = make("button", `small ${what}`, label);
  one.dataset.focus = what;
  one.onclick = act;
  return one;
}

function mark(kept, kind) {
  const svg = new DOMParser().parseFromString(`<svg xmlns="http://www.w3.org/2000/svg" class="mark" viewBox="-8 -8 16 16" aria-hidden="true">${svgPen(kept).draw((pen) => pen.shape(kind, 0, 0, 6, kept.colours[kind], kind < 2 ? 1 : 0.25, 1.5))}</svg>`, "image/svg+xml");
  return document.importNode(svg.documentElement, true);
}

// ---- two pens with the same strokes, so that the file shows what the screen shows ------------------------------------

function canvasPen(kept, context) {
  return {
    path(points, colour, width, alpha, dash = []) {
      context.globalAlpha = alpha;
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.setLineDash(dash);
      context.beginPath();
      for (let i = 0; i < points.length; i += 2) i ? context.lineTo(points[i], points[i + 1]) : context.moveTo(points[i], points[i + 1]);
      context.stroke();
    },
    shape(kind, x, y, r, colour, fill, width) {
      context.setLineDash([]);
      context.beginPath();
      if (kind === 0) context.arc(x, y, r, 0, 7);
      else {
        corners(kind, x, y, r).forEach(([a, b], i) => (i ? context.lineTo(a, b) : context.moveTo(a, b)));
        context.closePath();
      }
      context.globalAlpha = 1;
      context.fillStyle = kept.paper;
      context.fill();
      context.globalAlpha = fill;
      context.fillStyle = colour;
      context.fill();
      context.globalAlpha = 1;
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.stroke();
    },
    text(x, y, content, size, colour, bold, align = "left", halo = true) {
      context.globalAlpha = 1;
      context.font = `${bold ? 650 : 450} ${size}px ${kept.font}`;
      context.textAlign = align;
      context.textBaseline = "middle";
      context.setLineDash([]);
      if (halo) {
        context.lineJoin = "round";
        context.strokeStyle = kept.paper;
        context.lineWidth = 4;
        context.strokeText(content, x, y);
      }
      context.fillStyle = colour;
      context.fillText(content, x, y);
    },
  };
}

function corners(kind, x, y, r) {
  if (kind === 1) return [[x, y - r * 1.3], [x + r * 1.3, y], [x, y + r * 1.3], [x - r * 1.3, y]];
  if (kind === 2) return [[x - r, y - r], [x + r, y - r], [x + r, y + r], [x - r, y + r]];
  return [[x, y - r * 1.2], [x + r * 1.2, y + r], [x - r * 1.2, y + r]];
}

const MARKS = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escape = (text) => [...text].map((c) => MARKS[c] || (/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u.test(c) ? "\ufffd" : c)).join("");

function svgPen(kept) {
  const out = [];
  const n = (value) => value.toFixed(1);
  return {
    path(points, colour, width, alpha, dash = []) {
      let d = "";
      for (let i = 0; i < points.length; i += 2) d += `${i ? "L" : "M"}${n(points[i])} ${n(points[i + 1])}`;
      out.push(`<path d="${d}" fill="none" stroke="${colour}" stroke-width="${width}" stroke-opacity="${alpha}"${dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : ""}/>`);
    },
    shape(kind, x, y, r, colour, fill, width) {
      const look = `fill="${colour}" fill-opacity="${fill.toFixed(2)}" stroke="${colour}" stroke-width="${width}"`;
      out.push(kind === 0 ? `<circle cx="${n(x)}" cy="${n(y)}" r="${r}" ${look}/>` : `<polygon points="${corners(kind, x, y, r).map((p) => p.map(n).join(",")).join(" ")}" ${look}/>`);
    },
    text(x, y, content, size, colour, bold, align = "left", halo = true, more = "") {
      const anchor = { left: "start", right: "end", center: "middle" }[align];
      const ring = halo ? `stroke="${kept.paper}" stroke-width="4" stroke-linejoin="round" paint-order="stroke" ` : "";
      out.push(`<text x="${n(x)}" y="${n(y)}" dy="0.35em" font-size="${size}" fill="${colour}" ${ring}${bold ? 'font-weight="650" ' : ""}text-anchor="${anchor}" ${more}>${escape(content)}</text>`);
    },
    draw(strokes) {
      strokes(this);
      return out.join("\n");
    },
  };
}

// ---- the plane ------------------------------------------------------------------------------------------------------

function walk(kept, same) {
  const { header } = kept;
  const last = header.titles.length - 1;
  if (!same) {
    kept.n = header.titles.length;
    kept.points = header.texts.flatMap((text, of) => text.labels.map((label, at) => ({ label: cut(plain(label), 16), raw: label, of, kind: text.kind, place: text.places[at] })));
    kept.at = Math.min(kept.stage ?? last, last);
    kept.stage = Math.round(kept.at);
    kept.over = null;
    kept.seen = new Set();
    kept.chosen ??= [];
    bounds(kept);
    const explained = make("div", "explained");
    const shares = header.explained.map((share, axis) => `${header.axes[axis]}: ${percent(share)}`);
    explained.append(make("strong", "", `Explained variance ${percent(header.explained[0] + header.explained[1])}`), make("span", "", shares.join("  ·  ")), (kept.outside = make("span", "outside")));
    draw(kept, explained, picture(kept), stepper(kept), reading(kept), ...lines(kept), switches(kept));
    kept.observer?.disconnect();
    kept.observer = new ResizeObserver(() => sized(kept));
    kept.observer.observe(kept.box);
    sized(kept);
  }
  kept.deaf?.();
  kept.deaf = listen((now) => follow(kept, now.embedding));
  follow(kept, bus.now.embedding);
}

// What the other component says: which points are followed, and the site that the address asked for.
function follow(kept, said) {
  if (said && said.token === kept.heard) return show(kept);
  if (said) {
    kept.heard = said.token;
    kept.chosen = said.chosen.filter((at) => at !== null && at < kept.points.length);
    kept.trails = said.trails;
    kept.close = said.frame === "Close";
    bounds(kept);
    if (kept.view) layout(kept, kept.view.width, kept.view.height);
    // A site that this view reported itself is no news: the reader may have gone on since.
    if (said.stage !== kept.reported && said.stage < kept.n) go(kept, said.stage, true, true);
    kept.reported = said.stage;
  }
  show(kept);
}

function bounds(kept) {
  const c = kept.blocks.coordinates;
  const box = [Infinity, -Infinity, Infinity, -Infinity];
  // Close up: all that the followed words do, and where the anchors are.
  const inside = kept.points.map((one, at) => !kept.close || !kept.chosen.length || one.kind > 1 || kept.chosen.includes(at));
  for (let i = 0; i < c.length; i += 2) {
    if (!inside[Math.floor(i / 2 / kept.n)]) continue;
    box[0] = Math.min(box[0], c[i]);
    box[1] = Math.max(box[1], c[i]);
    box[2] = Math.min(box[2], c[i + 1]);
    box[3] = Math.max(box[3], c[i + 1]);
  }
  kept.bounds = box;
}

function picture(kept) {
  const box = (kept.box = make("div", "picture"));
  const canvas = (kept.canvas = make("canvas"));
  box.tabIndex = 0;
  box.dataset.focus = "picture";
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", `Paths of ${kept.points.length} points over ${kept.n} sites in the plane of ${kept.header.axes.join(" and ")}. The tables below have the same numbers. While this has the focus, all names are shown.`);
  box.append(canvas);
  const at = (event) => {
    const frame = canvas.getBoundingClientRect();
    return nearest(kept, event.clientX - frame.left, event.clientY - frame.top);
  };
  canvas.onpointermove = (event) => point(kept, at(event));
  canvas.onpointerleave = () => point(kept, null);
  canvas.onclick = (event) => {
    const found = at(event);
    if (found !== null) pick(kept, found);
  };
  box.onfocus = () => box.matches(":focus-visible") && ((kept.focused = true), paint(kept));
  box.onblur = () => ((kept.focused = false), paint(kept));
  return box;
}

function pick(kept, at) {
  const { of, kind, place } = kept.points[at];
  if (kind < 2) kept.send("pick", [kind, place]);
}

function point(kept, at) {
  if (kept.over === at) return;
  kept.over = at;
  kept.canvas.style.cursor = at === null ? "" : "pointer";
  show(kept);
}

function nearest(kept, x, y) {
  let best = null, least = NEAR * NEAR;
  kept.points.forEach((_, at) => {
    const [a, b] = spot(kept, at, kept.at);
    const d = (a - x) ** 2 + (b - y) ** 2;
    if (d < least) [best, least] = [at, d];
  });
  return best;
}

function sized(kept) {
  const width = kept.box.clientWidth;
  if (!width) return;
  const height = Math.round(Math.max(320, Math.min(620, width * 0.68)));
  const ratio = Math.min(devicePixelRatio || 1, 2);
  kept.canvas.width = width * ratio;
  kept.canvas.height = height * ratio;
  kept.canvas.style.height = `${height}px`;
  kept.ratio = ratio;
  kept.rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
  kept.seen = new Set();
  layout(kept, width, height);
  paint(kept);
}

// One scale for both axes: distances in the picture can be compared in every direction.
function layout(kept, width, height) {
  const [x0, x1, y0, y1] = kept.bounds;
  const pad = 44;
  const across = x1 - x0 || 1e-9, up = y1 - y0 || 1e-9;
  const scale = Math.min((width - 2 * pad) / across, (height - 2 * pad) / up);
  kept.view = { width, height, scale: Math.min(scale, 1e9), dx: width / 2 - ((x0 + x1) / 2) * scale, dy: height / 2 + ((y0 + y1) / 2) * scale };
}

function spot(kept, at, t) {
  const c = kept.blocks.coordinates;
  const low = Math.min(Math.floor(t), kept.n - 1), f = t - low;
  const i = (at * kept.n + low) * 2, j = f ? i + 2 : i;
  const { scale, dx, dy } = kept.view;
  return [dx + scale * (c[i] + (c[j] - c[i]) * f), dy - scale * (c[i + 1] + (c[j + 1] - c[i + 1]) * f)];
}

function stretch(kept, at, from, to) {
  const points = spot(kept, at, from);
  for (let s = Math.floor(from) + 1; s < to; s++) points.push(...spot(kept, at, s));
  if (to > from) points.push(...spot(kept, at, to));
  return points;
}

function paint(kept) {
  if (!kept.view) return;
  const context = kept.canvas.getContext("2d");
  context.setTransform(kept.ratio, 0, 0, kept.ratio, 0, 0);
  context.globalAlpha = 1;
  context.fillStyle = kept.paper;
  context.fillRect(0, 0, kept.view.width, kept.view.height);
  scene(kept, canvasPen(kept, context));
  kept.frames = (kept.frames || 0) + 1;
  kept.root.dataset.frames = kept.frames;
}

function nice(span, most) {
  const rough = span / most, power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((step) => step * power >= rough);
}

function scene(kept, pen) {
  const { points, chosen, over, at: t, view, colours } = kept;
  const strong = new Set(over === null ? chosen : [...chosen, over]);
  grid(kept, pen);
  const shown = points.map((_, at) => spot(kept, at, t));
  const faint = Math.max(0.06, Math.min(0.28, 20 / points.length));
  points.forEach((one, at) => {
    if (strong.has(at) || t === 0) return;
    const all = kept.trails === "All" && one.kind < 2;
    const from = all ? 0 : Math.max(0, Math.ceil(t) - 1);
    pen.path(stretch(kept, at, from, t), colours[one.kind], 1.25, one.kind < 2 ? (all ? faint : 0.45) : 0.2);
  });
  for (const at of strong) {
    const colour = colours[points[at].kind];
    if (t < kept.n - 1) pen.path(stretch(kept, at, t, kept.n - 1), colour, 1.5, 0.6, [2, 5]);
    if (t > 0) pen.path(stretch(kept, at, 0, t), colour, 3, 0.95);
    for (let s = 0; s < kept.n; s++) pen.shape(points[at].kind, ...spot(kept, at, s), s ? 2.5 : 4.5, colour, s && s <= t ? 1 : 0, 1.25);
  }
  const error = (at) => kept.blocks.error[at * kept.n + Math.round(t)];
  const order = points.map((_, at) => at).sort((a, b) => strong.has(a) - strong.has(b));
  for (const at of order) pen.shape(points[at].kind, ...shown[at], strong.has(at) ? 8 : 5, colours[points[at].kind], (1 - error(at)) * (points[at].kind < 2 ? 1 : 0.6), strong.has(at) ? 2.5 : 1.5);
  names(kept, pen, shown, strong);
  axes(kept, pen);
}

// A name is written where it covers no other name, first to last: the followed word, the word pointed at, anchors, names already there, then in
// the order of the text; one that finds no room on either side, above or below is left out. While the picture has the focus all are written.
function names(kept, pen, shown, strong) {
  const { points, view } = kept;
  const size = Math.max(12, 0.8125 * kept.rem);
  const rank = (at) => (kept.chosen.includes(at) ? 0 : at === kept.over ? 1 : points[at].kind > 1 ? 2 : kept.seen.has(at) ? 3 : 4);
  const order = points.map((_, at) => at).sort((a, b) => rank(a) - rank(b) || a - b);
  const taken = [];
  const seen = new Set();
  const measure = kept.measure ||= document.createElement("canvas").getContext("2d");
  for (const at of order) {
    const big = strong.has(at);
    const high = big ? size * 1.3 : size;
    measure.font = `${big ? 650 : 450} ${high}px ${kept.font}`;
    const width = measure.measureText(points[at].label).width;
    const [x, y] = shown[at];
    if (!within([x, y], view.width, view.height)) continue;
    const gap = big ? 12 : 8;
    const tries = [[x + gap, y], [x - gap - width, y], [x - width / 2, y - high / 2 - gap], [x - width / 2, y + high / 2 + gap]];
    const free = ([a, b]) => a >= 2 && a + width <= view.width - 2 && b - high / 2 >= 2 && b + high / 2 <= view.height - 2 && !taken.some((box) => a < box[2] + 3 && a + width + 3 > box[0] && b - high / 2 < box[3] && b + high / 2 > box[1]);
    const all = kept.allNames || kept.focused;
    let place = tries.find(free);
    if (!place && (all || rank(at) < 2)) place = tries.find(([a]) => a >= 2 && a + width <= view.width - 2) || tries[0];
    if (!place) continue;
    seen.add(at);
    taken.push([place[0], place[1] - high / 2, place[0] + width, place[1] + high / 2]);
    pen.text(place[0], place[1], points[at].label, high, points[at].kind < 2 && big ? kept.colours[points[at].kind] : kept.ink, big || points[at].kind > 1);
  }
  kept.seen = seen;
  kept.hidden = points.length - seen.size;
}

const within = ([x, y], width, height) => x >= 0 && y >= 0 && x <= width && y <= height;

function grid(kept, pen) {
  const { width, height, scale, dx, dy } = kept.view;
  const step = nice(width / scale, 7);
  const digits = Math.max(0, Math.min(8, -Math.floor(Math.log10(step))));
  const line = (points, value) => pen.path(points, kept.ink, 1, value === 0 ? 0.32 : 0.09);
  for (let i = Math.ceil(-dx / scale / step); i * step <= (width - dx) / scale && i < 1e4; i++) {
    const x = dx + i * step * scale;
    line([x, 0, x, height], i);
    if (x > 28 && x < width - 60) pen.text(x, height - 9, number(i * step, digits), 11, kept.ink, false, "center");
  }
  for (let i = Math.ceil((dy - height) / scale / step); i * step <= dy / scale && i < 1e4; i++) {
    const y = dy - i * step * scale;
    line([0, y, width, y], i);
    if (y > 30 && y < height - 28) pen.text(5, y, number(i * step, digits), 11, kept.ink, false);
  }
}

function axes(kept, pen) {
  const { width, height } = kept.view;
  const [x, y] = kept.header.axes.map((axis) => cut(plain(axis), Math.floor(width / 10)));
  pen.text(width - 6, height - 24, `${x} →`, 12, kept.ink, true, "right");
  pen.text(6, 12, `↑ ${y}`, 12, kept.ink, true);
}

// ---- moving along ---------------------------------------------------------------------------------------------------

function stepper(kept) {
  const box = make("div", "stepper");
  const back = button(kept, "previous", "‹ Previous", () => go(kept, kept.stage - 1));
  const start = (kept.start = button(kept, "play", "Play", () => play(kept)));
  const next = button(kept, "next", "Next ›", () => go(kept, kept.stage + 1));
  const slider = make("input");
  Object.assign(slider, { type: "range", min: 0, max: kept.n - 1, step: 1 });
  slider.dataset.focus = "slider";
  slider.setAttribute("aria-label", "Site");
  slider.oninput = () => go(kept, slider.valueAsNumber);
  const where = make("span", "where");
  box.append(back, start, next, slider, where);
  kept.placed = () => {
    slider.value = kept.stage;
    slider.setAttribute("aria-valuetext", `${kept.header.titles[kept.stage]}, site ${kept.stage + 1} of ${kept.n}`);
    where.textContent = kept.header.titles[kept.stage];
    back.disabled = kept.stage === 0;
    next.disabled = kept.stage === kept.n - 1;
    start.textContent = kept.playing ? "Pause" : "Play";
  };
  return box;
}

// The one way to another site; the dots go there in a straight line. `told`: by the address, which needs no report.
function go(kept, stage, told, jump) {
  const to = Math.max(0, Math.min(kept.n - 1, stage));
  if (!told) halt(kept);
  kept.stage = to;
  if (jump || calm()) {
    cancelAnimationFrame(kept.frame);
    kept.frame = 0;
    kept.at = to;
    paint(kept);
  } else move(kept, A_MOVE * 0.5);
  show(kept);
  if (!told) report(kept);
}

function move(kept, time, done) {
  cancelAnimationFrame(kept.frame);
  const from = kept.at, to = kept.stage;
  let began;
  const tick = (now) => {
    began ??= now;
    const share = Math.min(1, (now - began) / time);
    kept.at = from + (to - from) * share * share * (3 - 2 * share);
    if (share === 1) kept.at = to;
    paint(kept);
    if (share < 1) kept.frame = requestAnimationFrame(tick);
    else {
      kept.frame = 0;
      done?.();
    }
  };
  kept.frame = requestAnimationFrame(tick);
}

function report(kept) {
  clearTimeout(kept.resting);
  kept.resting = setTimeout(() => {
    if (kept.playing || kept.reported === kept.stage) return;
    kept.reported = kept.stage;
    kept.send("stage", kept.stage);
  }, AT_REST);
}

function play(kept) {
  if (kept.playing) {
    halt(kept);
    go(kept, kept.stage);
    return;
  }
  if (kept.stage >= kept.n - 1) {
    kept.stage = kept.at = 0;
    paint(kept);
  }
  kept.playing = setTimeout(function next() {
    kept.stage = Math.min(kept.n - 1, kept.stage + 1);
    show(kept, true);
    const rest = () => {
      if (!kept.playing) return;
      if (kept.stage < kept.n - 1) kept.playing = setTimeout(next, calm() ? A_MOVE + A_STOP : A_STOP);
      else {
        halt(kept);
        report(kept);
      }
    };
    if (calm()) {
      kept.at = kept.stage;
      paint(kept);
      rest();
    } else move(kept, A_MOVE, rest);
  }, A_STOP);
  show(kept);
}

function halt(kept) {
  clearTimeout(kept.playing);
  kept.playing = undefined;
  kept.placed?.();
}

function show(kept, unpainted) {
  if (!kept.placed) return;
  kept.root.dataset.stage = kept.stage;
  kept.placed();
  kept.told();
  kept.pressed();
  if (bus.now.stage !== kept.stage) bus.tell({ stage: kept.stage });
  if (!unpainted && !kept.frame) paint(kept);
}

// What is seen at this site of the followed word, or of the one pointed at, in words and numbers.
function reading(kept) {
  const box = make("div", "reading");
  box.setAttribute("role", "status");
  kept.told = () => {
    const { blocks, n, stage, points, header } = kept;
    const ends = header.texts.reduce((sum, text) => sum + (text.kind < 2 ? text.labels.length : 0), 0);
    let mean = 0;
    for (let at = 0; at < ends; at++) mean += blocks.error[at * n + stage] / ends;
    kept.outside.textContent = `outside the plane at this site: ${percent(mean)} on average`;
    box.replaceChildren(
      ...(kept.over === null ? kept.chosen : [kept.over]).map((at) => {
        const i = at * n + stage;
        const line = make("p");
        const one = points[at];
        line.append(name(one.raw), `${header.texts.length > 1 ? ` (${header.texts[one.of].name})` : ""} at `, make("span", "", `${header.titles[stage]}: projection error `), make("strong", "error", percent(blocks.error[i])));
        line.append(`, norm ${number(blocks.norm[i], 2)}`);
        if (stage) {
          const c = blocks.coordinates;
          const seen = Math.hypot(c[2 * i] - c[2 * i - 2], c[2 * i + 1] - c[2 * i - 1]);
          line.append(`, moved ${number(blocks.moved[i], 2)} since ${header.titles[stage - 1]}, of which ${number(seen, 2)} can be seen here.`);
        } else line.append(".");
        return line;
      }),
    );
    if (!kept.chosen.length && kept.over === null) box.append(make("p", "note", "Choose a token to follow it."));
  };
  return box;
}

// The texts as rows of tokens: the way to choose one.
function lines(kept) {
  const { header } = kept;
  let at = 0;
  const all = [];
  const rows = header.texts.map((text) => {
    const first = at;
    at += text.labels.length;
    if (text.kind > 1) return null;
    const row = make("div", "line");
    row.style.setProperty("--of", kept.colours[text.kind]);
    const title = make("span", "name");
    title.append(mark(kept, text.kind), text.name);
    const box = make("div", "tokens");
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", `Tokens of ${text.name}. Arrow keys move, Enter follows one.`);
    const list = text.labels.map((label, i) => {
      const chip = make("button", "chip", label);
      chip.dir = "auto";
      chip.dataset.focus = `${text.kind} ${i}`;
      chip.dataset.at = first + i;
      chip.tabIndex = i ? -1 : 0;
      chip.onclick = () => pick(kept, first + i);
      chip.onpointerenter = chip.onfocus = () => point(kept, first + i);
      chip.onpointerleave = chip.onblur = () => point(kept, null);
      chip.onkeydown = (event) => {
        const to = { ArrowRight: i + 1, ArrowDown: i + 1, ArrowLeft: i - 1, ArrowUp: i - 1, Home: 0, End: list.length - 1 }[event.key];
        if (!plainKey(event) || to === undefined || !list[to]) return;
        event.preventDefault();
        list[i].tabIndex = -1;
        list[to].tabIndex = 0;
        list[to].focus();
      };
      return chip;
    });
    all.push([first, list]);
    box.append(...list);
    row.append(title, box);
    return row;
  });
  kept.pressed = () => all.forEach(([first, list]) => list.forEach((chip, i) => chip.setAttribute("aria-pressed", kept.chosen.includes(first + i))));
  for (const [first, list] of all) {
    const chosen = kept.chosen.find((at) => list[at - first]);
    if (chosen !== undefined) list.forEach((chip, i) => (chip.tabIndex = i === chosen - first ? 0 : -1));
  }
  return rows.filter(Boolean);
}

function switches(kept) {
  const box = make("div", "switches");
  const trails = button(kept, "trails", "All paths", () => kept.send("switch", ["trails", kept.trails === "All" ? "Chosen" : "All"]));
  const close = button(kept, "close", "Close up", () => kept.send("switch", ["frame", kept.close ? "All" : "Close"]));
  const every = button(kept, "every", "All names", () => {
    kept.allNames = !kept.allNames;
    every.setAttribute("aria-pressed", !!kept.allNames);
    paint(kept);
  });
  every.setAttribute("aria-pressed", !!kept.allNames);
  const before = kept.pressed;
  kept.pressed = () => {
    before();
    trails.setAttribute("aria-pressed", kept.trails === "All");
    close.setAttribute("aria-pressed", !!kept.close);
    const { width, height } = kept.view || {};
    const out = kept.view ? kept.points.filter((_, at) => !within(spot(kept, at, kept.stage), width, height)).length : 0;
    lost.textContent = out ? `${out} of ${kept.points.length} dots lie outside the frame.` : "";
  };
  const file = (suffix, act) => button(kept, suffix, `Picture as ${suffix.toUpperCase()}`, act);
  const note = make("p", "note", "Filled: in the plane. The emptier a dot, the larger its projection error. A ring marks the start, dots the sites. Between sites the dots go straight: only the stops are the model’s. A name that would cover another is left out; point at a dot to read it.");
  const lost = make("span", "note");
  box.append(trails, every, close, file("png", async () => save(kept, await pixels(drawing(kept), true), "png")), file("svg", () => save(kept, drawing(kept), "svg", "image/svg+xml")), lost, note);
  return box;
}

// ---- files ----------------------------------------------------------------------------------------------------------

// A line in pieces of at most so many characters, broken at spaces where there are any.
function wrapped(line, most) {
  const lines = [""];
  for (const word of plain(line).split(" ").flatMap((w) => ([...w].length > most ? [...w].join("").match(new RegExp(`.{1,${most}}`, "gu")) : [w]))) {
    const longer = lines.at(-1) ? `${lines.at(-1)} ${word}` : word;
    if ([...longer].length > most) lines.push(word);
    else lines[lines.length - 1] = longer;
  }
  return lines;
}

// A picture with a title and its caption above: what it says does not depend on the page around it.
function framed(kept, title, caption, width, height, inside) {
  const lines = caption.flatMap((line) => wrapped(line, Math.floor((width - 32) / 6.2))).slice(0, 14);
  const top = 44 + lines.length * 17;
  const pen = svgPen(kept);
  pen.text(16, 22, title, 16, kept.ink, true, "left", false);
  lines.forEach((line, at) => pen.text(16, 46 + at * 17, line, 12, kept.ink, false, "left", false));
  const head = pen.draw(() => {});
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height + top}" viewBox="0 0 ${width} ${height + top}" font-family="Inter, sans-serif"><rect width="100%" height="100%" fill="${kept.paper}"/>${head}<svg x="0" y="${top}" width="${width}" height="${height}" overflow="hidden">${inside}</svg></svg>`;
}

function drawing(kept) {
  const { header, stage } = kept;
  const kinds = header.texts.map((text) => `${SHAPES[text.kind]}: ${text.name}`).join(", ");
  const shares = `Explained variance: ${header.axes[0]} ${percent(header.explained[0])}, ${header.axes[1]} ${percent(header.explained[1])}; ${kept.outside.textContent}. ${kinds}. The emptier a mark, the larger its projection error.`;
  return framed(kept, `Paths of tokens, at ${header.titles[stage]}`, [...header.caption, shares], kept.view.width, kept.view.height, svgPen(kept).draw((pen) => scene(kept, pen)));
}

// ---- what belongs to the followed word ------------------------------------------------------------------------------

function around(kept, same) {
  const { header } = kept;
  if (!same) {
    kept.cursor = undefined;
    draw(kept, ...(header.lines.length ? [curve(kept)] : []));
  }
  bus.tell({ embedding: { token: header.token, chosen: header.chosen, stage: header.stage, trails: header.trails, frame: header.frame } });
  if (header.lead) bus.tell({ stage: header.stage });
  hear(kept);
}

function hear(kept) {
  const last = kept.header.titles.length - 1;
  kept.deaf?.();
  kept.deaf = listen((now) => markStage(kept, now.stage));
  markStage(kept, Math.min(bus.now.stage ?? last, last));
}

function markStage(kept, stage) {
  kept.root.dataset.stage = stage;
  kept.root.querySelectorAll("tbody tr").forEach((row) => row.classList.toggle("now", row.rowIndex - 1 === stage));
  kept.cursor?.(stage);
}

const CURVE = { width: 560, height: 330, left: 46, right: 150, top: 14, bottom: 92 };

function curve(kept) {
  const { header } = kept;
  const n = header.titles.length;
  const { width, height, left, right, top, bottom } = CURVE;
  const box = make("section", "curve");
  const drawn = make("div", "drawn");
  const inside = curves(kept);
  const svg = new DOMParser().parseFromString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">${inside}</svg>`, "image/svg+xml");
  const picture = document.importNode(svg.documentElement, true);
  picture.setAttribute("aria-label", `${header.measure} by site, ${header.lines.map((line, at) => `${line.name} ${number(kept.blocks.values[(at + 1) * n - 1], 2)} at the end`).join(", ")}. The table below has every number.`);
  const cursor = make("i", "cursor");
  cursor.style.setProperty("--top", `${(top / height) * 100}%`);
  cursor.style.setProperty("--high", `${((height - top - bottom) / height) * 100}%`);
  kept.cursor = (stage) => (cursor.style.left = `${((left + (n > 1 ? stage / (n - 1) : 0.5) * (width - left - right)) / width) * 100}%`);
  drawn.append(picture, cursor);
  const files = make("div", "switches");
  const whole = () => framed(kept, header.caption[0], header.caption.slice(1), width + 80, height, `<g transform="translate(40 0)">${curves(kept)}</g>`);
  files.append(button(kept, "curve-png", "Curve as PNG", async () => save(kept, await pixels(whole(), true), "png")), button(kept, "curve-svg", "Curve as SVG", () => save(kept, whole(), "svg", "image/svg+xml")));
  box.append(drawn, files);
  return box;
}

function curves(kept) {
  const { header, blocks } = kept;
  const n = header.titles.length;
  const { width, height, left, right, top, bottom } = CURVE;
  const values = Array.from(blocks.values);
  let low = Math.min(...values), high = Math.max(...values);
  if (header.measure !== "Cosine") [low, high] = [Math.min(low, 0), Math.max(high, 0)];
  const step = nice(Math.max(high - low, 0.02), 5);
  [low, high] = [Math.floor(low / step) * step, Math.ceil(high / step) * step];
  if (high === low) high += step;
  const x = (site) => left + (n > 1 ? site / (n - 1) : 0.5) * (width - left - right);
  const y = (value) => top + ((high - value) / (high - low)) * (height - top - bottom);
  return svgPen(kept).draw((pen) => {
    const digits = Math.max(1, -Math.floor(Math.log10(step) + 1e-9));
    for (let i = Math.round(low / step); i <= Math.round(high / step); i++) {
      const value = i * step;
      pen.path([left, y(value), width - right, y(value)], kept.ink, 1, i === 0 ? 0.5 : 0.13);
      pen.text(left - 6, y(value), number(value, digits), 12, kept.ink, false, "right", false);
    }
    const every = Math.ceil(n / 12);
    header.titles.forEach((title, site) => {
      if (site % every && site !== n - 1) return;
      const [a, b] = [x(site) + 4, height - bottom + 12];
      pen.text(a, b, title, 11.5, kept.ink, false, "right", false, `transform="rotate(-38 ${a.toFixed(1)} ${b.toFixed(1)})"`);
    });
    const ends = header.lines.map((line, at) => {
      const points = [];
      for (let site = 0; site < n; site++) points.push(x(site), y(blocks.values[at * n + site]));
      pen.path(points, kept.colours[line.kind], 2.5, 1, line.group ? [6, 4] : []);
      for (let site = 0; site < n; site++) pen.shape(line.kind, points[2 * site], points[2 * site + 1], 3, kept.colours[line.kind], line.group ? 0 : 1, 1.25);
      return { at, y: points.at(-1) };
    });
    // Names stand at the ends of their lines, pushed apart where these come together.
    ends.sort((a, b) => a.y - b.y);
    ends.forEach((end, i) => (end.to = i ? Math.max(end.y, ends[i - 1].to + 15) : Math.max(end.y, top)));
    const over = ends.length ? ends.at(-1).to - (height - bottom + 4) : 0;
    if (over > 0) ends.forEach((end) => (end.to = Math.max(top + 15 * ends.indexOf(end), end.to - over)));
    for (const end of ends) {
      const line = header.lines[end.at];
      pen.path([width - right + 3, end.y, width - right + 10, end.to], kept.colours[line.kind], 1, 0.7);
      pen.text(width - right + 13, end.to, cut(plain(line.name), 21), 12.5, kept.colours[line.kind], true, "left", false);
    }
  });
}

function near(kept, same) {
  if (!same) draw(kept, neighbours(kept));
  hear(kept);
}

function neighbours(kept) {
  const { header } = kept;
  const box = make("section", "near");
  for (const text of header.near) {
    const one = make("div", "one");
    const head = make("h4");
    head.append(mark(kept, text.kind), "Words nearest to ", name(text.token), ` (${text.name})`);
    const table = make("table");
    const top = table.createTHead().insertRow();
    top.append(...["site", "nearest", ...text.rows[0].slice(1).map((_, at) => `${at + 2}.`)].map((title) => Object.assign(make("th", "", title), { scope: "col" })));
    const body = table.createTBody();
    text.rows.forEach((row, site) => {
      const line = body.insertRow();
      line.append(Object.assign(make("th", "", header.titles[site]), { scope: "row" }));
      for (const [word, cosine] of row) {
        const cell = line.insertCell();
        const label = make("span", "", word);
        label.dir = "auto";
        cell.append(label, make("i", "", number(cosine, 2)));
      }
    });
    const scroll = make("div", "scroll");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", `Words nearest to ${text.token}, by site`);
    scroll.append(table);
    one.append(head, scroll);
    box.append(one);
  }
  return box;
}
