// The nodes of the decoding tree for screen readers and the keyboard: each is a tree item with a name, and can have the focus.
/** @import {DecodingNode, LaidNode, TreeLayout} from '../../web/core/types.d.ts' */
import {setAttribute} from '../../web/ui/elements.js';
import {nodeName} from './decoding_tree.js';

export class DecodingItems {
  /** @type {TreeLayout | null} */
  layout = null;

  /** @param {HTMLElement} picture that contains the drawing */
  constructor(picture) { this.picture = picture; }

  get nodes() { return this.layout?.nodes ?? []; }

  /**
   * Give each node of a new drawing its role and its name for screen readers.
   * @param {SVGElement} svg
   * @param {TreeLayout} layout
   */
  take(svg, layout) {
    this.layout = layout;
    setAttribute(svg, 'role', 'tree');
    for (const part of svg.children) if (!part.matches('[data-key]')) setAttribute(part, 'aria-hidden', true);
    for (const laid of layout.nodes) {
      const element = this.elementOf(laid);
      if (!element) continue;
      setAttribute(element, 'role', 'treeitem');
      setAttribute(element, 'tabindex', -1);
      setAttribute(element, 'aria-level', laid.depth + 1);
      setAttribute(element, 'aria-label', nodeName(/** @type {DecodingNode} */ (laid.node)));
      // A title would be read after the name, which says the same.
      element.querySelector('title')?.remove();
      for (const text of element.querySelectorAll('text')) setAttribute(text, 'aria-hidden', true);
    }
  }

  /**
   * The node of an element of the drawing, or of the element that contains it; null if there is none.
   * @param {Element | null} element
   */
  nodeOf(element) {
    const drawn = element?.closest('[data-key]'), key = drawn?.getAttribute('data-key');
    return (drawn && this.picture.contains(drawn) && this.nodes.find(({node}) => node.key === key)) || null;
  }

  /**
   * @param {LaidNode} laid
   * @returns {SVGElement | null}
   */
  elementOf({node: {key}}) { return this.picture.querySelector(`svg [data-key="${key}"]`); }
}
