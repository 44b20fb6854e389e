// Before anything is drawn: light or dark, as was chosen here, else as the system has it.
(() => {
  const chosen = localStorage.getItem("lcm-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
