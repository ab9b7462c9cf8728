// Pointers and keys on the drawn tree of the branches, and what was under a pointer when it went down.
/** @import {Choice, ChoiceSource, LaidNode, TreeNode} from '../../web/core/types.d.ts' */
/** @import {TreePainter} from './tree_painter.js' */
/** @import {TreeViewport} from '../../web/ui/tree_viewport.js' */
import {choiceOf} from '../../web/core/choice.js';
import {DoubleClicks} from '../../web/ui/double_clicks.js';
import {TreeFocus} from '../../web/ui/tree_focus.js';
import {hereIn, nodeInPlaceOf} from '../../web/core/tree_moves.js';
import {isStill} from '../../web/ui/events.js';
import {listenToHolds} from '../../web/ui/holds.js';

/**
 * @typedef {{laid: LaidNode, choice: Choice | null, element: Element, x: number, y: number, time: number}} Press a node, what accepting it
 *   meant when it was pressed, and the element and the point under the pointer
 */

/**
 * @typedef {object} TreeActions
 * @property {(node: TreeNode, choice: Choice | null, source: ChoiceSource) => void} activate a click or Enter
 * @property {(node: TreeNode | null, byKeyboard?: boolean) => void} point what the pointer or the focus is on; null for nothing
 * @property {(node: TreeNode) => void} hold a finger rests on a node
 * @property {() => void} ban ban what is pointed at
 * @property {() => void} leave back to the text
 */

/** @param {TreeNode} node */
const choiceAt = ({piece}) => (piece ? choiceOf(piece.row, piece.branch, piece.piece) : null);

export class TreeInput {
  /** @type {Press | null} */
  #pressed = null;
  #doubleClicks = new DoubleClicks();
  #focus;

  /**
   * @param {SVGElement} svg
   * @param {{painter: TreePainter, viewport: TreeViewport, actions: TreeActions}} parts
   */
  constructor(svg, {painter, viewport, actions}) {
    this.svg = svg;
    this.painter = painter;
    this.viewport = viewport;
    this.#focus = new TreeFocus(svg, painter, viewport);
    this.actions = actions;
    // A click takes neither the focus nor the caret from the text box.
    svg.addEventListener('mousedown', event => event.preventDefault());
    svg.addEventListener('pointerdown', event => this.#onDown(event));
    svg.addEventListener('click', event => this.#onClick(event));
    svg.addEventListener('pointerup', event => this.#onUp(event));
    svg.addEventListener('pointerover', event => { if (event.pointerType !== 'touch') actions.point(this.#nodeOf(event)?.node ?? null); });
    svg.addEventListener('focusin', event => this.#onFocus(this.#nodeOf(event)));
    svg.addEventListener('pointerleave', event => { if (event.pointerType !== 'touch') actions.point(null); });
    svg.addEventListener('hold', event => this.#onHold(event));
    listenToHolds(svg, '.node');
    svg.addEventListener('focusout', () => actions.point(null, true));
    svg.addEventListener('keydown', event => this.#onKey(event));
  }

  /** The node that has the focus, or null. */
  get focused() { return this.#focus.focused; }

  /** Focus the likeliest next piece, or else the end of the text. Returns false if nothing is drawn. */
  focusFirst() {
    const nodes = this.painter.layout?.nodes ?? [], here = nodes.length ? hereIn(nodes) : null;
    return this.#focus.focusOn(nodes.find(({parent, node}) => parent === here && node.state === 'ahead') ?? here);
  }

  /**
   * After a paint: keep the tab stop on its node, or put it on the end of the text.
   * @param {LaidNode[]} nodes
   */
  keepTabStop(nodes) { this.#focus.keepTabStop(nodes); }

  /**
   * After a paint: where the focused node is gone, focus the one that takes its place; after a change of the text, the first one.
   * @param {LaidNode | null} focused before the paint
   * @param {boolean} isSameText
   */
  keepFocus(focused, isSameText) {
    if (!focused || this.focused) return;
    const to = isSameText ? nodeInPlaceOf(this.painter.layout?.nodes ?? [], focused) : null;
    if (!to || !this.#focus.focusOn(to)) this.focusFirst();
  }

  /** @param {Event} event */
  #nodeOf(event) { return this.painter.nodeOf(/** @type {Element} */ (event.target)); }

  /** @param {LaidNode | null} laid */
  #onFocus(laid) {
    if (!laid) return;
    this.#focus.moveTabStop(laid);
    this.actions.point(laid.node, true);
  }

  /** @param {KeyboardEvent} event */
  #onKey(event) {
    const found = this.#focus.takeKey(event);
    if (!found) return;
    event.preventDefault();
    if (found.click) this.actions.activate(found.node, choiceAt(found.node), {byKeyboard: true, pointer: null});
    else if (found.ban) this.actions.ban();
    else if (found.leave) this.actions.leave();
  }

  /**
   * What is under the pointer when it goes down counts, even if a paint puts something else there before it goes up.
   * @param {PointerEvent} event
   */
  #onDown(event) {
    const laid = this.#nodeOf(event);
    const element = /** @type {Element} */ (event.target);
    this.#pressed = laid && {laid, choice: choiceAt(laid.node), element, x: event.clientX, y: event.clientY, time: event.timeStamp};
  }

  /** A finger that rests reads a node and does not click it. @param {Event} event */
  #onHold(event) {
    const laid = this.#nodeOf(event);
    this.#pressed = null;
    if (laid) this.actions.hold(laid.node);
  }

  /**
   * No click follows where a paint has removed the element that was pressed.
   * @param {PointerEvent} event
   */
  #onUp(event) {
    const pressed = this.#pressed;
    if (!pressed || pressed.element.isConnected) return;
    this.#pressed = null;
    this.#activatePressed(pressed, event);
  }

  /**
   * Click what was pressed. A finger on a box too small for words only reads it: it cannot know what it would insert.
   * @param {Press} pressed
   * @param {MouseEvent} event that ends the press
   */
  #activatePressed(pressed, event) {
    const pointer = /** @type {PointerEvent} */ (event).pointerType || null;
    if (!isStill(pressed, event) || this.#doubleClicks.isSecond(event, pressed.time)) return;
    this.#doubleClicks.begin(event);
    // After this click: the next one ends what a hold shows.
    if (pointer === 'touch' && this.viewport.isTooSmall) setTimeout(() => this.actions.hold(pressed.laid.node));
    else this.actions.activate(pressed.laid.node, pressed.choice, {byKeyboard: false, pointer});
  }

  /** @param {MouseEvent} event */
  #onClick(event) {
    const laid = this.#nodeOf(event), pressed = this.#pressed, byKeyboard = event.detail === 0;
    this.#pressed = null;
    if (pressed && !byKeyboard) this.#activatePressed(pressed, event);
    else if (laid) this.actions.activate(laid.node, choiceAt(laid.node), {byKeyboard, pointer: null});
  }
}
