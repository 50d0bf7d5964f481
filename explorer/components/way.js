// The map under the frame: stops of the sentence's way, each a button with a bar as high as what was added there.

const KEPT = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  if (KEPT.get(parentElement) === data) return;
  KEPT.set(parentElement, data);
  dress(parentElement);
  const { header } = decode(data);
  const root = parentElement.querySelector(".way");
  const list = make("ol");
  list.setAttribute("aria-label", header.about);
  const go = (goal) => () => setTriggerValue("goal", goal);
  list.append(...header.stops.map((stop) => drawn(stop, go(stop.goal))));
  if (header.words.length) list.append(said(header, go("predictions")));
  root.replaceChildren(list);
}

function drawn(stop, onclick) {
  const item = make("li", `${stop.lit ? "lit" : ""} ${stop.gap ? "gap" : ""}`);
  const button = make("button");
  button.type = "button";
  button.title = stop.says;
  button.setAttribute("aria-label", stop.says);
  if (stop.lit) button.setAttribute("aria-current", "true");
  button.onclick = onclick;
  if (stop.bar >= 0) {
    const room = make("span", "room");
    const bar = make("span", "bar");
    bar.style.height = `${Math.round(100 * Math.min(1, stop.bar))}%`;
    room.append(bar);
    button.append(room);
  }
  button.append(make("span", "name", stop.label));
  if (stop.bar < 0) button.lastChild.dir = "auto";
  item.append(button);
  return item;
}

function said({ words, lit }, onclick) {
  const item = make("li", `says gap ${lit ? "lit" : ""}`);
  const button = make("button");
  button.type = "button";
  button.onclick = onclick;
  button.setAttribute("aria-label", `The likeliest words: ${words.map(([word, p]) => `${word} ${percent(p)}`).join(", ")}`);
  button.append(make("span", "arrow", "→"));
  for (const [word, p] of words) {
    const one = make("span");
    const name = make("span", "word", word);
    name.dir = "auto";
    one.append(name, make("span", "p", percent(p)));
    button.append(one);
  }
  item.append(button);
  return item;
}

const percent = (p) => (p >= 0.995 && p < 1 ? "> 99%" : p > 0 && p < 0.01 ? "< 1%" : `${Math.round(100 * p)}%`);
