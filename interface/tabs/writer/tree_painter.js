// A laid out tree as SVG elements. Elements of nodes are used again, so that the focus stays; every text is set as text.
/** @import {LaidLink, LaidNode, TreeLayout} from '../../web/core/types.d.ts' */
import {FIGURE_SIZE, LABEL_SIZE} from '../../web/core/tree_layout.js';
import {find, setAttribute, setText} from '../../web/ui/elements.js';
import {linkShape, pixels, riverRectangles, textPositions, textsWithoutRoom} from '../../web/core/tree_shapes.js';
import {measuredWidth} from '../../web/ui/measured_width.js';
import {nodeName, placePhrase} from '../../web/core/tree_sentences.js';

const NAMESPACE = 'http://www.w3.org/2000/svg';
/** @typedef {Record<string, string | number | boolean | null | undefined>} Attributes */

/** @type {(name: string, attributes?: Attributes, ...children: (Element | string)[]) => SVGElement} */
function makeSvg(name, attributes = {}, ...children) {
  const made = document.createElementNS(NAMESPACE, name);
  setAttributes(made, attributes);
  made.append(...children);
  return made;
}

/** @type {(element: Element, attributes: Attributes) => void} */
const setAttributes = (element, attributes) => { for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value); };

/** Draws layouts into one `svg` element. */
export class TreePainter {
  /** @type {TreeLayout | null} */
  layout = null;
  /** @type {Map<string, SVGElement>} */
  #elements = new Map();
  /** @type {Map<Element, LaidNode>} */
  #nodes = new Map();
  #streams = makeSvg('g', {'aria-hidden': 'true'});
  #group = makeSvg('g', {role: 'presentation'});

  /** @param {SVGElement} svg */
  constructor(svg) {
    this.svg = svg;
    svg.append(this.#streams, this.#group);
  }

  /**
   * The node of an element, or of the element that contains it; null if there is none.
   * @param {Element | null} element
   */
  nodeOf(element) { return this.#nodes.get(element?.closest('.node') ?? this.svg) ?? null; }

  /** @param {LaidNode} laid */
  elementOf(laid) { return this.#elements.get(laid.node.key) ?? null; }

  /** @param {TreeLayout} layout */
  paint(layout) {
    this.layout = layout;
    const {width, height, river, links, nodes} = layout;
    setAttribute(this.svg, 'viewBox', `0 0 ${pixels(width)} ${pixels(height)}`);
    const streams = river ? nodes.flatMap(node => riverRectangles(node).map(rectangle => streamOf(node, rectangle))) : [];
    this.#streams.replaceChildren(...links.map(link => pathOf(link, river)), ...streams);
    const before = this.#elements;
    this.#elements = new Map();
    this.#nodes = new Map();
    for (const laid of nodes) {
      const element = before.get(laid.node.key) ?? makeNode();
      paintNode(element, laid);
      this.#elements.set(laid.node.key, element);
      this.#nodes.set(element, laid);
    }
    for (const [key, element] of before) if (!this.#elements.has(key)) element.remove();
    // An element that stands where it belongs is not moved: moving it would take its focus.
    [...this.#elements.values()].forEach((element, index) => {
      if (this.#group.children[index] !== element) this.#group.insertBefore(element, this.#group.children[index] ?? null);
    });
  }

  /**
   * Place the odds of each node below its label. Hide the texts of a river that would overlap, and return whether there are any.
   * @param {number} scale the scale at which the drawing is shown
   */
  fitTexts(scale) {
    const {labels, figures} = textsWithoutRoom(this.layout?.river ? this.layout.nodes : [], scale, measuredWidth);
    for (const [element, laid] of this.#nodes) {
      setAttribute(find(element, '.node-odds', SVGElement), 'y', pixels(textPositions(laid, scale).figure));
      for (const [line, hidden] of /** @type {const} */ ([['.node-label', labels], ['.node-odds', figures]])) setAttribute(find(element, line, SVGElement), 'data-crowded', hidden.has(laid));
    }
    return labels.size + figures.size > 0;
  }
}

/** @type {(link: LaidLink, river: boolean) => SVGElement} */
function pathOf(link, river) {
  const {d, state, filled, weight} = linkShape(link, river);
  return makeSvg('path', {d, 'data-state': state, 'data-filled': filled, 'stroke-width': pixels(weight), 'data-inert': link.to.node.inert});
}

/** @type {(laid: LaidNode, rectangle: ReturnType<typeof riverRectangles>[number]) => SVGElement} */
const streamOf = ({node}, {x, y, width, height, bar}) => makeSvg('rect', {
  class: bar ? 'stream stands' : 'stream', x: pixels(x), y: pixels(y), width: pixels(width), height: pixels(height),
  'data-state': node.state, 'data-inert': node.inert,
});

// The space is not seen: it parts the words of the label from the odds where its text is compared with the name.
const makeNode = () => makeSvg('g', {class: 'node', role: 'treeitem', tabindex: -1}, makeSvg('rect', {class: 'hit'}),
  makeSvg('text', {'aria-hidden': 'true', 'font-size': LABEL_SIZE}, makeSvg('tspan', {class: 'node-label'}), ' ', makeSvg('tspan', {class: 'node-odds', 'font-size': FIGURE_SIZE})));

/** @type {(element: SVGElement, laid: LaidNode) => void} */
function paintNode(element, laid) {
  const {node, parent, depth, x, y, width, height, label, figure} = laid, at = textPositions(laid), {state, here, inert, key, text, odds} = node;
  setAttributes(element, {
    'data-key': key, 'data-state': state, 'data-here': here, 'data-inert': inert, 'data-text': text, 'data-p': odds?.p,
    'data-clicks': Boolean(node.piece || node.goal !== undefined), 'aria-level': depth + 1, 'aria-label': [nodeName(node, parent?.node.text), placePhrase(laid)].filter(Boolean).join(', '),
    'aria-current': here,
  });
  setAttributes(find(element, '.hit', SVGElement), {x: pixels(x), y: pixels(y - height / 2), width: pixels(width), height: pixels(height)});
  setLine(find(element, '.node-label', SVGElement), label, at.x, at.label);
  setLine(find(element, '.node-odds', SVGElement), figure, at.x, at.figure);
}

/** @type {(line: SVGElement, text: string, x: number, y: number) => void} */
function setLine(line, text, x, y) {
  setAttributes(line, {x: pixels(x), y: pixels(y)});
  setText(line, text);
}
