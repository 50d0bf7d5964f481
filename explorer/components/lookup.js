// A soft lookup beside the hard one: softmax(scores / T) of recorded scores and the mixture of values it makes, for any temperature T.

const KEPT = new WeakMap();
const STEPS = 200; // of the slider, evenly in log T; one more at each end stands for 0 and for infinity

const PAUSE = 250; // milliseconds without a key after which the address is told

export default function ({ data, parentElement, setTriggerValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = { told: [] }));
  kept.send = setTriggerValue;
  dress(parentElement);
  const root = (kept.root = parentElement.querySelector(".lookup"));
  const before = kept.header?.token;
  if (kept.data !== data) {
    kept.data = data;
    Object.assign(kept, decode(data));
  }
  const style = getComputedStyle(root);
  [kept.ink, kept.paper, kept.primary] = ["text", "background", "primary"].map((each) => style.getPropertyValue(`--st-${each}-color`).trim());
  const categorical = style.getPropertyValue("--st-chart-categorical-colors").split(",").map((each) => each.trim());
  kept.other = categorical[1];
  root.style.setProperty("--hard", kept.other);
  const theme = [kept.ink, kept.paper, ...categorical].join();
  const same = before === kept.header.token && kept.theme === theme;
  kept.theme = theme;
  kept.words = twoSided(categorical, kept.paper);
  const asked = kept.header.temperature === "inf" ? Infinity : kept.header.temperature;
  // What comes back of our own doing is old news: the slider may have moved on meanwhile.
  const echo = kept.told.indexOf(asked);
  if (echo >= 0) kept.told.splice(0, echo + 1);
  if (!same) {
    kept.temperature = asked;
    draw(kept);
  } else if (echo < 0 && asked !== kept.asked) kept.set(asked);
  kept.asked = asked;
  root.dataset.token = kept.header.token;
  return () => setTimeout(() => root.isConnected || kept.observer?.disconnect());
}

// ---- numbers ------------------------------------------------------------------------------------------------------

// softmax(scores / T) over the allowed keys; 0 is all weight on the largest, infinity the even row.
function soften({ scores, allowed }, temperature) {
  let most = -Infinity;
  scores.forEach((score, k) => allowed[k] && (most = Math.max(most, score)));
  const powers = Array.from(scores, (score, k) => (!allowed[k] ? 0 : temperature === 0 ? Number(score === most) : temperature === Infinity ? 1 : Math.exp((score - most) / temperature)));
  const total = powers.reduce((a, b) => a + b, 0);
  return powers.map((power) => power / total);
}

function mixture({ values }, weights) {
  const width = values.length / weights.length;
  const z = new Float64Array(width);
  weights.forEach((weight, k) => {
    if (weight) for (let d = 0; d < width; d++) z[d] += weight * values[k * width + d];
  });
  return z;
}

const norm = (vector) => Math.sqrt(vector.reduce((sum, each) => sum + each * each, 0));

function apart(soft, hard) {
  const distance = norm(soft.map((each, d) => each - hard[d]));
  const [a, b] = [norm(soft), norm(hard)];
  return { distance, relative: distance / b, cosine: soft.reduce((sum, each, d) => sum + each * hard[d], 0) / (a * b) };
}

const toPlace = (kept, t) => {
  const { coldest, hottest } = kept.header;
  if (t === 0) return -1;
  if (t === Infinity) return STEPS + 1;
  return Math.max(0, Math.min(STEPS, (STEPS * Math.log(t / coldest)) / Math.log(hottest / coldest)));
};
const toTemperature = (kept, place) => {
  const { coldest, hottest } = kept.header;
  return place < 0 ? 0 : place > STEPS ? Infinity : Number((coldest * (hottest / coldest) ** (place / STEPS)).toPrecision(3));
};
const called = (t) => (t === Infinity ? "∞" : `${t}`);
const meaning = (t) => (t === 0 ? "hard: the best key takes all" : t === Infinity ? "even: the mean of all values" : t === 1 ? "the model’s own" : t < 1 ? "sharper than the model" : "softer than the model");
const show = (value, digits = 3) => (Number.isFinite(value) ? value.toFixed(digits).replace(/^-(?=0\.?0*$)/, "").replace("-", "−") : "not defined");

// ---- the picture --------------------------------------------------------------------------------------------------

