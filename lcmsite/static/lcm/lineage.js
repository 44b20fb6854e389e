// Navigation in the picture of the lineage. The server draws each window. This script requests windows, and moves the
// present picture until the next one arrives.
(() => {
  const section = document.getElementById("lineage");
  if (!section) return;
  const holder = document.getElementById("picture");
  const panel = document.getElementById("summary");
  let chosen = section.dataset.chosen;
  let requests = 0, timer = 0;

  const view = () => holder.querySelector(".lineage-view");
  function state() {
    const data = view().dataset;
    return { from: Number(data.from), to: Number(data.to), run: data.run, count: Math.max(1, Number(data.count)) };
  }

  function query(where) {
    const width = Math.round(holder.clientWidth) || 1100;
    const words = new URLSearchParams({ from: where.from, to: where.to, width });
    if (where.run) words.set("run", where.run);
    return words;
  }

  async function go(where) {
    const length = Math.max(1, Math.min(where.count, where.to - where.from + 1));
    const from = Math.min(Math.max(1, where.from), Math.max(1, where.count - length + 1));
    const next = { ...where, from, to: from + length - 1 };
    const mine = ++requests;
    const answer = await fetch(`${section.dataset.url}?${query(next)}`, { headers: { "HX-Request": "true" } });
    const text = await answer.text();
    if (mine !== requests) return;
    const had = document.activeElement === view();
    holder.innerHTML = text;
    if (had && view()) view().focus({ preventScroll: true });
    mark();
    remember(next);
  }

  function remember(where) {
    const words = query(where);
    words.delete("width");
    if (chosen) words.set("node", chosen);
    history.replaceState(null, "", `${location.pathname}?${words}`);
    const save = section.querySelector("[data-export]");
    words.set("download", "1");
    save.href = `${section.dataset.url}?${words}`;
  }

  // Zooming keeps the point under the pointer in place.
  function zoom(factor, share = 0.5) {
    const now = state(), length = now.to - now.from + 1;
    const wanted = Math.max(8, Math.round(length * factor));
    const from = Math.round(now.from + (length - wanted) * share);
    go({ ...now, from, to: from + wanted - 1 });
  }
  function move(share) {
    const now = state(), by = Math.max(1, Math.round((now.to - now.from + 1) * Math.abs(share))) * Math.sign(share);
    go({ ...now, from: now.from + by, to: now.to + by });
  }
  const whole = () => go({ ...state(), from: 1, to: state().count });

  function shareAt(event) {
    const drawing = view().querySelector("svg"), box = drawing.getBoundingClientRect();
    const scale = drawing.viewBox.baseVal.width / box.width, data = view().dataset;
    const x = (event.clientX - box.left) * scale;
    return Math.min(1, Math.max(0, (x - data.left) / (data.right - data.left)));
  }

  section.addEventListener("click", (event) => {
    const way = event.target.closest("[data-view]");
    if (way) ({ in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.5), right: () => move(0.5), whole })[way.dataset.view]();
    const bundle = event.target.closest(".bundle");
    if (bundle && !dragged) go({ ...state(), from: Number(bundle.dataset.from), to: Number(bundle.dataset.to) });
  });

  section.addEventListener("wheel", (event) => {
    if (!event.target.closest(".lineage-view") || !(event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)) {
      // A vertical wheel scrolls the page, a horizontal one moves the picture; with a modifier key, the wheel zooms.
      if (!event.target.closest(".lineage-view") || Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
      event.preventDefault();
      clearTimeout(timer);
      timer = setTimeout(() => move(Math.sign(event.deltaX) * 0.2), 60);
      return;
    }
    event.preventDefault();
    const share = shareAt(event), factor = (event.deltaY || event.deltaX) > 0 ? 1.5 : 1 / 1.5;
    clearTimeout(timer);
    timer = setTimeout(() => zoom(factor, share), 60);
  }, { passive: false });

  let begun = null, dragged = false;
  holder.addEventListener("pointerdown", (event) => {
    if (event.button || !event.target.closest(".lineage-view svg")) return;
    begun = { x: event.clientX, state: state() };
    dragged = false;
  });
  addEventListener("pointermove", (event) => {
    if (!begun) return;
    const by = event.clientX - begun.x;
    if (Math.abs(by) < 4 && !dragged) return;
    dragged = true;
    view().classList.add("dragging");
    const drawing = view().querySelector("svg");
    const scale = drawing.viewBox.baseVal.width / drawing.getBoundingClientRect().width;
    drawing.querySelector(".moving").setAttribute("transform", `translate(${by * scale} 0)`);
  });
  addEventListener("pointerup", (event) => {
    if (!begun) return;
    const { x, state: was } = begun;
    begun = null;
    if (!dragged) return;
    const drawing = view().querySelector("svg"), data = view().dataset;
    const scale = drawing.viewBox.baseVal.width / drawing.getBoundingClientRect().width;
    const share = ((x - event.clientX) * scale) / (data.right - data.left);
    const by = Math.round(share * (was.to - was.from + 1));
    go({ ...was, from: was.from + by, to: was.to + by });
    setTimeout(() => { dragged = false; }, 0);
  });

  holder.addEventListener("keydown", (event) => {
    const keys = { ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25), "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: whole };
    if (event.target === view() && keys[event.key]) { event.preventDefault(); keys[event.key](); }
    const node = event.target.closest(".node");
    if (node && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); choose(node.dataset.node); }
  });

  section.addEventListener("submit", (event) => {
    if (!event.target.closest("[data-jump]")) return;
    event.preventDefault();
    const seq = Number(event.target.querySelector("input").value);
    if (seq > 0) go({ ...state(), from: Math.max(1, seq - 60), to: seq + 60 });
  });

  // The time slider: one position for each run that made summaries, and one for the present.
  holder.addEventListener("change", (event) => {
    if (event.target.id !== "moment") return;
    const runs = event.target.dataset.moments.trim().split(/\s+/).filter(Boolean);
    const run = runs[Number(event.target.value)] || "";
    // If the whole history was shown, show all of it at that time; the server limits the range to what existed then.
    const now = state();
    const isWhole = now.from === 1 && now.to >= now.count;
    const total = Number(section.dataset.messages);
    go({ from: now.from, to: isWhole || !run ? Math.max(now.to, isWhole ? total : now.to) : now.to, run, count: total });
  });

  document.addEventListener("click", (event) => {
    const twig = event.target.closest("[data-twig]");
    if (twig) {
      const item = twig.closest("[role=treeitem]"), below = item.querySelector(":scope > [role=group]");
      below.hidden = !below.hidden;
      item.setAttribute("aria-expanded", String(!below.hidden));
      twig.textContent = below.hidden ? "▸" : "▾";
    }
    const node = event.target.closest(".node, [data-choose]");
    if (!node || dragged) return;
    choose(node.dataset.node || node.dataset.choose);
  });

  // Show the chosen summary in the picture, the tree, the URL and the panel with its sources.
  async function choose(id, { quiet = false } = {}) {
    chosen = id;
    mark();
    if (!quiet) remember(state());
    await htmx.ajax("GET", section.dataset.summaryUrl.replace("SUMMARY", encodeURIComponent(id)), { target: panel, swap: "innerHTML" });
  }
  function mark() {
    for (const each of document.querySelectorAll("[data-node]")) each.classList.toggle("chosen", each.dataset.node === chosen);
  }

  if (chosen) choose(chosen, { quiet: true });
  // The first picture is drawn for a width of 1100 pixels. Draw it again if the real width differs much.
  if (Math.abs(holder.clientWidth - 1100) > 60) go(state()); else mark();
})();
