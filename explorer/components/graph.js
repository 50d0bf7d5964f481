// Attention as a graph: nodes are tokens, an edge goes from a key to the query that listens to it. The layout never leaves the order of the text.

const KEPT = new WeakMap();
const NAMESPACE = "http://www.w3.org/2000/svg";

export default function ({ data, parentElement, setTriggerValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = {}));
  kept.send = setTriggerValue;
  dress(parentElement);
  const root = (kept.root = parentElement.querySelector(".graph"));
  const before = kept.header?.token;
  if (kept.data !== data) {
    kept.data = data;
    Object.assign(kept, decode(data));
  }
  const style = getComputedStyle(root);
  [kept.ink, kept.paper, kept.primary] = ["text", "background", "primary"].map((each) => style.getPropertyValue(`--st-${each}-color`).trim());
  kept.font = style.fontFamily;
  const theme = [kept.ink, kept.paper, kept.primary].join();
  const same = before === kept.header.token && kept.theme === theme;
  kept.theme = theme;
  if (!same) draw(kept);
  // The sentence beside the graph says whose messages are open.
  kept.deaf?.();
  const hear = (detail) => detail.matrix?.picture === kept.header.token && kept.hold(detail.matrix.row);
  kept.deaf = listen(hear);
  hear(bus.now);
  root.dataset.token = kept.header.token;
  return () =>
    setTimeout(() => {
      if (root.isConnected) return;
      kept.observer?.disconnect();
      kept.deaf?.();
    });
}

function node(tag, attributes, text) {
  const made = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = plain(text);
  return made;
}