function draw(kept) {
  const { header, blocks } = kept;
  const hard = soften(blocks, 0);
  kept.hardKey = hard.indexOf(Math.max(...hard));
  const width = blocks.values.length / header.keys.length;
  kept.hard = blocks.values.slice(kept.hardKey * width, (kept.hardKey + 1) * width);
  const slider = make("input");
  Object.assign(slider, { type: "range", min: -1, max: STEPS + 1, step: 1 });
  slider.setAttribute("aria-label", "Temperature");
  const says = make("p", "temperature");
  says.setAttribute("role", "status");
  const ends = make("div", "ends");
  for (const [text, t] of [["Hard lookup, T → 0", 0], ["The model’s own, T = 1", 1], ["Even mean, T → ∞", Infinity]]) {
    const button = make("button", "small", text);
    button.onclick = () => commit(t);
    ends.append(button);
  }
  const bars = make("div", "bars");
  bars.tabIndex = 0;
  bars.setAttribute("role", "group");
  bars.setAttribute("aria-label", `Weights of ${header.label}’s keys; the table below has the same numbers.`);
  const lines = header.keys.map((label, k) => {
    const row = make("div", k === kept.hardKey ? "bar hard" : "bar");
    const name = make("span", header.special[k] ? "name special" : "name", label);
    name.dir = "auto";
    const [track, fill] = [make("span", "track"), make("i")];
    track.append(fill);
    const value = make("span", "number");
    row.append(name, track, value);
    if (!blocks.allowed[k]) row.classList.add("no");
    bars.append(row);
    return { fill, value };
  });
  const strips = ["soft", "hard", "difference"].map((kind) => {
    const canvas = make("canvas", "strip");
    canvas.height = 1;
    canvas.width = width;
    canvas.setAttribute("role", "img");
    return { kind, canvas };
  });
  const table = make("div", "strips");
  const names = { soft: "soft: Σ weight · value", hard: ["hard: value of ", header.keys[kept.hardKey]], difference: "soft − hard" };
  for (const { kind, canvas } of strips) {
    const name = make("span");
    if (kind === "hard") {
      const token = make("b", "", names.hard[1]);
      token.dir = "auto";
      name.append(names.hard[0], token);
    } else name.textContent = names[kind];
    canvas.setAttribute("aria-label", `${name.textContent}, ${width} numbers`);
    table.append(name, canvas);
  }
  const figures = make("div", "figures");
  const figure = (name) => {
    const box = make("div");
    const value = make("strong");
    box.append(value, make("span", "", name));
    figures.append(box);
    return value;
  };
  const [distance, relative, cosine] = ["distance", "of the hard value’s length", "cosine"].map(figure);
  const plot = make("div", "curve");
  const scale = scaleOf(kept);
  kept.set = (t) => {
    kept.temperature = t;
    slider.value = toPlace(kept, t);
    slider.setAttribute("aria-valuetext", `T ${called(t)}, ${meaning(t)}`);
    says.replaceChildren(make("strong", "", `T = ${called(t)}`), ` ${meaning(t)}`);
    const weights = soften(blocks, t);
    const soft = mixture(blocks, weights);
    lines.forEach(({ fill, value }, k) => {
      fill.style.width = `${100 * weights[k]}%`;
      value.textContent = blocks.allowed[k] ? show(weights[k]) : "not allowed";
    });
    const drawn = { soft, hard: kept.hard, difference: soft.map((each, d) => each - kept.hard[d]) };
    strips.forEach(({ kind, canvas }) => paint(kept, canvas, drawn[kind], scale));
    const found = apart(soft, kept.hard);
    distance.textContent = show(found.distance);
    relative.textContent = Number.isFinite(found.relative) ? `${(100 * found.relative).toFixed(found.relative < 0.0995 ? 1 : 0)}%` : "–";
    cosine.textContent = show(found.cosine, 2);
    kept.root.dataset.temperature = called(t);
    mark(kept, t);
  };
  const tell = () => {
    kept.told.push(kept.temperature);
    kept.send("temperature", kept.temperature === Infinity ? "inf" : kept.temperature);
  };
  const commit = (t) => {
    clearTimeout(kept.waiting);
    kept.set(t);
    tell();
  };
  slider.oninput = () => kept.set(toTemperature(kept, Number(slider.value)));
  slider.onchange = () => {
    clearTimeout(kept.waiting);
    kept.waiting = setTimeout(tell, PAUSE);
  };
  const [left, right] = [make("div", "side"), make("div", "side")];
  const more = make("p", "more", `${header.keys.length} keys: scroll for the others.`);
  left.append(says, slider, ends, bars, more);
  const foot = make("div", "foot");
  foot.append(...exports(kept));
  right.append(table, figures, plot, foot);
  kept.root.replaceChildren(left, right);
  const fit = () => {
    const room = Math.max(260, Math.round(plot.clientWidth));
    if (room === kept.room && plot.firstChild) return;
    kept.room = room;
    plot.replaceChildren(curve(kept, room, 210));
    mark(kept, kept.temperature);
  };
  kept.room = undefined;
  kept.observer?.disconnect();
  kept.observer = new ResizeObserver(fit);
  kept.observer.observe(plot);
  fit();
  kept.set(kept.temperature);
  more.hidden = bars.scrollHeight <= bars.clientHeight + 1;
  // The key that a hard lookup returns is what the eye looks for first.
  const found = bars.children[kept.hardKey];
  bars.scrollTop = Math.max(0, found.offsetTop - bars.offsetTop - bars.clientHeight / 2);
}

