// Plots of lines and bars, drawn by Plotly, which is loaded when the first plot is drawn. Colours are the page's, also in dark mode.
import {make} from '../../web/ui/elements.js';
import {FINGER} from '../../web/ui/window_sizes.js';

/**
 * @typedef {object} PlotLine
 * @property {string} name
 * @property {(number | null)[]} y
 * @property {'solid' | 'dash' | 'dot'} [dash]
 * @property {boolean} [points] whether it is drawn as points, and not as a line
 * @property {boolean} [faint] whether it is drawn thin and grey, as a limit and no measurement
 * @property {number[]} [spread] how far each value may be off, drawn as an error bar
 * @property {[least: number, most: number][]} [range] the least and the most of what each value is the median of, drawn so too
 *
 * @typedef {object} Plot
 * @property {string} title
 * @property {string} unit of the y axis
 * @property {number[]} x
 * @property {PlotLine[]} lines
 * @property {boolean} [logarithmic]
 * @property {boolean} [parts] whether the values are parts of a whole, which are written as per cent
 * @property {string[]} [labels] of the values of x: then the values are drawn as bars, side by side, except points
 * @property {string} [below] the name of the x axis, "depth" unless given
 * @property {string} table what has the plot's figures: "the table of every depth"
 */

/** @type {Promise<any> | null} */
let loading = null;

/**
 * Load Plotly from this server, once. Rejects if the file cannot be loaded; the next call tries again.
 * @param {string} address
 */
export function loadPlotly(address) {
  loading ??= new Promise((resolve, reject) => {
    const script = make('script', {src: new URL(address, document.baseURI).href});
    script.addEventListener('load', () => resolve(/** @type {any} */ (globalThis).Plotly));
    script.addEventListener('error', () => { loading = null; reject(new Error('The plots could not be loaded.')); });
    document.head.append(script);
  });
  return loading;
}

export const NO_PLOTS = 'The plots could not be loaded; the table has their figures.';

/** @param {string} name of a variable of the style sheets */
const variable = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The colours of the page now. */
function colours() {
  const dark = document.body.classList.contains('dark') || document.documentElement.classList.contains('dark');
  const of = (/** @type {string} */ name) => {
    const probe = make('span', {style: `color: var(${name})`, hidden: true});
    (document.querySelector('.lab-result') ?? document.body).append(probe);
    const {color} = getComputedStyle(probe);
    probe.remove();
    return color;
  };
  return {dark, ink: of('--ink'), soft: of('--ink-soft'), line: of('--line'), lines: [of('--accent'), of('--good'), of('--ink-soft')]};
}

const FEW = 10;   // below this x has a label at each whole number; Plotly would set labels between them

/**
 * The data and the layout that Plotly draws a plot from.
 * @param {Plot} plot
 * @param {ReturnType<typeof colours>} palette
 */
export function plotlyFigure({x, lines, unit, labels, logarithmic = false, parts = false, below = 'depth'}, palette) {
  const font = {family: variable('--sans') || 'sans-serif', size: 14, color: palette.ink}, title = {...font, color: palette.soft};
  const axis = {color: palette.soft, gridcolor: palette.line, linecolor: palette.line, zeroline: false, automargin: true};
  const paper = palette.dark ? '#22211f' : '#ffffff';
  return {
    data: lines.map((line, index) => {
      // Points stand on bars: they have the colour of text, and an edge.
      const colour = line.faint ? palette.soft : line.points ? palette.ink : palette.lines[index % palette.lines.length], {name, y, spread, range} = line;
      if (labels && !line.points) return {x, y, name, type: 'bar', marker: {color: colour}};
      return {
        x, y, name, type: 'scatter', mode: line.points ? 'markers' : 'lines', marker: {color: colour, size: 11, symbol: 'diamond', line: {color: paper, width: 2}},
        line: {dash: line.dash ?? 'solid', width: line.faint ? 1 : 2, color: colour}, ...(spread && {error_y: {type: 'data', array: spread, color: colour}}), ...(range && {error_y: errorBars(y, range, colour)}),
      };
    }),
    layout: {
      margin: {l: 48, r: 14, t: 8, b: 36},
      paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
      font,
      xaxis: {...axis, title: {text: below, standoff: 4, font: title}, ...(labels ? {tickvals: x, ticktext: labels, autotickangles: [0, -30, -60]} : {rangemode: 'tozero', ...(Math.max(...x) < FEW && {dtick: 1})})},
      yaxis: {...axis, ...(parts && {tickformat: '.3~p', hoverformat: '.3~p'}), ...(logarithmic && logarithmicTicks(lines.flatMap(line => line.y), parts)), title: {text: logarithmic ? `${unit},<br>logarithmic scale` : unit, standoff: 4, font: title}, type: logarithmic ? 'log' : 'linear', exponentformat: 'power', rangemode: logarithmic ? 'normal' : 'tozero'},
      showlegend: lines.length > 1,
      legend: {orientation: 'h', x: 0, y: 1.02, yanchor: 'bottom', font},
      hovermode: 'x unified', hoverlabel: {bgcolor: paper, font},
    },
  };
}

