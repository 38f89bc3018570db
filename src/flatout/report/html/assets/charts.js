// Charts: the library is unpacked when the first chart is near the screen; the page's policy allows it by its hash.
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

const PAPER = 680; // pixels that a sheet of paper has room for

// Colours by role: "@accent" is the accent colour of the theme; "@name:X" is the colour of the name X.
const PLAIN = new Set(["labels", "text", "customdata", "name", "ids", "parents", "hovertemplate"]);
function coloured(value) {
  if (typeof value === "string" && value[0] === "@") {
    return value.startsWith("@name:") ? fillOf(value.slice(6)) : colour(value.slice(1));
  }
  if (Array.isArray(value)) return value.map(coloured);
  if (value && typeof value === "object") {
    // Text from the case may begin with this sign too, and is not changed.
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, PLAIN.has(key) ? item : coloured(item)]));
  }
  return value;
}

function layoutOf(given, height) {
  const lines = { gridcolor: "@line", linecolor: "@line", zerolinecolor: "@line", automargin: true };
  const axisOf = (axis = {}) => ({ ...lines, ...axis, title: { standoff: 10, ...axis.title } });
  return coloured({
    height,
    ...(onPaper() ? { width: PAPER } : { autosize: true }),
    paper_bgcolor: "@panel",
    plot_bgcolor: "@panel",
    font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: "@text" },
    margin: { l: 56, r: 16, t: 16, b: 52 },
    hoverlabel: { bgcolor: "@text", bordercolor: "@text", font: { color: "@page" }, namelength: -1 },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
    dragmode: "zoom",
    ...given,
    xaxis: axisOf(given.xaxis),
    yaxis: axisOf(given.yaxis),
  });
}

async function drawChart(target) {
  const given = valuesOf(target.parentElement);
  const settings = { responsive: true, displaylogo: false, displayModeBar: false, locale: "en" };
  const draw = (plotly) => plotly.react(target, coloured(given.data), layoutOf(given.layout, given.height - 2), settings);
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
