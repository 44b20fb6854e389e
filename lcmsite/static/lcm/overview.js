// The chart of runs per hour. Its data is in the page; it is drawn again only if the data has changed.
(() => {
  const TONES = { good: "--summary", quiet: "--line", bad: "--bad" };
  let plot = null, place = null, drawn = "";

  function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
  function clock(seconds) { return new Date(seconds * 1000).toISOString().slice(11, 16); }

  // Stack the layers: the sums of the top layer come first, as lower layers are drawn over it.
  function stacked(layers) {
    const sums = layers[0].counts.map(() => 0);
    return layers.map((layer) => layer.counts.map((count, hour) => (sums[hour] += count))).reverse();
  }

  function draw() {
    const figures = document.getElementById("runs-data");
    const here = document.getElementById("runs-chart");
    if (!figures || !here) { plot = null; drawn = ""; return; }
    if (figures.textContent === drawn && here === place) return;
    const { hours, layers } = JSON.parse(figures.textContent);
    const upward = [...layers].reverse();
    const data = [hours, ...stacked(layers)];
    drawn = figures.textContent;
    if (plot && here === place) { plot.setData(data); return; }
    if (plot) plot.destroy();
    place = here;
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui, sans-serif" };
    plot = new uPlot({
      width: here.clientWidth, height: 220,
      cursor: { y: false, drag: { x: false, y: false } },
      scales: { x: { time: false, range: (_, low, high) => [low - 1800, high + 1800] }, y: { range: (_, __, high) => [0, Math.max(4, high * 1.1)] } },
      axes: [
        { ...axis, grid: { show: false }, splits: () => hours.filter((_, n) => n % (here.clientWidth < 600 ? 6 : 3) === 0), values: (_, all) => all.map(clock) },
        { ...axis, size: 40, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000] },
      ],
      series: [
        { label: "hour (UTC)", value: (_, seconds) => (seconds == null ? "–" : clock(seconds)) },
        ...upward.map((layer) => ({
          label: layer.name, fill: colour(TONES[layer.tone]), stroke: colour(TONES[layer.tone]), width: 0,
          paths: uPlot.paths.bars({ size: [0.7, 60], radius: 0.08 }), points: { show: false },
          value: (_, __, ___, hour) => (hour == null ? "–" : latest(layer.name)[hour]),
        })),
      ],
    }, data, here);
    new ResizeObserver(() => plot && place === here && plot.setSize({ width: here.clientWidth, height: 220 })).observe(here);
  }

  function latest(name) { return JSON.parse(drawn).layers.find((layer) => layer.name === name).counts; }
  function again() { drawn = ""; if (plot) { plot.destroy(); plot = null; } draw(); }

  // Details that the user has opened stay open when the content around them is replaced.
  let open = [];
  document.addEventListener("htmx:beforeSwap", () => { open = [...document.querySelectorAll("#pulse details[open]")].map((each) => each.id); });
  document.addEventListener("htmx:afterSwap", () => open.forEach((id) => document.getElementById(id)?.setAttribute("open", "")));
  document.addEventListener("DOMContentLoaded", draw);
  document.addEventListener("htmx:afterSettle", draw);
  document.addEventListener("lcm:theme", again);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
})();