/** The labels of a decade that a logarithmic axis may have, from many to few. */
const DECADES = [[1, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 5, 7], [1, 2, 5], [1, 3], [1]];
const MOST_LABELS = 7;    // more would touch each other in a plot of 15rem
const LEAST_LABELS = 3;

/**
 * The labels and the range of a logarithmic axis, as fields of Plotly's axis: three to seven labels, whose lowest and highest
 * enclose the values. No fields if no value is positive.
 * @param {(number | null)[]} values those that are not positive are left out
 * @param {boolean} parts whether the labels are per cent
 */
export function logarithmicTicks(values, parts) {
  const shown = values.filter(value => value !== null && value > 0).map(Number);
  if (!shown.length) return {};
  const low = Math.min(...shown), high = Math.max(...shown), [from, to] = [low, high].map(value => Math.floor(Math.log10(value)));
  for (let every = 1; ; every += 1) {
    for (const digits of every === 1 ? DECADES : [[1]]) {
      const powers = Array.from({length: Math.ceil((to - from + 3) / every) + 1}, (_, index) => from - 1 + every * index);
      // From its decimal form: 3 * 10 ** -5 is not the number 0.00003.
      const all = powers.flatMap(power => digits.map(digit => Number(`${digit}e${power}`)));
      const last = all.findIndex(tick => tick >= high), first = Math.min(all.findLastIndex(tick => tick <= low), last + 1 - LEAST_LABELS);
      const ticks = all.slice(Math.max(0, first), last + 1);
      if (ticks.length > MOST_LABELS) continue;
      const label = (/** @type {number} */ tick) => (parts ? `${Number((100 * tick).toPrecision(1))}\u00a0%` : String(tick));
      return {tickvals: ticks, ticktext: ticks.map(label), range: [Math.log10(ticks[0]), Math.log10(ticks[ticks.length - 1]) + 0.02]};
    }
  }
}

/**
 * Bars from the least to the most, around the values of a line.
 * @param {(number | null)[]} y
 * @param {[least: number, most: number][]} range
 * @param {string} color
 */
const errorBars = (y, range, color) => ({
  type: 'data', symmetric: false, color, thickness: 1, width: 3,
  array: range.map(([, most], index) => most - (y[index] ?? most)), arrayminus: range.map(([least], index) => (y[index] ?? least) - least),
});

const CONFIG = {displayModeBar: false, displaylogo: false};

/** Plots below an element, each with a caption. They are drawn again when the page changes between light and dark. */
export class PlotList {
  /** @type {Plot[]} */
  #plots = [];
  #width = 0;   // of the element when the plots were last fitted; 0 while it is hidden

  /** @param {HTMLElement} element @param {string} address of Plotly's script */
  constructor(element, address) {
    this.element = element;
    this.address = address;
    const redraw = () => { if (this.#plots.length) this.draw(this.#plots); };
    new MutationObserver(redraw).observe(document.body, {attributeFilter: ['class']});
    // Plotly's option `responsive` would miss a window that is resized while another tab hides the plots.
    new ResizeObserver(() => this.#fit()).observe(element);
  }

  /** Give the plots the width of their element, if it is shown and has another width than before. */
  async #fit() {
    const {clientWidth: width} = this.element, holders = this.element.querySelectorAll('.js-plotly-plot');
    if (!holders.length || width === this.#width) return;
    this.#width = width;
    if (!width) return;   // hidden
    const plotly = await loadPlotly(this.address);
    for (const holder of holders) plotly.Plots.resize(holder);
  }

  /**
   * Draw these plots in place of the ones before. Resolves when they are drawn.
   * @param {Plot[]} plots
   */
  async draw(plots) {
    this.#plots = plots;
    const plotly = await loadPlotly(this.address);
    if (this.#plots !== plots) return;
    const palette = colours();
    while (this.element.children.length < plots.length) {
      const holder = make('div', {className: 'plot'});
      holder.setAttribute('role', 'img');
      this.element.append(make('figure', {}, make('figcaption'), holder));
    }
    for (const figure of [...this.element.children].slice(plots.length)) figure.remove();
    await Promise.all(plots.map((plot, index) => {
      const [caption, holder] = /** @type {HTMLElement[]} */ ([...this.element.children[index].children]);
      caption.textContent = plot.title;
      holder.setAttribute('aria-label', `Plot: ${plot.title}. Its figures are in ${plot.table}.`);
      const {data, layout} = plotlyFigure(plot, palette);
      // Without a drag mode a finger scrolls the page: else Plotly would zoom the plot by its moves.
      return plotly.react(holder, data, matchMedia(FINGER).matches ? {...layout, dragmode: false} : layout, CONFIG);
    }));
  }

  /**
   * Save every plot as a file.
   * @param {'svg' | 'png'} format
   * @param {string} name of the files, before a number
   */
  async save(format, name) {
    const plotly = await loadPlotly(this.address);
    for (const [index, figure] of [...this.element.children].entries())
      await plotly.downloadImage(figure.lastElementChild, {format, filename: `${name}-${index + 1}`, width: 800, height: 450});
  }
}
