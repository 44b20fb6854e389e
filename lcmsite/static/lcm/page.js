// What every page does by itself; a page that needs more brings its own script.
(() => {
  const root = document.documentElement;

  function isDark() {
    return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  document.addEventListener("click", (event) => {
    const theme = event.target.closest("[data-theme-switch]");
    if (theme) {
      root.dataset.theme = isDark() ? "light" : "dark";
      localStorage.setItem("lcm-theme", root.dataset.theme);
      document.dispatchEvent(new CustomEvent("lcm:theme"));
    }
    const toggle = event.target.closest("[data-toggles]");
    if (toggle) {
      const shown = document.getElementById(toggle.dataset.toggles).classList.toggle("open");
      toggle.setAttribute("aria-expanded", String(shown));
    }
    const copy = event.target.closest("[data-copies]");
    if (copy) navigator.clipboard.writeText(document.getElementById(copy.dataset.copies).textContent);
  });

  // A choice that leads to another page: data-goes is its address, with the place that the choice fills.
  document.addEventListener("change", (event) => {
    const form = event.target.closest("[data-goes]");
    const place = event.target.dataset && event.target.dataset.replaces;
    if (form && place) location.href = form.dataset.goes.replace(place, encodeURIComponent(event.target.value));
  });

  // "/" goes to the search of the page, as people are used to.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, textarea, select, [contenteditable]")) return;
    const search = document.querySelector("[data-search]");
    if (search) { event.preventDefault(); search.focus(); }
  });

  document.addEventListener("keydown", (event) => {
    const opened = event.key === "Escape" && document.querySelector("[data-toggles][aria-expanded=true]");
    if (opened) { opened.click(); opened.focus(); }
  });

  // Forms that cannot be undone ask once more, in words of their own.
  document.addEventListener("submit", (event) => {
    const question = event.target.dataset && event.target.dataset.asks;
    if (question && !confirm(question)) event.preventDefault();
  });

  // An address says what was chosen, and not what was left open.
  document.addEventListener("htmx:configRequest", (event) => {
    const { verb, formData } = event.detail;
    if (verb !== "get") return;
    for (const name of new Set(formData.keys())) {
      if (formData.getAll(name).every((value) => value === "")) formData.delete(name);
    }
  });
  document.addEventListener("htmx:beforeRequest", () => wait(true));
  document.addEventListener("htmx:afterRequest", () => wait(false));
  // A refusal is a piece of the page, too: it says what to do.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.xhr.status >= 400) { event.detail.shouldSwap = true; event.detail.isError = false; }
  });
  document.addEventListener("htmx:sendError", () => { document.body.dataset.offline = "yes"; });
  document.addEventListener("htmx:afterOnLoad", () => { delete document.body.dataset.offline; });

  // A button that more takes the place of would take the focus along, and move what somebody was reading. The focus goes
  // to what came, next to where they were; what stood behind the button stays where it was.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const gone = event.detail.target, button = event.detail.requestConfig.elt;
    if (!button.matches("button") || !gone.contains(button) || document.activeElement !== button) return;
    const { previousElementSibling: before, nextElementSibling: behind, parentElement: list } = gone;
    const top = behind && behind.getBoundingClientRect().top;
    document.addEventListener("htmx:afterSettle", function settled() {
      if (gone.isConnected) return;
      document.removeEventListener("htmx:afterSettle", settled);
      const came = behind ? behind.previousElementSibling : before ? before.nextElementSibling : list.firstElementChild;
      if (behind) scrollBy(0, behind.getBoundingClientRect().top - top);
      const first = came && came.querySelector("a, button");
      if (first) first.focus({ preventScroll: Boolean(behind) });
    });
  });

  // What scrolls within a page is reached by keys, too; what fits is no stop on the way.
  function reachable() {
    for (const each of document.querySelectorAll("pre, .quoted, .seen, .snippet, .sources, .table, .text")) {
      const scrolls = each.scrollHeight > each.clientHeight + 1 || each.scrollWidth > each.clientWidth + 1;
      const can = scrolls && getComputedStyle(each).overflowY !== "visible";
      if (can && !each.hasAttribute("tabindex")) { each.tabIndex = 0; each.dataset.scrolls = ""; }
      else if (!can && "scrolls" in each.dataset) { each.removeAttribute("tabindex"); delete each.dataset.scrolls; }
    }
  }
  for (const moment of ["DOMContentLoaded", "htmx:afterSettle"]) document.addEventListener(moment, reachable);
  document.addEventListener("toggle", reachable, true);
  addEventListener("resize", reachable);

  let waiting = 0, timer = 0;
  function wait(more) {
    waiting = Math.max(0, waiting + (more ? 1 : -1));
    clearTimeout(timer);
    const sign = document.getElementById("wait");
    if (!sign) return;
    if (waiting) timer = setTimeout(() => { sign.hidden = false; }, 400);
    else sign.hidden = true;
  }
})();
