// The focus in a drawn tree: one tab stop, which the arrow keys move from node to node.
/** @import {LaidNode, TreeLayout} from '../core/types.d.ts' */
/** @import {TreeViewport} from './tree_viewport.js' */
import {hereIn, nodeAfterMove} from '../core/tree_moves.js';
import {treeKey} from '../core/shortcuts.js';

/**
 * @typedef {object} DrawnTree a tree with an element for each node
 * @property {TreeLayout | null} layout
 * @property {(element: Element | null) => LaidNode | null} nodeOf the node of an element, or of the element that contains it
 * @property {(laid: LaidNode) => SVGElement | null} elementOf
 */

export class TreeFocus {
  /** @type {string | null} */
  #stop = null;   // the key of the node with the tab stop

  /**
   * @param {Element} area that contains the elements of the nodes
   * @param {DrawnTree} drawn
   * @param {TreeViewport} viewport
   */
  constructor(area, drawn, viewport) {
    this.area = area;
    this.drawn = drawn;
    this.viewport = viewport;
  }

  /** The node that has the focus, or null. */
  get focused() { return this.drawn.nodeOf(document.activeElement); }

  /**
   * After a paint: keep the tab stop on its node, or put it on the end of the text, else on the root.
   * @param {LaidNode[]} nodes
   */
  keepTabStop(nodes) { this.moveTabStop(nodes.find(({node}) => node.key === this.#stop) ?? hereIn(nodes)); }

  /** @param {LaidNode} laid */
  moveTabStop(laid) {
    this.#stop = laid.node.key;
    for (const element of this.area.querySelectorAll('[tabindex="0"]')) element.setAttribute('tabindex', '-1');
    this.drawn.elementOf(laid)?.setAttribute('tabindex', '0');
  }

  /** Focus a node. Returns whether it is drawn. @param {LaidNode | null} laid */
  focusOn(laid) {
    const element = laid && this.drawn.elementOf(laid);
    if (!element) return false;
    this.moveTabStop(laid);
    element.focus({preventScroll: true});
    element.scrollIntoView({block: 'nearest', inline: 'nearest'});
    return true;
  }

  /**
   * Move the focus, or zoom, if a key does that. Returns what else the key does, with its node; null if nothing.
   * @param {KeyboardEvent} event
   */
  takeKey(event) {
    const found = treeKey(event), laid = this.drawn.nodeOf(/** @type {Element} */ (event.target));
    if (!found || !laid) return null;
    if (!found.move && !found.zoom) return {...found, node: laid.node};
    event.preventDefault();
    if (found.zoom === 'fit') this.viewport.fit();
    else if (found.zoom) this.viewport.step(found.zoom);
    this.focusOn(found.move ? nodeAfterMove(this.drawn.layout?.nodes ?? [], laid, found.move) : laid);
    return null;
  }
}
