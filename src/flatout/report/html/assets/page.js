// The navigation, which marks the current view, and the buttons of the header.
const links = new Map(all("nav a").map((link) => [link.getAttribute("href").slice(1), link]));
const reading = new IntersectionObserver(
  (entries) => {
    for (const entry of entries.filter((item) => item.isIntersecting)) {
      links.forEach((link) => link.removeAttribute("aria-current"));
      const link = links.get(entry.target.id);
      link.setAttribute("aria-current", "true");
      // On narrow screens the views are in one line: keep the current one visible without scrolling the page.
      const bar = one("nav");
      if (bar.scrollWidth > bar.clientWidth) bar.scrollLeft = link.offsetLeft - bar.clientWidth / 2 + link.offsetWidth / 2;
    }
  },
  { rootMargin: "-25% 0px -70% 0px" },
);
all("main > section").forEach((section) => reading.observe(section));

const caseText = () => one("#case").textContent;
const actions = {
  json: () => download("case.json", `${JSON.stringify(JSON.parse(caseText()), null, 2)}\n`, "application/json"),
  patch: () => download("flatout.patch", JSON.parse(caseText()).patch, "text/x-diff"),
  print: () => print(),
  theme: nextTheme,
};
for (const [name, action] of Object.entries(actions)) {
  all(`[data-do="${name}"]`).forEach((button) => button.addEventListener("click", action));
}
document.documentElement.dataset.ready = "true";
