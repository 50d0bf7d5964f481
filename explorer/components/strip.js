// A sentence as a row of tokens. Those that can be chosen are buttons; the arrow keys go from one to the next. While a text writes itself
// the browser asks for each next token, once the one before is on screen: a slow server is waited for, and nothing piles up.

const KEPT = new WeakMap();
const PATIENCE = 4; // seconds after which a request that brought nothing is made again

export default function ({ data, parentElement, setTriggerValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = { at: -1 }));
  kept.send = setTriggerValue;
  if (kept.data !== data) {
    kept.data = data;
    kept.header = decode(data).header;
    clearTimeout(kept.timer);
    ask(kept, kept.header.every);
  }
  dress(parentElement);
  const root = parentElement.querySelector(".strip");
  const held = root.contains(root.getRootNode().activeElement);
  const before = root.querySelector(".row");
  const [scrolled, n] = [before?.scrollTop || 0, before?.children.length || 0];
  draw(root, kept);
  const row = root.querySelector(".row");
  row.scrollTop = kept.header.atEnd && row.children.length !== n ? row.scrollHeight : scrolled;
  if (held) row.children[kept.at]?.focus({ preventScroll: true });
  root.dataset.token = kept.header.token;
  return () => clearTimeout(kept.timer);
}

function ask(kept, seconds) {
  if (seconds > 0)
    kept.timer = setTimeout(() => {
      kept.send("tick", kept.header.tokens.length);
      ask(kept, PATIENCE);
    }, seconds * 1000);
}

function draw(root, kept) {
  const { header } = kept;
  const row = make("div", "row");
  row.setAttribute("role", "group");
  row.setAttribute("aria-label", header.about);
  const list = header.tokens.map((token, at) => {
    const box = make(token.open ? "button" : "span", `token ${token.tone}`);
    const label = make("span", "label", token.label);
    label.dir = "auto";
    box.append(label);
    if (token.under) box.append(make("span", "under", token.under));
    box.dataset.at = at;
    if (token.spoken) {
      box.setAttribute("aria-label", token.spoken);
      box.title = token.spoken;
      if (!token.open) box.setAttribute("role", "img");
    }
    if (!token.open) return box;
    box.setAttribute("aria-pressed", token.tone === "hidden");
    if (at === header.chosen) box.setAttribute("aria-current", "true");
    box.onclick = () => {
      kept.at = at;
      kept.send("at", at);
    };
    box.onfocus = () => {
      kept.at = at;
      list.forEach((other) => other.tagName === "BUTTON" && (other.tabIndex = other === box ? 0 : -1));
    };
    box.onkeydown = (event) => {
      if (!plainKey(event)) return;
      const open = list.filter((other) => other.tagName === "BUTTON");
      const here = open.indexOf(box);
      const next = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: open.length - 1 }[event.key];
      if (open[next]) {
        event.preventDefault();
        open[next].focus();
      }
    };
    return box;
  });
  row.append(...list);
  const open = list.filter((box) => box.tagName === "BUTTON");
  const first = list[header.chosen]?.tagName === "BUTTON" ? list[header.chosen] : open[0];
  open.forEach((box) => (box.tabIndex = box === first ? 0 : -1));
  // The line stays the same element: a screen reader hears what changes in it, not what is new on the page.
  let says = root.querySelector(".says");
  if (!says) {
    says = make("p", "says");
    says.setAttribute("role", "status");
  }
  if (says.textContent !== header.says) says.textContent = header.says;
  root.replaceChildren(row, says, ...(header.hint ? [make("p", "hint", header.hint)] : []));
}