// What XML can hold; the rest becomes the replacement character.
const plain = (text) => [...text].map((c) => (/[^\t\n\r\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/u.test(c) ? "\ufffd" : c)).join("");

const cut = (text, most) => ([...text].length > most ? `${[...text].slice(0, most - 1).join("")}…` : text);

// ---- where things stand -------------------------------------------------------------------------------------------

// Places of the nodes: hears[query] and speaks[key], each { x, y, anchor, at }; the same where queries and keys are one text.
function arrange(kept, width) {
  const { header } = kept;
  const n = header.labels.length;
  if (header.sources) {
    const most = Math.max(n, header.sources.length);
    const pitch = Math.max(20, Math.min(34, 600 / most));
    const height = most * pitch + 20;
    const column = (list, x, anchor, turn) => list.map((_, at) => ({ x, y: 10 + (at + 0.5) * (height - 20) / list.length, anchor, turn }));
    return { height, font: Math.min(17, pitch * 0.62), hears: column(header.labels, width * 0.68, "start", 1), speaks: column(header.sources, width * 0.32, "end", -1) };
  }
  if (header.layout === "circle") {
    const around = Math.max(width, n * 22 / Math.PI + 200);
    const radius = Math.max(60, Math.min(around, 760) / 2 - 92, (n * 17) / (2 * Math.PI));
    const [size, font] = [2 * radius + 184, Math.max(11, Math.min(17, (2 * Math.PI * radius) / n * 0.62))];
    const places = header.labels.map((_, at) => {
      const angle = (2 * Math.PI * at) / n - Math.PI / 2;
      return { x: size / 2 + radius * Math.cos(angle), y: size / 2 + radius * Math.sin(angle), angle, anchor: Math.cos(angle) < -0.01 ? "end" : "start" };
    });
    return { height: size, width: size, font, radius, centre: size / 2, hears: places, speaks: places };
  }
  const pitch = Math.max(20, Math.min(36, 620 / n));
  const places = header.labels.map((_, at) => ({ x: width / 2, y: 14 + (at + 0.5) * pitch, anchor: "middle" }));
  return { height: n * pitch + 28, font: Math.min(18, pitch * 0.6), pitch, hears: places, speaks: places };
}

// The path of an edge, from the key's side to the query's.
function path(kept, scene, query, key) {
  const [to, from] = [scene.hears[query], scene.speaks[key]];
  if (kept.header.sources) return `M${from.x + 8} ${from.y}C${(from.x + to.x) / 2} ${from.y} ${(from.x + to.x) / 2} ${to.y} ${to.x - 8} ${to.y}`;
  if (kept.header.layout === "circle") {
    if (query === key) {
      const [ux, uy] = [Math.cos(to.angle), Math.sin(to.angle)];
      return `M${to.x} ${to.y}c${-26 * ux - 14 * uy} ${-26 * uy + 14 * ux} ${-26 * ux + 14 * uy} ${-26 * uy - 14 * ux} 0 0`;
    }
    const pull = 0.35;
    return `M${from.x} ${from.y}Q${scene.centre + ((from.x + to.x) / 2 - scene.centre) * pull} ${scene.centre + ((from.y + to.y) / 2 - scene.centre) * pull} ${to.x} ${to.y}`;
  }
  // Arcs: what comes from earlier tokens on the right, from later ones on the left, from itself a small loop on the right.
  const side = key <= query ? 1 : -1;
  const start = scene.edge + 6;
  if (query === key) return `M${to.x + start} ${to.y - 4}c16 -9 16 17 0 8`;
  const far = start + Math.min(scene.room - 4, 14 + scene.room * (Math.abs(query - key) / Math.max(6, scene.hears.length - 1)) ** 0.75);
  const x = to.x + side * start;
  return `M${x} ${from.y}C${to.x + side * (start + (far - start) * 1.33)} ${from.y} ${to.x + side * (start + (far - start) * 1.33)} ${to.y} ${x} ${to.y}`;
}

// ---- the picture --------------------------------------------------------------------------------------------------

function picture(kept, width, live) {
  const { header, blocks } = kept;
  const scene = arrange(kept, width);
  const wide = scene.width || width;
  const most = Math.max(4, Math.floor(header.layout === "circle" && !header.sources ? 80 / (scene.font * 0.58) : (header.sources ? width * 0.3 : Math.min(width * 0.3, 170)) / (scene.font * 0.58)));
  const long = Math.max(...header.labels.map((label) => Math.min(most, [...label].length)));
  scene.edge = (long * scene.font * 0.58) / 2 + 8;
  scene.room = width / 2 - scene.edge - 14;
  const svg = node("svg", { width: wide, height: scene.height, viewBox: `0 0 ${wide} ${scene.height}`, "font-family": live ? kept.font : "sans-serif" });
  const marker = node("marker", { id: "tip", viewBox: "0 0 8 8", refX: 6.5, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" });
  marker.append(node("path", { d: "M0 0L8 4L0 8z", fill: kept.primary }));
  const defs = node("defs", {});
  defs.append(marker);
  const lines = node("g", { fill: "none", stroke: kept.primary });
  const top = blocks.weights.length ? blocks.weights[0] : 1;
  const edges = Array.from(blocks.weights, (weight, at) => {
    const [query, key] = [blocks.queries[at], blocks.keys[at]];
    const share = weight / top;
    const line = node("path", { d: path(kept, scene, query, key), "stroke-width": (0.75 + 4.25 * share).toFixed(2), opacity: (0.2 + 0.6 * share).toFixed(2), "marker-end": "url(#tip)" });
    lines.prepend(line); // the strongest on top
    return { query, key, weight, line, calm: 0.2 + 0.6 * share };
  });
  const loudest = Math.max(...blocks.out, 1e-9);
  const token = (label, place, at, kind, size) => {
    const group = node("g", { "data-at": at, class: `node ${kind}` });
    const content = cut(label, most);
    const circle = header.layout === "circle" && !header.sources;
    const middle = place.anchor === "middle";
    const away = circle ? 14 + 4 * size : 10 + 4 * size;
    const [dx, dy] = circle ? [Math.cos(place.angle) * away, Math.sin(place.angle) * away] : [middle ? 0 : place.anchor === "start" ? away : -away, 0];
    const turned = circle && header.labels.length > 24; // so many names stand like the rays of a sun
    const name = node("text", { x: place.x + dx, y: place.y + dy, "text-anchor": circle && !turned && Math.abs(dx) < 6 ? "middle" : place.anchor, "dominant-baseline": "central", "font-size": scene.font.toFixed(1), fill: kept.ink, direction: "ltr", "unicode-bidi": "isolate" }, content);
    if (turned) name.setAttribute("transform", `rotate(${(place.angle * 180) / Math.PI + (place.anchor === "end" ? 180 : 0)} ${place.x + dx} ${place.y + dy})`);
    if (middle) group.append(node("rect", { x: place.x - scene.edge, y: place.y - scene.font * 0.72, width: 2 * scene.edge, height: scene.font * 1.44, rx: 5, fill: kept.primary, "fill-opacity": (0.5 * size).toFixed(2), class: "plate" }));
    else group.append(node("circle", { cx: place.x, cy: place.y, r: (3.5 + 8 * size).toFixed(1), fill: kept.primary, stroke: kept.paper, "stroke-width": 1.5, class: "plate" }));
    group.append(name);
    return group;
  };
  const heard = header.labels.map((label, at) => token(label, scene.hears[at], at, "query", header.sources ? 0.25 : Math.sqrt(Math.max(0, blocks.out[at]) / loudest)));
  const spoken = header.sources ? header.sources.map((label, at) => token(label, scene.speaks[at], at, "key", Math.sqrt(Math.max(0, blocks.out[at]) / loudest))) : [];
  svg.append(defs, lines, ...spoken, ...heard);
  return { svg, edges, heard, spoken, height: scene.height, width: wide };
}

function draw(kept) {
  const { header, blocks } = kept;
  const scroll = make("div", "sheet");
  const line = make("p", "value");
  line.setAttribute("role", "status");
  const foot = make("div", "foot");
  foot.append(...exports(kept));
  kept.root.replaceChildren(scroll, line, foot);
  const name = (label) => {
    const token = make("b", "", label);
    token.dir = "auto";
    return token;
  };
  const listing = (list, label) => list.slice(0, 5).flatMap(({ weight, at }, i) => [i ? ", " : "", name(label(at)), ` ${weight.toFixed(2)}`]);
  let now;
  const light = (kind, at) => {
    const on = at >= 0;
    now.edges.forEach(({ query, key, line: edge, calm }) => {
      const mine = kind === "query" ? query === at : key === at;
      edge.setAttribute("opacity", !on ? calm : mine ? Math.max(0.7, calm) : 0.1);
    });
  };
  const show = (kind, at) => {
    light(kind, at);
    if (at < 0) return line.replaceChildren("An edge goes from a token to the one that listens to it. Point at a token to see its messages; click it to open them.");
    const mine = now.edges.filter((edge) => edge[kind] === at).map((edge) => ({ weight: edge.weight, at: kind === "query" ? edge.key : edge.query }));
    const label = kind === "key" && header.sources ? header.sources[at] : header.labels[at];
    const others = kind === "query" ? header.sources || header.labels : header.labels;
    if (!mine.length) return line.replaceChildren(name(label), " has no edge above the rule.");
    line.replaceChildren(name(label), kind === "query" ? " listens to " : " is heard by ", ...listing(mine, (each) => others[each]), mine.length > 5 ? ` and ${mine.length - 5} more` : "");
  };
  kept.hold = (at) => {
    kept.held = at >= 0 && at < header.labels.length ? at : -1;
    now.heard.forEach((group, i) => {
      group.setAttribute("aria-pressed", i === kept.held);
      group.classList.toggle("held", i === kept.held);
      group.setAttribute("tabindex", i === Math.max(0, kept.held) ? 0 : -1);
    });
    kept.root.dataset.row = kept.held;
    show("query", kept.held);
  };
  const fit = () => {
    const width = Math.max(300, Math.round(scroll.clientWidth) - 2);
    if (width === kept.width && scroll.firstChild) return;
    kept.width = width;
    now = picture(kept, width, true);
    now.svg.setAttribute("role", "group");
    now.svg.setAttribute("aria-label", `${header.title}: ${header.labels.length} tokens, ${blocks.weights.length} edges. Arrow keys move from token to token, Enter opens its messages. The table has the same numbers.`);
    const past = now.heard.length - 1;
    now.heard.forEach((group, at) => {
      group.setAttribute("role", "button");
      group.setAttribute("aria-label", `Token ${at}, ${header.labels[at]}`);
      group.onclick = () => {
        kept.hold(at);
        kept.send("row", at);
      };
      group.onmouseenter = group.onfocus = () => show("query", at);
      group.onmouseleave = group.onblur = () => show("query", kept.held ?? -1);
      group.onkeydown = (event) => {
        if (!plainKey(event)) return;
        const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: at - 1, Home: 0, End: past }[event.key];
        if (event.key === "Enter" || event.key === " ") {
          event.preventDefault();
          group.onclick();
        } else if (now.heard[to]) {
          event.preventDefault();
          now.heard.forEach((each, i) => each.setAttribute("tabindex", i === to ? 0 : -1));
          now.heard[to].focus();
        }
      };
    });
    now.spoken.forEach((group, at) => {
      group.onmouseenter = () => show("key", at);
      group.onmouseleave = () => show("query", kept.held ?? -1);
    });
    scroll.replaceChildren(now.svg);
    kept.hold(kept.held ?? -1);
  };
  kept.width = undefined;
  kept.observer?.disconnect();
  kept.observer = new ResizeObserver(fit);
  kept.observer.observe(scroll);
  fit();
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

// The graph on a sheet with title and caption.
function sheet(kept) {
  const { header } = kept;
  const drawn = picture(kept, 760, false);
  const width = Math.max(800, drawn.width + 40);
  const lines = header.caption.flatMap((each) => broken(each, Math.floor((width - 32) / 6.4)).slice(0, 5));
  const from = 60 + lines.length * 17;
  const height = from + drawn.height + 20;
  const svg = node("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "sans-serif", fill: kept.ink });
  svg.append(node("rect", { width: "100%", height: "100%", fill: kept.paper }), node("text", { x: 16, y: 26, "font-size": 16, "font-weight": 600 }, header.title));
  lines.forEach((each, at) => svg.append(node("text", { x: 16, y: 46 + at * 17, "font-size": 12 }, each)));
  const group = node("g", { transform: `translate(20 ${from})` });
  group.append(...drawn.svg.childNodes);
  svg.append(group);
  return svg;
}
