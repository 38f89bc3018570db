// The pages of `flatout serve`: a list that stays current, the choice of two cases, the progress of a run. Text is only inserted as text.
all('[data-do="theme"]').forEach((button) => button.addEventListener("click", nextTheme));

const cases = one("#cases");
if (cases) {
  const button = one("#compare");
  const hint = one(".hint", cases);
  const chosenCases = () => all("input:checked", cases);
  const told = () => {
    const count = chosenCases().length;
    button.disabled = count !== 2;
    hint.textContent = { 0: "Choose two cases; the older one is the one before.", 1: "One more.", 2: "" }[count] ?? "Two, not more.";
  };
  cases.addEventListener("change", told);
  told();
}

// A list that has changed is loaded again, unless the user is choosing or searching in it.
async function stayTrue() {
  const busy = () => all("#cases input:checked").length || all("input.find").some((input) => input.value);
  try {
    const response = document.hidden ? null : await fetch("/mark.json");
    if (response?.ok && (await response.json()).mark !== document.body.dataset.mark) {
      if (!busy()) return location.reload();
      one("#new").hidden = false;
    }
  } catch (_) {
    return; // the server has gone
  }
  setTimeout(stayTrue, 2000);
}
if (document.body.dataset.mark) setTimeout(stayTrue, 2000);

const field = (name) => one(`[data-field="${name}"]`);
const set = (name, text) => {
  const target = field(name);
  target.textContent = text;
  if (target.parentElement.matches("dl > div")) target.parentElement.hidden = !text;
};
const clock = (seconds) => `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, "0")}`;

function drawn(name, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function drawSteps(progress) {
  const times = progress.times_ms || [];
  one('[data-part="steps"]').hidden = times.length < 2;
  if (times.length < 2) return;
  // The first steps trace and allocate: including them would flatten all others.
  const sorted = [...times].sort((a, b) => a - b);
  const high = Math.max(sorted[Math.floor(0.98 * (sorted.length - 1))] * 1.15, (progress.median_ms || 0) * 1.3);
  const at = (ms) => 100 - (96 * Math.min(ms, high)) / high;
  const points = times.map((ms, i) => `${((1000 * i) / (times.length - 1)).toFixed(1)},${at(ms).toFixed(2)}`);
  const svg = drawn("svg", { viewBox: "0 0 1000 100", preserveAspectRatio: "none", role: "img", "aria-label": "Times of the last steps" });
  if (progress.median_ms) svg.append(drawn("line", { class: "median", x1: 0, x2: 1000, y1: at(progress.median_ms), y2: at(progress.median_ms) }));
  svg.append(drawn("polyline", { class: "steps", points: points.join(" ") }));
  field("times").replaceChildren(svg);
  set("scale", `Steps ${progress.first_shown + 1} to ${progress.first_shown + times.length}, from 0 to ${duration(high)}; the dashed line is the median.`);
}

const OUTCOMES = { won: "faster", lost: "slower", noise: "no measurable difference", failed: "failed", timeout: "given up" };
function trialRow(trial) {
  const chip = element("span", { class: `chip status ${trial.status}` }, trial.stage === "bound" ? "bound" : OUTCOMES[trial.status] || trial.status);
  const cells = [
    element("th", { scope: "row" }, trial.levers),
    element("td", { class: "number" }, trial.speedup ? `${trial.speedup[1].toFixed(2)}×` : "–"),
    element("td", { class: "number" }, trial.speedup ? `[${trial.speedup[0].toFixed(2)}, ${trial.speedup[2].toFixed(2)}]` : ""),
    element("td", {}, chip),
    element("td", { class: "minor" }, trial.parity || ""),
    element("td", { class: "minor" }, trial.stage),
  ];
  return element("tr", { title: trial.note || "" }, ...cells);
}

function drawTrials(progress) {
  const trials = progress.trials || [];
  one('[data-part="trials"]').hidden = !trials.length;
  if (!trials.length) return;
  const names = ["lever", "speedup", "interval", "outcome", "numbers", "stage"];
  const kinds = ["", "number", "number", "", "minor", "minor"];
  const head = element("tr", {}, ...names.map((name, i) => element("th", { scope: "col", class: kinds[i] }, name)));
  const table = element("table", { class: "forest" }, element("thead", {}, head), element("tbody", {}, ...trials.map(trialRow)));
  field("rows").replaceChildren(table);
}

async function follow(address) {
  let progress;
  try {
    const response = await fetch(address);
    if (!response.ok) throw new Error(response.status);
    progress = await response.json();
  } catch (_) {
    set("phase", "the server does not answer any more");
    return;
  }
  const ended = progress.done || !progress.running;
  set("phase", progress.done ? "finished" : progress.running ? progress.phase : `cut short while it was: ${progress.phase}`);
  set("seconds", ended ? "" : clock(progress.seconds));
  set("steps", progress.steps ? progress.steps.toLocaleString("en") : "");
  set("median_ms", progress.median_ms ? duration(progress.median_ms) : "");
  set("last_ms", progress.last_ms ? duration(progress.last_ms) : "");
  set("what", progress.what || "");
  set("trials", progress.trials ? String(progress.trials.length) : "");
  field("error").hidden = !progress.error;
  field("error").textContent = progress.error || "";
  field("done").hidden = !progress.done;
  drawSteps(progress);
  drawTrials(progress);
  document.documentElement.dataset.followed = String(Number(document.documentElement.dataset.followed || 0) + 1);
  if (!ended) setTimeout(follow, 1000, address);
}
if (document.body.dataset.live) follow(document.body.dataset.live);
