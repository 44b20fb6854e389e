// Before the page is drawn: apply the light or dark theme that the user chose; the default is that of the system.
(() => {
  const chosen = localStorage.getItem("lcm-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
