// A list of names with bars and numbers. Rows that can be chosen are buttons; the arrow keys go from one to the next.

const KEPT = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = { at: 0 }));
  kept.send = setTriggerValue;
  if (kept.data !== data) {
    kept.data = data;
    kept.header = decode(data).header;
  }
  dress(parentElement);
  const root = parentElement.querySelector(".bars");
  const held = root.contains(root.getRootNode().activeElement);
  root.replaceChildren(table(kept));
  if (held) kept.buttons[kept.at]?.focus({ preventScroll: true });
  root.dataset.token = kept.header.token;
  return () => {};
}

function table(kept) {
  const { header } = kept;
  const list = make("div", "list");
  list.setAttribute("role", "group");
  list.setAttribute("aria-label", header.about + (header.action ? ` Arrow keys move, Enter ${header.action}.` : ""));
  list.style.setProperty("--columns", header.columns.length);
  const head = make("div", "row heads");
  head.setAttribute("aria-hidden", "true");
  head.append(make("span", "name"), make("span", "track"), ...header.columns.map((name) => make("span", "number", name)));
  list.append(head);
  kept.buttons = [];
  header.rows.forEach((row) => {
    if (row.gap) list.append(gap());
    list.append(line(kept, row));
  });
  const chosen = kept.buttons.findIndex((button) => button.dataset.key === header.chosen);
  kept.at = Math.max(0, Math.min(chosen >= 0 ? chosen : kept.at, kept.buttons.length - 1));
  kept.buttons.forEach((button, at) => (button.tabIndex = at === kept.at ? 0 : -1));
  return list;
}

function gap() {
  const dots = make("div", "gap", "⋮");
  dots.setAttribute("aria-hidden", "true");
  return dots;
}

function line(kept, row) {
  const { header } = kept;
  const box = make(row.key ? "button" : "div", `row ${row.tone}`);
  const name = make("span", "name");
  const label = make("span", "label", row.label);
  label.dir = "auto";
  label.title = row.label;
  name.append(label);
  if (row.mark) name.append(make("span", "mark", row.mark));
  const track = make("span", "track");
  const { low, high } = header;
  const share = (value) => (100 * value) / (high - low || 1);
  const bar = (className, value) => {
    const one = make("i", className);
    one.style.left = `${share(Math.min(value, 0) - low)}%`;
    one.style.width = `${Math.min(100, share(Math.abs(value)))}%`;
    one.classList.toggle("below", value < 0);
    one.classList.toggle("torn", value > high * 1.0001);
    track.append(one);
  };
  if (row.behind !== null) bar("behind", row.behind);
  bar("value", row.value);
  track.classList.toggle("two", row.behind !== null);
  if (low < 0) {
    const zero = make("i", "zero");
    zero.style.left = `${share(-low)}%`;
    track.append(zero);
  }
  box.append(name, track, ...row.numbers.map((number) => make("span", "number", number)));
  if (!row.key) {
    box.setAttribute("role", "note");
    return box;
  }
  const spoken = row.numbers.map((number, at) => `${header.columns[at]} ${number}`).join(", ");
  box.setAttribute("aria-label", [row.label, row.mark, spoken].filter(Boolean).join(", "));
  if (header.chosen) box.setAttribute("aria-pressed", row.key === header.chosen);
  box.dataset.key = row.key;
  const at = kept.buttons.push(box) - 1;
  box.onclick = () => kept.send("row", row.key);
  box.onfocus = () => {
    kept.at = at;
    kept.buttons.forEach((button, other) => (button.tabIndex = other === at ? 0 : -1));
  };
  box.onkeydown = (event) => {
    if (!plainKey(event)) return;
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: kept.buttons.length - 1 }[event.key];
    if (kept.buttons[next]) {
      event.preventDefault();
      kept.buttons[next].focus();
    }
  };
  return box;
}
