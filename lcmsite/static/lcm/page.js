// Behaviour that all pages share. A page that needs more has its own script.
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

  // A selection that opens another page: data-goes is the URL, in which the selected value replaces data-replaces.
  document.addEventListener("change", (event) => {
    const form = event.target.closest("[data-goes]");
    const place = event.target.dataset && event.target.dataset.replaces;
    if (form && place) location.href = form.dataset.goes.replace(place, encodeURIComponent(event.target.value));
  });

  // The key "/" moves the focus to the search field of the page.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, textarea, select, [contenteditable]")) return;
    const search = document.querySelector("[data-search]");
    if (search) { event.preventDefault(); search.focus(); }
  });

  document.addEventListener("keydown", (event) => {
    const opened = event.key === "Escape" && document.querySelector("[data-toggles][aria-expanded=true]");
    if (opened) { opened.click(); opened.focus(); }
  });

  // Typing a value beside a radio button chooses the button.
  document.addEventListener("input", (event) => {
    const radio = event.target.closest("label")?.querySelector("input[type=radio]");
    if (radio) radio.checked = true;
  });

  // Forms whose effect cannot be undone ask for confirmation, with the text in data-asks.
  document.addEventListener("submit", (event) => {
    const question = event.target.dataset && event.target.dataset.asks;
    if (question && !confirm(question)) event.preventDefault();
  });

  // URLs contain only fields with a value: empty fields are removed from GET requests.
  document.addEventListener("htmx:configRequest", (event) => {
    const { verb, formData } = event.detail;
    if (verb !== "get") return;
    for (const name of new Set(formData.keys())) {
      if (formData.getAll(name).every((value) => value === "")) formData.delete(name);
    }
  });
  document.addEventListener("htmx:beforeRequest", () => wait(true));
  document.addEventListener("htmx:afterRequest", () => wait(false));
  // Show error responses in the page, too: they explain what to do.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.xhr.status >= 400) { event.detail.shouldSwap = true; event.detail.isError = false; }
  });
  document.addEventListener("htmx:sendError", () => { document.body.dataset.offline = "yes"; });
  document.addEventListener("htmx:afterOnLoad", () => { delete document.body.dataset.offline; });

  // A "More" button is replaced by the content that it loads. Without this, the focus would be lost and the text on the
  // screen would move. The focus goes to the first link or button in the new content; what follows the button keeps its position.
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

  // Elements that scroll can be focused with the Tab key; elements whose content fits cannot.
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