// The strips' colours reach to the largest number of the hard value and of the model's own mixture.
function scaleOf({ blocks, hard }) {
  return Math.max(1e-9, ...hard.map(Math.abs), ...mixture(blocks, soften(blocks, 1)).map(Math.abs));
}

function paint(kept, canvas, vector, scale) {
  const context = canvas.getContext("2d");
  vector.forEach((value, d) => {
    context.fillStyle = css(kept.words[Math.round(255 * Math.max(0, Math.min(1, 0.5 + value / scale / 2)))]);
    context.fillRect(d, 0, 1, 1);
  });
}

// Blue below 0, the page's own colour at 0, orange above: the theme's two first categorical colours.
function twoSided(categorical, paper) {
  const hex = (colour) => colour.match(/[0-9a-f]{2}/gi).map((pair) => parseInt(pair, 16));
  const [one, other, middle] = [categorical[0], categorical[1], paper].map(hex);
  return Uint32Array.from({ length: 256 }, (_, i) => {
    const far = Math.abs(i - 127.5) / 127.5;
    const [r, g, b] = middle.map((c, k) => Math.round(c + ((i > 127.5 ? one : other)[k] - c) * far));
    return (255 << 24) | (b << 16) | (g << 8) | r;
  });
}

// ---- distance against temperature ---------------------------------------------------------------------------------

function node(tag, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = plain(text);
  return made;
}

// What XML can hold; the rest becomes the replacement character.
const plain = (text) => [...text].map((c) => (/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u.test(c) ? "\ufffd" : c)).join("");

const EDGE = { left: 48, right: 14, top: 26, bottom: 42 };

function curve(kept, width, height) {
  const { blocks, header } = kept;
  const at = (t) => apart(mixture(blocks, soften(blocks, t)), kept.hard).distance;
  const places = Array.from({ length: 81 }, (_, i) => (i * STEPS) / 80);
  const points = places.map((place) => [place, at(header.coldest * (header.hottest / header.coldest) ** (place / STEPS))]);
  const most = Math.max(...points.map(([, y]) => y), at(Infinity)) || 1;
  const x = (place) => EDGE.left + (Math.max(0, Math.min(STEPS, place)) / STEPS) * (width - EDGE.left - EDGE.right);
  const y = (value) => height - EDGE.bottom - (value / most) * (height - EDGE.top - EDGE.bottom);
  kept.spot = (t) => [x(toPlace(kept, t)), y(at(t))];
  const svg = node("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Distance between soft and hard against the temperature: 0 at T = 0, ${show(at(1))} at T = 1, ${show(at(Infinity))} at T = ∞.` });
  const text = (place, content, more = {}) => node("text", { fill: kept.ink, "font-size": 13, ...place, ...more }, content);
  svg.append(text({ x: 0, y: 15 }, "distance from the hard lookup", { "font-weight": 600 }));
  for (const value of [0, most / 2, most]) {
    svg.append(node("line", { x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value), stroke: kept.ink, opacity: value ? 0.15 : 0.5 }));
    svg.append(text({ x: EDGE.left - 6, y: y(value) + 4 }, value ? Number(value.toPrecision(2)).toString() : "0", { "text-anchor": "end" }));
  }
  for (const t of [0.01, 0.1, 1, 10, 100]) svg.append(text({ x: x(toPlace(kept, t)), y: height - EDGE.bottom + 17 }, `${t}`, { "text-anchor": "middle" }));
  svg.append(text({ x: (EDGE.left + width - EDGE.right) / 2, y: height - 6 }, "temperature T", { "text-anchor": "middle" }));
  svg.append(node("line", { x1: x(toPlace(kept, 1)), x2: x(toPlace(kept, 1)), y1: y(most), y2: y(0), stroke: kept.ink, opacity: 0.5, "stroke-dasharray": "4 4" }));
  svg.append(node("path", { d: points.map(([place, value], i) => `${i ? "L" : "M"}${x(place).toFixed(1)} ${y(value).toFixed(1)}`).join(""), fill: "none", stroke: kept.primary, "stroke-width": 3, "stroke-linejoin": "round" }));
  svg.append(node("circle", { class: "spot", r: 7, fill: kept.primary, stroke: kept.paper, "stroke-width": 2 }));
  return svg;
}

