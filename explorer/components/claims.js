// Claims with their verdicts. A row is a button that opens what was measured; the arrow keys go from row to row.

const KEPT = new WeakMap();

export default function ({ data, parentElement, setTriggerValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = { open: "", told: -1, at: "" }));
  kept.send = setTriggerValue;
  if (kept.data !== data) {
    kept.data = data;
    kept.header = decode(data).header;
    if (kept.header.told !== kept.told) [kept.open, kept.told] = [kept.header.open, kept.header.told];
  }
  dress(parentElement);
  draw(kept, parentElement.querySelector(".claims"));
  return () => {};
}

function draw(kept, root) {
  const { header } = kept;
  const held = root.contains(root.getRootNode().activeElement);
  let says = root.querySelector(".says");
  if (!says) {
    says = make("p", "says");
    says.setAttribute("role", "status");
    root.append(make("div", "counts"), says, make("div", "groups"));
  }
  root.querySelector(".counts").replaceChildren(...header.counts.map(line));
  if (says.textContent !== header.says) says.textContent = header.says;
  kept.buttons = [];
  root.querySelector(".groups").replaceChildren(...header.groups.map((group) => section(kept, root, group)));
  if (!header.groups.length) root.querySelector(".groups").append(make("p", "none", "No claim has this verdict here."));
  const now = kept.buttons.find((button) => button.dataset.id === kept.at) || kept.buttons.find((button) => button.dataset.id === kept.open) || kept.buttons[0];
  kept.buttons.forEach((button) => (button.tabIndex = button === now ? 0 : -1));
  if (held) now?.focus({ preventScroll: true });
  root.dataset.token = header.token;
  if (kept.open && kept.shown === undefined) {
    const one = kept.buttons.find((button) => button.dataset.id === kept.open);
    if (one) requestAnimationFrame(() => one.scrollIntoView({ block: "center" }));
  }
  kept.shown = kept.open;
}

function line({ name, means, each }) {
  const box = make("div", "kind");
  const title = make("b", "", name);
  title.title = means;
  box.append(title, ...each.map(count));
  return box;
}

function count({ n, words, tone }) {
  const box = make("div", `count ${tone}`);
  box.append(make("strong", "", String(n)), make("span", "", words));
  return box;
}

function section(kept, root, group) {
  const box = make("section", "group");
  const title = make("h3", "", group.name);
  title.id = `note-${group.name.replace(/\W+/g, "-")}`;
  box.setAttribute("aria-labelledby", title.id);
  box.append(title, make("p", "under", group.under));
  group.rows.forEach((row) => box.append(claim(kept, root, row)));
  return box;
}

function claim(kept, root, row) {
  const box = make("div", `claim ${row.tone}`);
  const button = make("button", "row");
  const open = kept.open === row.id;
  button.dataset.id = row.id;
  button.setAttribute("aria-expanded", open);
  const verdict = make("span", "verdict");
  verdict.append(make("span", "mark", row.mark), make("span", "word", row.verdict));
  const value = make("span", "value");
  value.append(make("span", "number", row.shown), make("span", "bound", row.rule));
  if (row.chance) value.append(make("span", "bound", row.chance));
  button.append(verdict, make("span", "statement", row.statement), value);
  button.onclick = () => {
    kept.open = open ? "" : row.id;
    kept.at = row.id;
    kept.send("claim", kept.open);
    draw(kept, root);
    kept.buttons.find((other) => other.dataset.id === row.id)?.focus({ preventScroll: true });
  };
  button.onfocus = () => {
    kept.at = row.id;
    kept.buttons.forEach((other) => (other.tabIndex = other === button ? 0 : -1));
  };
  button.onkeydown = (event) => {
    if (!plainKey(event)) return;
    const at = kept.buttons.indexOf(button);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: kept.buttons.length - 1 }[event.key];
    if (kept.buttons[next]) {
      event.preventDefault();
      kept.buttons[next].focus();
    }
  };
  kept.buttons.push(button);
  box.append(button);
  if (open) box.append(details(kept, row));
  return box;
}

function details(kept, row) {
  const box = make("div", "details");
  const why = make("p", "why", row.why);
  why.dir = "auto";
  const test = make("div", "test");
  test.append(make("h4", "", "The test"), make("p", "", row.how), make("p", "formula", row.formula), make("p", "rule", `Holds where the number is ${row.holds}.`), make("p", "sort", row.kind));
  box.append(why);
  const side = make("div", "sides");
  side.append(test);
  if (row.parts.length) {
    const table = make("table", "parts");
    table.append(make("caption", "", "Part by part"));
    row.parts.forEach(([name, value]) => {
      const line = make("tr");
      const head = make("th", "", name);
      head.scope = "row";
      line.append(head, make("td", "", value));
      table.append(line);
    });
    side.append(table);
  }
  box.append(side);
  if (row.remark) {
    const remark = make("p", "remark");
    remark.append(make("b", "", "On the note: "), document.createTextNode(row.remark));
    test.append(remark); // beside a long table and not below it
  }
  const [file, label, url] = row.page;
  const link = make("a", "go", `See it on the page ${label} →`);
  link.href = new URL(url, document.baseURI).href + window.location.search;
  link.onclick = (event) => {
    if (!plainKey(event) || event.shiftKey) return; // a new tab or window is the browser's affair
    event.preventDefault();
    kept.send("go", file);
  };
  test.append(link);
  return box;
}
