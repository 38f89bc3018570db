// Light, dark, or the theme of the system. Canvases are notified, as they must be drawn again.
const repainted = [];
const drawnAtOnce = []; // for printing, which does not wait for the next frame
let beforePrint = false;
const system = matchMedia("(prefers-color-scheme: dark)");
const printing = matchMedia("print");
let chosen = "system";
try {
  chosen = localStorage.getItem("flatout-theme") || "system";
} catch (_) {
  // A file opened from disk may have no storage: the choice then lasts until the page is closed.
}

const onPaper = () => beforePrint || printing.matches;
const colour = (role) => getComputedStyle(document.documentElement).getPropertyValue(`--${role}`).trim();

function paint() {
  const dark = !onPaper() && (chosen === "dark" || (chosen === "system" && system.matches));
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  const button = one('[data-do="theme"]');
  button.textContent = { system: "Theme: system", light: "Theme: light", dark: "Theme: dark" }[chosen];
  repainted.forEach((again) => again());
}

function nextTheme() {
  chosen = { system: "light", light: "dark", dark: "system" }[chosen] || "system";
  try {
    localStorage.setItem("flatout-theme", chosen);
  } catch (_) {
    // As above.
  }
  paint();
}
system.addEventListener("change", paint);
printing.addEventListener("change", paint);
addEventListener("beforeprint", () => {
  beforePrint = true;
  beginAll();
  paint();
  drawnAtOnce.forEach((draw) => draw());
});
addEventListener("afterprint", () => {
  beforePrint = false;
  paint();
});
paint();
