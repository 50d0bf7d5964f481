// What one token looks at: the sentence tinted by one head, and under it every head as a row of a map.

const KEPT = new WeakMap();
const TOLD = 4;

export default function ({ data, parentElement, setTriggerValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = {}));
  kept.send = setTriggerValue;
  if (kept.data !== data) {
    kept.data = data;
    Object.assign(kept, decode(data));
    kept.n = kept.header.tokens.length;
    kept.row = Math.max(0, kept.header.names.indexOf(kept.header.chosen));
    kept.over = -1;
  }
  dress(parentElement);
  const root = parentElement.querySelector(".looks");
  kept.words = colours(root);
  const held = root.contains(root.getRootNode().activeElement);
  kept.observer?.disconnect();
  draw(root, kept);
  if (held) kept.rows[kept.row].focus({ preventScroll: true });
  root.dataset.token = kept.header.token;
  const mine = kept.observer;
  return () => mine.disconnect();
}

const title = (name) => (name ? `Layer ${name.split(".")[0]}, head ${name.split(".")[1]}` : "Mean of all heads");
const short = (name) => (name ? `L${name.split(".")[0]} H${name.split(".")[1]}` : "mean");
const weights = (kept, row) => kept.blocks.weights.subarray(row * kept.n, (row + 1) * kept.n);
const peak = (list) => list.reduce((a, b) => Math.max(a, b), 0);

function draw(root, kept) {
  const { header, n } = kept;
  const says = make("p", "says");
  says.setAttribute("role", "status");
  const sentence = make("div", "tokens");
  const tokens = header.tokens.map((label, k) => {
    const token = make("span", `token ${header.tones[k]}`, label);
    token.dir = "auto";
    token.onmouseenter = () => tell(kept, k);
    token.onmouseleave = () => tell(kept, -1);
    return token;
  });
  sentence.append(...tokens);
  const map = make("div", "map");
  map.setAttribute("role", "group");
  map.setAttribute("aria-label", `What ${header.who} looks at in each head. Arrow keys move, Enter opens a head.`);
  const names = make("div", "names");
  kept.rows = header.names.map((name, row) => {
    const button = make("button", "", short(name));
    const best = strongest(weights(kept, row), 2).map((k) => `${header.tokens[k]} ${weights(kept, row)[k].toFixed(2)}`);
    button.setAttribute("aria-label", `${title(name)}: ${best.join(", ")}`);
    button.dataset.name = name;
    button.onclick = () => {
      kept.row = row;
      kept.show(-1);
      kept.send("row", name);
    };
    button.onfocus = () => kept.show(row);
    button.onblur = () => kept.show(-1);
    button.onmouseenter = () => kept.show(row);
    button.onmouseleave = () => kept.show(-1);
    button.onkeydown = (event) => {
      if (!plainKey(event)) return;
      const next = { ArrowDown: row + 1, ArrowUp: row - 1, Home: 0, End: kept.rows.length - 1 }[event.key];
      if (kept.rows[next]) {
        event.preventDefault();
        kept.rows.forEach((other, at) => (other.tabIndex = at === next ? 0 : -1));
        kept.rows[next].focus();
      }
    };
    return button;
  });
  names.append(...kept.rows);
  const canvas = make("canvas");
  canvas.setAttribute("aria-hidden", "true");
  canvas.width = n;
  canvas.height = header.names.length;
  const image = new ImageData(n, header.names.length);
  const pixels = new Uint32Array(image.data.buffer);
  header.names.forEach((_, row) => {
    const full = peak(weights(kept, row));
    weights(kept, row).forEach((weight, k) => (pixels[row * n + k] = kept.words[shade(weight, full, false)]));
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    const clip = (share, size) => Math.max(0, Math.min(size - 1, Math.floor(share * size)));
    return [clip((event.clientY - box.top) / box.height, header.names.length), clip((event.clientX - box.left) / box.width, n)];
  };
  canvas.onmousemove = (event) => {
    const [row, k] = at(event);
    kept.show(row);
    tell(kept, k);
  };
  canvas.onmouseleave = () => kept.show(-1);
  canvas.onclick = (event) => kept.rows[at(event)[0]].click();
  map.append(names, canvas);
  kept.show = (over) => {
    kept.over = over;
    const row = over >= 0 ? over : kept.row;
    const list = weights(kept, row);
    const full = peak(list);
    tokens.forEach((token, k) => {
      const word = kept.words[shade(list[k], full, false)];
      token.style.background = css(word);
      token.style.color = inkOn(word);
    });
    kept.rows.forEach((button, at) => {
      button.setAttribute("aria-pressed", at === kept.row);
      button.classList.toggle("over", at === over);
    });
    tell(kept, -1);
  };
  kept.says = says;
  kept.rows.forEach((button, at) => (button.tabIndex = at === kept.row ? 0 : -1));
  const foot = make("div", "foot");
  foot.append(make("span", "note", "One row a head, one column a token, first token left."), legend(kept.words, "0", "each row’s largest"));
  root.replaceChildren(sentence, says, map, foot);
  kept.show(-1);
  // The newest tokens of a long text are what is looked at first.
  sentence.scrollTop = sentence.scrollHeight;
  kept.observer = new ResizeObserver(() => (canvas.style.height = `${names.clientHeight}px`));
  kept.observer.observe(names);
}

function tell(kept, k) {
  const { header } = kept;
  const row = kept.over >= 0 ? kept.over : kept.row;
  const list = weights(kept, row);
  const name = (label) => {
    const token = make("b", "", label);
    token.dir = "auto";
    return token;
  };
  kept.says.replaceChildren(`${title(header.names[row])}: `, name(header.who), " looks at ");
  (k >= 0 ? [k] : strongest(list, TOLD)).forEach((k, i) => kept.says.append(i ? ",  " : "", name(header.tokens[k]), ` ${list[k].toFixed(k >= 0 ? 4 : 2)}`));
}

// Places of the largest weights, largest first.
function strongest(list, most) {
  return [...list.keys()].sort((a, b) => list[b] - list[a]).slice(0, most);
}
