// The sentence field. It holds what the reader types and the server what is drawn; where the two differ, the field says so.

const KEPT = new WeakMap();
const PAUSE = 350; // ms after the last key, before a text is drawn that nobody sent
const SENT = 20; // texts remembered as sent, so that their answers are told from news

export default function ({ data, parentElement, setStateValue }) {
  let kept = KEPT.get(parentElement);
  if (!kept) KEPT.set(parentElement, (kept = { sent: [] }));
  kept.send = setStateValue;
  dress(parentElement);
  const root = parentElement.querySelector(".sentence");
  if (!kept.field) build(root, kept);
  if (kept.data !== data) {
    kept.data = data;
    take(root, kept, decode(data).header);
  }
  return () => clearTimeout(kept.timer);
}

function build(root, kept) {
  const field = (kept.field = make("textarea"));
  field.rows = 1;
  field.dir = "auto";
  field.spellcheck = false;
  field.placeholder = "Paste or type any text";
  field.setAttribute("aria-label", "Your text");
  field.title = "Enter draws, Shift + Enter breaks the line";
  const button = make("button", "", "Draw  ⏎");
  button.type = "button";
  button.onclick = () => draw(root, kept);
  kept.says = make("p", "says");
  kept.says.setAttribute("role", "status");
  field.oninput = () => {
    mark(root, kept);
    clearTimeout(kept.timer);
    if (kept.header.live && !kept.composing) kept.timer = setTimeout(() => draw(root, kept), PAUSE);
  };
  field.addEventListener("compositionstart", () => (kept.composing = true));
  field.addEventListener("compositionend", () => {
    kept.composing = false;
    field.oninput();
  });
  field.onkeydown = (event) => {
    event.stopPropagation(); // the page's own keys are no letters
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    draw(root, kept);
  };
  root.append(field, button, kept.says);
  new ResizeObserver(() => fit(field)).observe(root);
}

// An answer to what was sent leaves alone what the reader has typed since; any other text is news and takes its place.
function take(root, kept, header) {
  kept.header = header;
  const at = kept.sent.indexOf(header.text);
  if (at < 0 || kept.field.value === header.text) {
    clearTimeout(kept.timer);
    if (kept.field.value !== header.text) kept.field.value = header.text;
    kept.sent = [];
  } else kept.sent.splice(0, at);
  mark(root, kept);
}

function draw(root, kept) {
  clearTimeout(kept.timer);
  const text = kept.field.value;
  if (text === kept.header.text && !kept.sent.length) return;
  kept.sent = [...kept.sent, text].slice(-SENT);
  kept.send("text", text);
}

// A picture of another text than the one in the field is not left to look like this one's.
function mark(root, kept) {
  const stale = kept.field.value !== kept.header.text;
  const waits = stale && !kept.header.live;
  root.classList.toggle("stale", waits);
  const long = kept.field.value.length - kept.header.longest;
  const says = long > 0 ? `The text is ${long} characters longer than what is read.` : waits ? "Not drawn yet: press Enter." : "";
  if (kept.says.textContent !== says) kept.says.textContent = says;
  document.documentElement.toggleAttribute("data-headlight-stale", waits);
  fit(kept.field);
}

function fit(field) {
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight + 2}px`;
}
