// The run over time: zooming makes the strip wider than its box, which scrolls. What is in the middle stays there.
const WIDEST = 64;

function zoomStrip(strip, factor, at = 0.5) {
  const before = Number(strip.style.getPropertyValue("--zoom")) || 1;
  const after = factor ? Math.min(Math.max(before * factor, 1), WIDEST) : 1;
  const middle = (strip.scrollLeft + at * strip.clientWidth) / before;
  strip.style.setProperty("--zoom", String(after));
  strip.scrollLeft = middle * after - at * strip.clientWidth;
}

all(".strip").forEach((strip) => {
  all("[data-zoom]", strip.parentElement).forEach((button) =>
    button.addEventListener("click", () => zoomStrip(strip, Number(button.dataset.zoom))),
  );
  strip.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      const box = strip.getBoundingClientRect();
      zoomStrip(strip, event.deltaY < 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width);
    },
    { passive: false },
  );
  strip.addEventListener("keydown", (event) => {
    const factor = { "+": 2, "-": 0.5, Home: 0 }[event.key];
    if (factor !== undefined) zoomStrip(strip, factor);
  });
});
