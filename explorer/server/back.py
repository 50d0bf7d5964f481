"""One press of Back a page: what the browser remembers of the way through the app."""

from __future__ import annotations

# Streamlit makes a stop in the browser's history of every change of the address. A stop is another
# page, another text or another model; all else, and what a page writes into its own address when it
# opens, takes the place of what was there.
SCRIPT = b"""<script>
(() => {
  const push = history.pushState.bind(history);
  let opening = true;
  const acted = () => { opening = false; };
  for (const act of ["pointerdown", "keydown"]) addEventListener(act, acted, true);
  history.pushState = (state, unused, url) => {
    const from = new URL(location.href), to = new URL(url ?? from, from);
    const another = from.pathname !== to.pathname;
    const differs = (name) => from.searchParams.get(name) !== to.searchParams.get(name);
    const told = ["text", "model"].some(differs);
    if (another || (told && !opening)) push(state, unused, url);
    else history.replaceState(state, unused, url);
    opening = another;
  };
})();
</script>"""