function mark(kept, t) {
  const spot = kept.root.querySelector(".spot");
  if (!spot || !kept.spot) return;
  const [x, y] = kept.spot(t);
  spot.setAttribute("cx", x);
  spot.setAttribute("cy", y);
}

// ---- downloads ----------------------------------------------------------------------------------------------------

function exports(kept) {
  return ["PNG", "SVG"].map((kind) => {
    const button = make("button", "small", `Picture as ${kind}`);
    button.onclick = async () => {
      const svg = new XMLSerializer().serializeToString(sheet(kept));
      const link = make("a");
      link.href = URL.createObjectURL(kind === "SVG" ? new Blob([svg], { type: "image/svg+xml" }) : await pixels(svg, true));
      link.download = `${kept.header.file}.${kind.toLowerCase()}`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    };
    return button;
  });
}

function broken(line, most) {
  const made = [""];
  for (const word of line.split(" ").flatMap((each) => ([...each].length > most ? each.match(new RegExp(`.{1,${most}}`, "gu")) : [each]))) {
    const longer = made.at(-1) ? `${made.at(-1)} ${word}` : word;
    if ([...longer].length > most) made.push(word);
    else made[made.length - 1] = longer;
  }
  return made;
}

// Weights, strips and curve on a sheet with title and caption.
function sheet(kept) {
  const { header, blocks } = kept;
  const [width, pitch] = [1000, 20];
  const lines = header.caption.flatMap((each) => broken(each, 150).slice(0, 5));
  const from = 70 + lines.length * 17;
  const height = from + Math.max(header.keys.length * pitch + 30, 430);
  const svg = node("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif", fill: kept.ink });
  const cut = (text, most) => ([...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text);
  const text = (x, y, content, more = {}) => svg.append(node("text", { x, y, "font-size": 12, ...more }, content));
  svg.append(node("rect", { width: "100%", height: "100%", fill: kept.paper }));
  text(16, 26, header.title, { "font-size": 16, "font-weight": 600 });
  lines.forEach((each, at) => text(16, 46 + at * 17, each));
  const t = kept.temperature;
  text(16, from, `T = ${called(t)}: ${meaning(t)}`, { "font-size": 14, "font-weight": 600 });
  const weights = soften(blocks, t);
  weights.forEach((weight, k) => {
    const y = from + 14 + k * pitch;
    text(130, y + 14, cut(header.keys[k], 15), { "text-anchor": "end" });
    svg.append(node("rect", { x: 138, y: y + 2, width: 270 * weight, height: pitch - 5, fill: kept.primary }));
    if (k === kept.hardKey) svg.append(node("rect", { x: 138, y: y + 2, width: 270, height: pitch - 5, fill: "none", stroke: kept.other, "stroke-width": 2, "stroke-dasharray": "5 3" }));
    text(416, y + 14, blocks.allowed[k] ? show(weight) : "not allowed");
  });
  const soft = mixture(blocks, weights);
  const scale = scaleOf(kept);
  const each = 330 / kept.hard.length;
  [["soft", soft], ["hard", kept.hard], ["soft − hard", soft.map((value, d) => value - kept.hard[d])]].forEach(([name, vector], at) => {
    text(600, from + 20 + at * 34, name, { "text-anchor": "end" });
    vector.forEach((value, d) => svg.append(node("rect", { x: 610 + d * each, y: from + 4 + at * 34, width: each + 0.3, height: 24, fill: css(kept.words[Math.round(255 * Math.max(0, Math.min(1, 0.5 + value / scale / 2)))]) })));
  });
  const found = apart(soft, kept.hard);
  text(520, from + 124, `distance ${show(found.distance)} · ${show(found.relative)} of the hard value’s length · cosine ${show(found.cosine, 2)}`, { "font-size": 13 });
  const group = node("g", { transform: `translate(520 ${from + 150})` });
  const spot = kept.spot;
  const drawn = curve(kept, 440, 210);
  const [x, y] = kept.spot(t);
  drawn.querySelector(".spot").setAttribute("cx", x);
  drawn.querySelector(".spot").setAttribute("cy", y);
  kept.room = undefined;
  kept.spot = spot;
  group.append(...drawn.childNodes);
  svg.append(group);
  return svg;
}
