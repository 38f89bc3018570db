// Charts: the library is unpacked when the first one comes near; the policy of the page knows it by its hash.
let library = null;
function chartLibrary() {
  library ??= unpack(one("#chart-library").textContent).then((bytes) => {
    const script = element("script");
    script.textContent = new TextDecoder().decode(bytes);
    document.head.append(script);
    return window.Plotly;
  });
  return library;
}

const CYCLE = ["compute", "copy", "trace", "input", "python", "idle", "accent", "good", "warning"];

// Colours by role: "@accent" becomes what the theme says; "@cycle" takes the next one of a row.
function coloured(value, row = { at: 0 }) {
  if (typeof value === "string" && value[0] === "@") {
    return colour(value === "@cycle" ? CYCLE[row.at++ % CYCLE.length] : value.slice(1));
  }
  if (Array.isArray(value)) {
    const own = { at: 0 };
    return value.map((item) => coloured(item, own));
  }
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, coloured(item, row)]));
  }
  return value;
}

function layoutOf(given, height) {
  const axis = { gridcolor: "@line", linecolor: "@line", zerolinecolor: "@line", automargin: true };
  return coloured({
    height,
    paper_bgcolor: "@panel",
    plot_bgcolor: "@panel",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: "@text" },
    margin: { l: 56, r: 16, t: 16, b: 44 },
    hoverlabel: { bgcolor: "@text", bordercolor: "@text", font: { color: "@page" }, namelength: -1 },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
    dragmode: "zoom",
    ...given,
    xaxis: { ...axis, ...given.xaxis },
    yaxis: { ...axis, ...given.yaxis },
  });
}

async function drawChart(target) {
  const given = valuesOf(target.parentElement);
  const settings = { responsive: true, displaylogo: false, displayModeBar: false, locale: "en" };
  const draw = (plotly) => plotly.react(target, coloured(given.data), layoutOf(given.layout, given.height), settings);
  try {
    const plotly = await chartLibrary();
    await draw(plotly);
    target.dataset.state = "drawn";
    repainted.push(() => draw(plotly));
  } catch (error) {
    target.dataset.state = "failed";
    target.textContent = "This browser cannot draw the chart; the numbers are in the tables and in the JSON.";
  }
}
all(".chart").forEach((target) => whenNear(target, () => drawChart(target)));
